package syntax

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tailscale/hujson"
)

// parseJSON reads JSON with comments and trailing commas.
func parseJSON(src *Source) (*Node, error) {
	value, err := hujson.Parse(src.Data)
	if err != nil && value.Value == nil && errors.Is(err, io.ErrUnexpectedEOF) {
		return &Node{At: Pos{1, 1}}, nil // nothing but comments
	}
	if err != nil {
		return nil, jsonError(src, err)
	}
	c := &cursor{data: src.Data}
	return c.node(value), nil
}

func (c *cursor) node(v hujson.Value) *Node {
	n := &Node{At: c.to(v.StartOffset), From: v.StartOffset, To: v.EndOffset}
	switch v := v.Value.(type) {
	case *hujson.Object:
		n.Kind = Object
		for _, m := range v.Members {
			key := Member{Key: m.Name.Value.(hujson.Literal).String(), At: c.to(m.Name.StartOffset)}
			key.Value = c.node(m.Value)
			n.Members = append(n.Members, key)
		}
	case *hujson.Array:
		n.Kind = List
		for _, item := range v.Elements {
			n.Items = append(n.Items, c.node(item))
		}
	case hujson.Literal:
		n.Scalar = string(v)
		switch v.Kind() {
		case '"':
			n.Kind, n.Scalar = Text, v.String()
		case 't', 'f':
			n.Kind = Boolean
		case 'n':
			n.Kind = Null
		default:
			n.Kind = Number
		}
	}
	return n
}

// jsonError describes a parse error without quoting the file, which may have an unquoted
// secret there. The parser returns the position only in its message, in bytes. The malformed
// files in the testdata of schema test the form of that message. Without it, the error has no
// position.
func jsonError(src *Source, err error) error {
	var line, col int
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &col); scanErr != nil {
		return src.failure(Pos{1, 1}, "malformed JSON", "")
	}
	offset := 0
	for range line - 1 {
		offset += bytes.IndexByte(src.Data[offset:], '\n') + 1
	}
	offset += col - 1
	p := (&cursor{data: src.Data}).to(offset)
	what, hint := jsonTrouble(src.Data, offset, err)
	return src.failure(p, "malformed JSON: "+what, hint)
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
