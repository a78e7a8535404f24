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

// A Schema is the input schema of a tool. It is compiled when it is first checked
// against, which takes milliseconds for a large one.
type Schema struct {
	raw     json.RawMessage
	numbers []number // the arguments that are to be numbers

	once     sync.Once
	compiled atomic.Bool
	root     map[string]any       // the schema as the library can read it
	resolved *jsonschema.Resolved // nil: it cannot
}

// New returns the schema of these bytes, nil being none.
func New(schema json.RawMessage) *Schema {
	return &Schema{raw: schema, numbers: numbersOf(schema)}
}

// number is an argument of a tool that its schema wants to be a number, and
// nothing that a string could be.
type number struct {
	name  string
	whole bool
}

// numbersOf returns the properties of an input schema that are to be numbers.
// Where a schema says so in another way than by the property's own type, they
// are not among them.
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

// maxFit is the largest input, in bytes, whose members are looked at: they are
// looked at for each call. maxNumber is the longest string that is taken for a number.
const (
	maxFit    = 64 << 10
	maxNumber = 64
)

// FitNumbers returns the input with those arguments made numbers that are strings
// which hold one, where the schema wants a number; every other byte stays. It says what was changed, nil where nothing was. The outline is of the
// message that holds the input, and may be nil. Names are compared first: a long text
// is not read.
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
