package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Members yields the members of the object obj, a text known to be JSON, in
// order: the name with its quotes and the value, both as slices of obj. It ends
// early where obj is no object.
func Members(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		i := space(obj, 0)
		if i >= len(obj) || obj[i] != '{' {
			return
		}
		for i = space(obj, i+1); i < len(obj) && obj[i] == '"'; i = space(obj, i+1) {
			k := stepString(obj, i)
			if k < 0 {
				return
			}
			colon := space(obj, k)
			if colon >= len(obj) || obj[colon] != ':' {
				return
			}
			value := space(obj, colon+1)
			end := step(obj, value)
			if end <= value || !yield(obj[i:k], obj[value:end]) {
				return
			}
			if i = space(obj, end); i >= len(obj) || obj[i] != ',' {
				return
			}
		}
	}
}

// Elements yields the elements of the array arr, as Members does for objects.
func Elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := space(arr, 0)
		if i >= len(arr) || arr[i] != '[' {
			return
		}
		for i = space(arr, i+1); i < len(arr) && arr[i] != ']'; i = space(arr, i+1) {
			end := step(arr, i)
			if end <= i || !yield(arr[i:end]) {
				return
			}
			if i = space(arr, end); i >= len(arr) || arr[i] != ',' {
				return
			}
		}
	}
}

// Get returns the value of obj's member name as a slice of obj, nil where
// there is none. Of several members with one name it returns the last, as
// encoding/json does.
func Get(obj []byte, name string) []byte {
	var found []byte
	for key, value := range Members(obj) {
		if KeyIs(key, name) {
			found = value
		}
	}
	return found
}

// Pair returns the values of two members of obj, nil for one that is absent. It
// is an error if obj is no object, has one of the names twice, or has a name that
// some readers take for one of them: which of two "name" members counts must
// never depend on the reader.
func Pair(obj []byte, first, second string) (a, b []byte, err error) {
	if !IsObject(obj) {
		return nil, nil, fmt.Errorf("an object is wanted, got %s", Kind(obj))
	}
	for key, value := range Members(obj) {
		var twice bool
		switch {
		case KeyIs(key, first):
			a, twice = value, a != nil
		case KeyIs(key, second):
			b, twice = value, b != nil
		case resembles(key, first) || resembles(key, second):
			return nil, nil, fmt.Errorf("member %s can be taken for %q or %q", key, first, second)
		}
		if twice {
			return nil, nil, fmt.Errorf("member %s is there twice", key)
		}
	}
	return a, b, nil
}

// resembles reports whether a careless reader takes a member's name, with its
// quotes, for another: one that does not heed case, as Go's encoding/json, or one
// for which a text ends with a NUL.
func resembles(key []byte, name string) bool {
	if len(key) < len(name)+2 || key[1]|0x20 != name[0]|0x20 && key[1] != '\\' && key[1] < 0x80 {
		return false // most names, at no cost
	}
	text, _ := Text(key)
	text, _, _ = strings.Cut(text, "\x00")
	return strings.EqualFold(text, name)
}

// Set returns a copy of obj in which the member name has the given value,
// added at the end where there is none; every other byte stays. name is
// written as it is. What is no object is returned as it is.
func Set(obj []byte, name string, value []byte) []byte {
	if old := Get(obj, name); old != nil {
		return Splice(obj, old, value)
	}
	end := bytes.LastIndexByte(obj, '}')
	if end < 0 || !IsObject(obj) {
		return obj
	}
	out := make([]byte, 0, len(obj)+len(name)+len(value)+4)
	out = append(out, obj[:end]...)
	if !isEmptyObject(obj) {
		out = append(out, ',')
	}
	out = append(out, '"')
	out = append(out, name...)
	out = append(out, '"', ':')
	out = append(out, value...)
	return append(out, obj[end:]...)
}

// Splice returns a copy of whole in which part, a slice of whole, is replaced.
func Splice(whole, part, with []byte) []byte {
	at := Offset(whole, part)
	out := make([]byte, 0, len(whole)-len(part)+len(with))
	out = append(out, whole[:at]...)
	out = append(out, with...)
	return append(out, whole[at+len(part):]...)
}

// Offset returns where part, a slice of whole that is not empty, begins. It
// panics where part is a slice of something else, or where one of the two was
// cut with a capacity of its own: they must share their end.
func Offset(whole, part []byte) int {
	at := cap(whole) - cap(part)
	if at < 0 || at >= len(whole) || &whole[at] != &part[0] {
		panic("wire: the part is no slice of the whole")
	}
	return at
}

// Delete returns a copy of obj without the members of these names, every one of
// them, and the commas that are not needed any more; every other byte stays.
func Delete(obj []byte, names ...string) []byte {
	out := make([]byte, 0, len(obj))
	kept, from := false, 0 // a member stays; what is before from was dealt with
	for key, value := range Members(obj) {
		start, end := Offset(obj, key), Offset(obj, value)+len(value)
		if !slices.ContainsFunc(names, func(name string) bool { return KeyIs(key, name) }) {
			out = append(out, obj[from:end]...)
			kept, from = true, end
			continue
		}
		if from == 0 {
			out = append(out, obj[:start]...) // the brace and what is before the first member
		}
		from = end
		if after := space(obj, end); !kept && after < len(obj) && obj[after] == ',' {
			from = space(obj, after+1)
		}
	}
	if !kept && from > 0 {
		return []byte("{}")
	}
	return append(out, obj[from:]...)
}

// IsObject reports whether the value starts as an object.
func IsObject(value []byte) bool {
	i := space(value, 0)
	return i < len(value) && value[i] == '{'
}

// Kind names the JSON type of a value, for error messages.
func Kind(value []byte) string {
	i := space(value, 0)
	if i >= len(value) {
		return "nothing"
	}
	switch value[i] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// Text returns the content of a JSON string and whether value is one.
func Text(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1]), true
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, err == nil
}

// Quote returns s as a JSON string, with nothing escaped that need not be.
func Quote(s string) []byte { return AppendQuote(make([]byte, 0, len(s)+2), s) }

// AppendQuote appends what Quote returns to dst.
func AppendQuote(dst []byte, s string) []byte {
	if isPlain(s) {
		return append(append(append(dst, '"'), s...), '"')
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(s) // a string always encodes
	return append(dst, bytes.TrimRight(b.Bytes(), "\n")...)
}

// isPlain reports whether s is ASCII without anything to escape.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Fold replaces the line breaks between the tokens of a JSON text by one space
// each, in place, so that the text fits on one line; "\r\n" is one break.
func Fold(text []byte) []byte {
	if !hasBreaks(text) {
		return text
	}
	out, last := text[:0], byte(0)
	for _, c := range text {
		switch {
		case c == '\n' && last == '\r':
		case c == '\n' || c == '\r':
			out = append(out, ' ')
		default:
			out = append(out, c)
		}
		last = c
	}
	return out
}

func isEmptyObject(obj []byte) bool {
	i := space(obj, 0)
	i = space(obj, i+1)
	return i < len(obj) && obj[i] == '}'
}

// KeyIs compares a JSON string, such as a member's name with its quotes, with
// a plain text. What is no string is not equal to any.
func KeyIs(key []byte, name string) bool {
	switch n := len(key) - 2; {
	case n < len(name) || key[0] != '"':
		return false // what is written takes no less room than what it means
	case n == len(name):
		return string(key[1:1+n]) == name && bytes.IndexByte(key, '\\') < 0
	case bytes.IndexByte(key, '\\') < 0:
		return false
	}
	text, ok := Text(key)
	return ok && text == name
}

func hasBreaks(text []byte) bool {
	return bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0
}
