package wire

import "bytes"

// step returns the offset behind the value at b[i], in a text that was checked
// when it came in. It looks for ends only, many bytes at a time, so that
// finding a member behind a big text costs little. It returns -1 where the text
// ends inside the value; in a text that is no JSON it ends somewhere.
func step(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return stepString(b, i)
	case '{', '[':
		return stepNested(b, i)
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return i
		}
		i++
	}
	return i
}

// stepString finds the quote that no backslash escapes.
func stepString(b []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

func stepNested(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			if i = stepString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		i++
		if depth == 0 {
			return i
		}
	}
	return -1
}

// Nesting returns how deep objects and arrays nest in a text that was checked,
// and how many objects there are.
func Nesting(text []byte) (depth, objects int) {
	now := 0
	for i := 0; i < len(text); {
		switch text[i] {
		case '"':
			if i = stepString(text, i); i < 0 {
				return depth, objects
			}
			continue
		case '{':
			objects++
			now++
		case '[':
			now++
		case '}', ']':
			now--
		}
		depth = max(depth, now)
		i++
	}
	return depth, objects
}
