package wire

// The functions in this file walk texts that were checked when they arrived. They only
// look for the ends of values, many bytes at a time, so that finding a member after a long
// text costs little. In a text that is not JSON their result is arbitrary.

// valueEnd returns the offset after the value at b[i], -1 if the text ends inside it.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		return nestedEnd(b, i)
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

// stringEnd is valueEnd for a string.
func stringEnd(b []byte, i int) int {
	end, err := skipString(b, i)
	if err != nil {
		return -1
	}
	return end
}

// nestedEnd is valueEnd for an object or array.
func nestedEnd(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			if i = stringEnd(b, i); i < 0 {
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

// Nesting returns how deep objects and arrays nest in a text known to be JSON, and
// how many objects there are.
func Nesting(text []byte) (depth, objects int) {
	looked(len(text))
	now := 0
	for i := 0; i < len(text); {
		switch text[i] {
		case '"':
			if i = stringEnd(text, i); i < 0 {
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
