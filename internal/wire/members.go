package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// A Span is the position of a part of a text. The zero Span is no part.
type Span struct{ Off, Len int }

// In returns the part of text, nil for the zero Span.
func (s Span) In(text []byte) []byte {
	if s.Len == 0 {
		return nil
	}
	end := s.Off + s.Len
	return text[s.Off:end:end]
}

// Spans yields the positions of the members of the object obj, a text known to be JSON,
// in order: the name with its quotes, and the value. If obj is not an object, it
// yields none.
func Spans(obj []byte) iter.Seq2[Span, Span] {
	return func(yield func(name, value Span) bool) { spans(obj, Span{}, yield) }
}

// spans yields the members of obj. It does not read the value whose position is known.
func spans(obj []byte, known Span, yield func(name, value Span) bool) {
	i := space(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return
	}
	for i = space(obj, i+1); i < len(obj) && obj[i] == '"'; i = space(obj, i+1) {
		k := stringEnd(obj, i)
		if k < 0 {
			return
		}
		colon := space(obj, k)
		if colon >= len(obj) || obj[colon] != ':' {
			return
		}
		value, end := space(obj, colon+1), known.Off+known.Len
		if value != known.Off {
			end = valueEnd(obj, value)
			looked(end - value)
		}
		if end <= value || !yield(Span{i, k - i}, Span{value, end - value}) {
			return
		}
		if i = space(obj, end); i >= len(obj) || obj[i] != ',' {
			return
		}
	}
}

// Members yields the names, with their quotes, and the values of the members of
// obj, as Spans does.
func Members(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for name, value := range Spans(obj) {
			if !yield(name.In(obj), value.In(obj)) {
				return
			}
		}
	}
}

// Elements yields the elements of the array arr, as Members does for an object.
func Elements(arr []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		i := space(arr, 0)
		if i >= len(arr) || arr[i] != '[' {
			return
		}
		for i = space(arr, i+1); i < len(arr) && arr[i] != ']'; i = space(arr, i+1) {
			end := valueEnd(arr, i)
			looked(end - i)
			if end <= i || !yield(arr[i:end]) {
				return
			}
			if i = space(arr, end); i >= len(arr) || arr[i] != ',' {
				return
			}
		}
	}
}

// Array returns an array of elements.
func Array[E ~[]byte](elements []E) json.RawMessage {
	size := 2
	for _, e := range elements {
		size += len(e) + 1
	}
	array := append(make([]byte, 0, size), '[')
	for i, e := range elements {
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, e...)
	}
	return append(array, ']')
}

// Get returns the value that Find finds, nil if absent.
func Get(obj []byte, path ...string) []byte { return (*Outline)(nil).Get(obj, path...) }

// Get returns the value that Find finds, nil if absent.
func (o *Outline) Get(obj []byte, path ...string) []byte {
	for _, name := range path {
		var found []byte
		for key, value := range o.Spans(obj) {
			if EqualString(key.In(obj), name) {
				found = value.In(obj)
			}
		}
		obj = found
	}
	return obj
}

// GetStrict returns the values of two members of obj, nil for an absent one. It is
// an error if obj is not an object, has one of the names twice, or has a name that some
// readers confuse with one of them: the choice between two "name" members must not depend
// on the reader.
func GetStrict(obj []byte, first, second string) (a, b []byte, err error) {
	return Object{Text: obj}.GetStrict(first, second)
}

// FindStrict returns the positions of the values that GetStrict returns.
func (o *Outline) FindStrict(obj []byte, first, second string) (a, b Span, err error) {
	f := strictFind{first: first, second: second, err: notObject(obj)}
	for name, value := range o.Spans(obj) {
		f.look(name.In(obj), value)
	}
	return f.found()
}

// A strictFind looks at members for FindStrict.
type strictFind struct {
	first, second string
	a, b          Span
	err           error
}

func notObject(obj []byte) error {
	if !IsObject(obj) {
		return fmt.Errorf("want an object, got %s", TypeName(obj))
	}
	return nil
}

func (f *strictFind) look(key []byte, value Span) {
	twice := false
	switch {
	case f.err != nil:
	case EqualString(key, f.first):
		f.a, twice = value, f.a.Len > 0
	case EqualString(key, f.second):
		f.b, twice = value, f.b.Len > 0
	case resembles(key, f.first) || resembles(key, f.second):
		f.err = fmt.Errorf("member %s can be taken for %q or %q", key, f.first, f.second)
	}
	if twice {
		f.err = fmt.Errorf("member %s is there twice", key)
	}
}

func (f *strictFind) found() (a, b Span, err error) {
	if f.err != nil {
		return Span{}, Span{}, f.err
	}
	return f.a, f.b, nil
}

// resembles reports whether a lax reader confuses a member's name, given with its
// quotes, with another: a reader that ignores case, like Go's encoding/json, or one whose
// strings end at a NUL.
func resembles(key []byte, name string) bool {
	if len(key) < len(name)+2 || key[1]|0x20 != name[0]|0x20 && key[1] != '\\' && key[1] < 0x80 {
		return false // decides for most names at no cost
	}
	text, _ := Text(key)
	text, _, _ = strings.Cut(text, "\x00")
	return strings.EqualFold(text, name)
}

// IsObject reports whether the value starts as an object.
func IsObject(value []byte) bool {
	i := space(value, 0)
	return i < len(value) && value[i] == '{'
}

// TypeName names the JSON type of a value, for error messages.
func TypeName(value []byte) string {
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

// Text returns the content of a JSON string and whether value is one. Bytes that
// are not UTF-8 become U+FFFD, as in encoding/json.
func Text(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	looked(len(value))
	if bytes.IndexByte(value, '\\') < 0 && utf8.Valid(value) {
		return string(value[1 : len(value)-1]), true
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, err == nil
}

// Quote returns s as a JSON string. It escapes only where JSON requires it.
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

// JoinLines replaces each line break between the tokens of a JSON text by a space,
// in place, so that the text is one line. "\r\n" is one break.
func JoinLines(text []byte) []byte {
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

// EqualString reports whether a JSON value, such as a member's name with its quotes,
// is the string text.
func EqualString(value []byte, text string) bool {
	switch n := len(value) - 2; {
	case n < len(text) || value[0] != '"':
		return false // escapes only make a string longer
	case n == len(text):
		return string(value[1:1+n]) == text && bytes.IndexByte(value, '\\') < 0
	case bytes.IndexByte(value, '\\') < 0:
		return false
	}
	decoded, ok := Text(value)
	return ok && decoded == text
}

func hasBreaks(text []byte) bool {
	return bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0
}

// Locate returns the position of part in text, the zero Span if part is empty or not a
// slice of text.
func Locate(text, part []byte) Span {
	if len(text) == 0 || len(part) == 0 {
		return Span{}
	}
	off := uintptr(unsafe.Pointer(&part[0])) - uintptr(unsafe.Pointer(&text[0])) // compared only
	if off >= uintptr(len(text)) || off+uintptr(len(part)) > uintptr(len(text)) {
		return Span{}
	}
	return Span{int(off), len(part)}
}
