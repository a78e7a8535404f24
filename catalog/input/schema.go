package input

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Schema is the input schema of a tool. The first Check compiles it, which takes
// milliseconds for a large one.
type Schema struct {
	raw     json.RawMessage
	numbers []number // arguments that must be numbers

	once     sync.Once
	compiled atomic.Bool
	root     map[string]any       // the schema in the form for the library
	resolved *jsonschema.Resolved // nil if the library cannot use it
}

// New returns the schema of these bytes; nil is no schema.
func New(schema json.RawMessage) *Schema {
	return &Schema{raw: schema, numbers: numbersOf(schema)}
}

// number is an argument that must be a number and cannot be a string.
type number struct {
	name  string
	whole bool
}

// numbersOf returns the properties whose own type is a number. Other ways to demand a number
// are ignored.
func numbersOf(schema json.RawMessage) []number {
	var list []number
	for key, property := range wire.Members(wire.Get(schema, "properties")) {
		is := wire.Get(property, "type")
		types := []string{}
		if one, ok := wire.Text(is); ok {
			types = append(types, one)
		}
		for element := range wire.Elements(is) {
			one, _ := wire.Text(element)
			types = append(types, one)
		}
		name, ok := wire.Text(key)
		if whole := slices.Contains(types, "integer"); ok && (whole || slices.Contains(types, "number")) && !slices.Contains(types, "string") {
			list = append(list, number{name, whole && !slices.Contains(types, "number")})
		}
	}
	return list
}

// maxFit is the largest input, in bytes, that FitNumbers reads, because it reads the input of
// each call. maxNumber is the longest string that it takes for a number.
const (
	maxFit    = 64 << 10
	maxNumber = 64
)

// FitNumbers returns the input with strings replaced by the numbers in them where the schema
// wants a number. Every other byte stays. changed describes the replacements, nil if there
// are none. outline is that of the message with the input, and may be nil.
func (s *Schema) FitNumbers(input json.RawMessage, outline *wire.Outline) (_ json.RawMessage, changed []string) {
	if len(s.numbers) == 0 || len(input) > maxFit {
		return input, nil
	}
	var edits []wire.Edit
	for key, at := range outline.Spans(input) {
		value := at.In(input)
		if value[0] != '"' || len(value) > maxNumber {
			continue
		}
		i := slices.IndexFunc(s.numbers, func(n number) bool { return wire.EqualString(key.In(input), n.name) })
		if i < 0 {
			continue
		}
		text, ok := wire.Text(value)
		if !ok || !isNumber(text, s.numbers[i].whole) {
			continue
		}
		edits = append(edits, wire.Edit{Span: at, With: []byte(text)})
		changed = append(changed, fmt.Sprintf("%s: the string %s became the number %s", s.numbers[i].name, value, text))
	}
	if edits == nil {
		return input, nil
	}
	return wire.Replace(input, edits...), changed
}

// isNumber reports whether a text is a JSON number, of digits alone if it is to be
// whole.
func isNumber(text string, whole bool) bool {
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') || !wire.Valid([]byte(text)) {
		return false
	}
	return !whole || !slices.ContainsFunc([]byte(text), func(c byte) bool { return c == '.' || c|0x20 == 'e' || c <= ' ' })
}
