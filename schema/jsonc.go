package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tailscale/hujson"
)

// parseJSON reads JSON with comments and trailing commas.
func parseJSON(src *source) (*node, *Error) {
	value, err := hujson.Parse(src.data)
	if err != nil && value.Value == nil && errors.Is(err, io.ErrUnexpectedEOF) {
		return &node{at: pos{1, 1}}, nil // nothing but comments
	}
	if err != nil {
		return nil, jsonError(src, err)
	}
	c := &cursor{data: src.data}
	return c.node(value), nil
}

func (c *cursor) node(v hujson.Value) *node {
	n := &node{at: c.to(v.StartOffset)}
	switch v := v.Value.(type) {
	case *hujson.Object:
		n.kind = object
		for _, m := range v.Members {
			key := member{key: m.Name.Value.(hujson.Literal).String(), at: c.to(m.Name.StartOffset)}
			key.value = c.node(m.Value)
			n.members = append(n.members, key)
		}
	case *hujson.Array:
		n.kind = list
		for _, item := range v.Elements {
			n.items = append(n.items, c.node(item))
		}
	case hujson.Literal:
		n.scalar = string(v)
		switch v.Kind() {
		case '"':
			n.kind, n.scalar = text, v.String()
		case 't', 'f':
			n.kind = boolean
		case 'n':
			n.kind = null
		default:
			n.kind = number
		}
	}
	return n
}

// jsonError describes a parse error without quoting the file, which may have a
// secret there that somebody forgot to quote. The parser has the position, in
// bytes, only in its message; to find it otherwise would take a second parser. The form
// of the message is held by the malformed files of testdata, and where it is another
// the error has no position.
func jsonError(src *source, err error) *Error {
	var line, col int
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &col); scanErr != nil {
		return &Error{File: src.name, Line: 1, Column: 1, Err: errors.New("malformed JSON")}
	}
	offset := 0
	for range line - 1 {
		offset += bytes.IndexByte(src.data[offset:], '\n') + 1
	}
	offset += col - 1
	p := (&cursor{data: src.data}).to(offset)
	what, hint := jsonTrouble(src.data, offset, err)
	return &Error{File: src.name, Line: p.line, Column: p.col, Err: errors.New("malformed JSON: " + what), Hint: hint}
}

func jsonTrouble(data []byte, offset int, err error) (what, hint string) {
	inner := errors.Unwrap(err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the file ends too early", `close every {, [ and "`
	case strings.TrimSpace(string(data[:offset])) == "" && data[offset] != '"':
		return "a JSON config begins with {", "if this is YAML, call the file .yaml"
	case !strings.HasPrefix(inner.Error(), "invalid literal") && data[offset] == '\'':
		return "text in single quotes", "use double quotes"
	case !strings.HasPrefix(inner.Error(), "invalid literal"):
		if strings.IndexByte(`"{[`, data[offset]) >= 0 {
			hint = "is there a comma missing before it?"
		}
		return inner.Error(), hint
	case data[offset] == '"':
		return "text that JSON does not allow", `write line breaks as \n and backslashes as \\`
	default:
		return "a word or number that is not JSON", "put keys and texts in double quotes"
	}
}
