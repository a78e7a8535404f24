package input

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Schema is the input schema of a tool. The first Check compiles it, which takes
// milliseconds for a large one.
type Schema struct {
	raw json.RawMessage

	parsing  sync.Once
	root     map[string]any // the schema in the form for the library, nil if it is no object
	refAlone bool           // what is beside $ref does not count, as before 2019-09

	compiling sync.Once
	compiled  atomic.Bool
	resolved  *jsonschema.Resolved // nil if the library cannot use it
}

// New returns the schema of these bytes; nil is no schema.
func New(schema json.RawMessage) *Schema { return &Schema{raw: schema} }

// maxFit is the largest input, in bytes, that Fit reads, because it reads the input of each
// call. maxNested is the largest object or list in it: a long value is not read again.
// maxNumber is the longest string that it takes for a number.
const (
	maxFit    = 64 << 10
	maxNested = 8 << 10
	maxNumber = 64
)

// Fit returns the input with strings replaced by the JSON values in them, where the schema
// allows no string and does allow that value. Every other byte stays. changed describes the
// replacements, nil if there are none. outline is that of the message with the input, and may
// be nil.
func (s *Schema) Fit(input json.RawMessage, outline *wire.Outline) (_ json.RawMessage, changed []string) {
	if len(input) > maxFit || !wire.IsObject(input) {
		return input, nil
	}
	s.parsing.Do(s.parse)
	if s.root == nil {
		return input, nil
	}
	f := fitting{schema: s, outline: outline}
	fitted := f.inside(&place{schema: s.root}, input)
	if len(f.changed) == 0 {
		return input, nil
	}
	return fitted, f.changed
}

// A place is a part of a schema.
type place struct {
	schema any
	depth  int // 0 is the root
	read   bool
	takes  kinds                // once read
	check  *jsonschema.Resolved // for use see valid
	tried  bool
}

// kinds returns those that the place takes.
func (p *place) kinds(s *Schema) kinds {
	if !p.read {
		p.read, p.takes = true, s.takes(p.schema, p.depth)
	}
	return p.takes
}

// valid reports whether a value certainly fits the place.
func (p *place) valid(s *Schema, value json.RawMessage) bool {
	if !p.tried {
		p.tried = true
		p.check, _ = resolve(s.part(p.schema))
	}
	var v any
	return p.check != nil && json.Unmarshal(value, &v) == nil && p.check.Validate(v) == nil
}

// A fitting is one walk over an input and its schema.
type fitting struct {
	schema  *Schema
	outline *wire.Outline
	path    []step // to the value that is looked at
	changed []string
}

// A step leads to a member, or to an element.
type step struct {
	name  string
	index int // of an element; -1 for a member
}

// where returns the path as a JSON Pointer without the first slash.
func (f *fitting) where() string {
	var names []string
	for _, s := range f.path {
		if s.index >= 0 {
			s.name = strconv.Itoa(s.index)
		}
		names = append(names, pointerStep(s.name))
	}
	return strings.Join(names, "/")
}

// inside returns an object or a list with the values in it fitted to the schema.
func (f *fitting) inside(p *place, value json.RawMessage) json.RawMessage {
	var edits []wire.Edit
	edit := func(p *place, to step, at wire.Span) {
		if part := at.In(value); p.schema != true {
			f.path = append(f.path, to)
			if fitted := f.value(p, part); !bytes.Equal(fitted, part) {
				edits = append(edits, wire.Edit{Span: at, With: fitted})
			}
			f.path = f.path[:len(f.path)-1]
		}
	}
	if value[0] == '[' {
		elements := &place{schema: f.schema.element(p.schema, p.depth), depth: 1}
		if elements.schema == true {
			return value
		}
		i := 0
		for element := range wire.Elements(value) {
			edit(elements, step{"", i}, wire.Locate(value, element))
			i++
		}
	} else {
		for key, at := range f.outline.Spans(value) {
			if c := value[at.Off]; c != '"' && c != '{' && c != '[' || c == '"' && !mayHold(at.In(value)) {
				continue
			}
			name, _ := wire.Text(key.In(value))
			edit(&place{schema: f.schema.member(p.schema, name, p.depth), depth: 1}, step{name, -1}, at)
		}
	}
	if edits == nil {
		return value
	}
	return wire.Replace(value, edits...)
}

// value returns a value fitted to its place.
func (f *fitting) value(p *place, value json.RawMessage) json.RawMessage {
	switch value[0] {
	case '{', '[':
		if len(value) <= maxNested {
			return f.inside(p, value)
		}
	case '"':
		takes := p.kinds(f.schema)
		if takes&text != 0 || takes&^text == 0 {
			return value
		}
		within, kind := written(value)
		if kind&takes == 0 {
			return value
		}
		before := len(f.changed)
		f.changed = append(f.changed, fmt.Sprintf("%s: %s", f.where(), became(value, within, kind)))
		fitted := within
		if kind&(object|list) != 0 {
			fitted = f.inside(p, within) // the outline knows its own text only
		}
		if p.valid(f.schema, fitted) {
			return fitted
		}
		f.changed = f.changed[:before]
	}
	return value
}

// mayHold reports whether a string may contain a JSON value, by its first character: a text is not read for
// nothing.
func mayHold(value json.RawMessage) bool {
	if len(value) > maxNumber {
		return strings.IndexByte("{[\\ ", value[1]) >= 0
	}
	return strings.IndexByte("{[\\ -0123456789tfn", value[1]) >= 0
}

// written returns the JSON value that a string contains, and its kind, 0 if it is none. A number
// has no space around it; only one of digits alone counts as whole.
func written(value json.RawMessage) (json.RawMessage, kinds) {
	if !mayHold(value) {
		return nil, 0
	}
	content, _ := wire.Text(value)
	bare := strings.Trim(content, " \t\r\n")
	if bare == "" {
		return nil, 0
	}
	kind := kinds(0)
	switch c := bare[0]; {
	case c == '{':
		kind = object
	case c == '[':
		kind = list
	case bare != content || len(value) > maxNumber:
	case bare == "true", bare == "false":
		kind = boolean
	case bare == "null":
		kind = null
	case (c == '-' || '0' <= c && c <= '9') && strings.ContainsAny(bare, ".eE"):
		kind = fraction
	case c == '-' || '0' <= c && c <= '9':
		kind = integer
	}
	if kind == 0 || !wire.Valid([]byte(bare)) {
		return nil, 0
	}
	return wire.JoinLines([]byte(bare)), kind
}

// became describes a replacement for a model.
func became(from, to json.RawMessage, kind kinds) string {
	switch kind {
	case object:
		return "the string became the object in it"
	case list:
		return "the string became the list in it"
	case integer, fraction:
		return fmt.Sprintf("the string %s became the number %s", from, to)
	}
	return fmt.Sprintf("the string %s became %s", from, to)
}

// maxNamed is how many replacements Note names.
const maxNamed = 20

// Note describes replacements for a model.
func Note(changed []string) string {
	shown := slices.Clone(changed[:min(len(changed), maxNamed)])
	for i, line := range shown {
		shown[i] = display.Cut(line, display.LineWidth)
	}
	more := ""
	if n := len(changed) - len(shown); n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return "[dynmcp: the input was changed to fit its schema. " + strings.Join(shown, "; ") + more + "]"
}
