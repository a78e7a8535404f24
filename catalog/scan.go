package catalog

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
)

// member is one member of a JSON object: its key, and where key and value
// stand in the object's bytes.
type member struct {
	key                 string
	keyAt, value, after int // first byte of key, first of value, first after it
}

// members yields the members of a JSON object in order. The bytes must be
// valid JSON; anything but an object has no members.
func members(obj []byte) iter.Seq[member] {
	return func(yield func(member) bool) {
		i := skipSpace(obj, 0)
		if i >= len(obj) || obj[i] != '{' {
			return
		}
		for i = skipSpace(obj, i+1); i < len(obj) && obj[i] == '"'; i = skipSpace(obj, i+1) {
			m := member{keyAt: i}
			i = skipString(obj, i)
			m.key, _ = text(obj[m.keyAt:i])
			m.value = skipSpace(obj, skipSpace(obj, i)+1) // past the colon
			m.after = skipValue(obj, m.value)
			if !yield(m) {
				return
			}
			i = skipSpace(obj, m.after) // at a comma or the closing brace
			if i >= len(obj) || obj[i] != ',' {
				return
			}
		}
	}
}

// text decodes a JSON string; false for any other value.
func text(raw []byte) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	for _, c := range raw[1 : len(raw)-1] {
		if c == '\\' || c >= 0x80 { // escapes, and bytes that may not be UTF-8
			return s, json.Unmarshal(raw, &s) == nil
		}
	}
	return string(raw[1 : len(raw)-1]), true
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index after the string that starts at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// skipValue returns the index after the value that starts at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the bracket closes what encloses a bare value
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

// shape returns how deep objects and arrays nest in b, and how many objects
// there are.
func shape(b []byte) (depth, objects int) {
	now := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case '{', '[':
			if b[i] == '{' {
				objects++
			}
			now++
			depth = max(depth, now)
		case '}', ']':
			now--
		}
	}
	return depth, objects
}

// quote encodes s as a JSON string, leaving <, > and & as they are.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
