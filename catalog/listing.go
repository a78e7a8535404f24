package catalog

import (
	"encoding/json"
	"fmt"
	"strings"

	"dynmcp/internal/wire"
)

// Listing is everything one upstream said about itself, verbatim and in its
// order. It is immutable once given to [Catalog.Index].
type Listing struct {
	Tools, Prompts, Resources, Templates []json.RawMessage

	Capabilities, Info json.RawMessage // as in the answer to initialize
	Instructions       string
	Rest               json.RawMessage // an object of what else was in that answer; may be nil
}

// index is what Index reads out of a listing, once.
type index struct {
	listing *Listing
	tools   []*entry // those that can be offered, listed order
	words   *postings

	prompts, resources, templates []named

	hidden   map[string]string // tools that are left out, by name, and why
	warnings []string          // what was left out, and why
}

// entry is one tool of a listing.
type entry struct {
	name, title, description   string
	raw                        json.RawMessage
	input, output, annotations json.RawMessage   // nil if absent
	schemas                    []json.RawMessage // every one, also of two of one name
}

// named is a prompt, resource or template with the member that identifies it.
type named struct {
	id  string
	raw json.RawMessage
}

func newIndex(l *Listing) *index {
	x := &index{listing: l, hidden: map[string]string{}}
	seen := map[string]bool{}
	for i, raw := range l.Tools {
		e := readTool(raw)
		why := e.unfit()
		if why == "" && seen[e.name] {
			why = "an earlier tool has the same name"
		}
		if why != "" {
			x.warnf("tool %d %s is left out: %s", i+1, shown(e.name), why)
			x.hidden[e.name] = why
			continue
		}
		seen[e.name] = true
		x.tools = append(x.tools, e)
	}
	x.words = newPostings(x.tools)
	x.prompts = x.readNamed("prompt", "name", l.Prompts)
	x.resources = x.readNamed("resource", "uri", l.Resources)
	x.templates = x.readNamed("resource template", "uriTemplate", l.Templates)
	return x
}

func (x *index) warnf(format string, args ...any) {
	x.warnings = append(x.warnings, fmt.Sprintf(format, args...))
}

// readTool reads the indexed members of a tool object. A member given twice
// counts as its last, as JSON readers do; one of the wrong type as absent.
func readTool(raw json.RawMessage) *entry {
	e := &entry{raw: raw}
	if !wire.Valid(raw) {
		return e
	}
	for key, value := range wire.Members(raw) {
		switch name, _ := wire.Text(key); name {
		case "name":
			e.name, _ = wire.Text(value)
		case "title":
			e.title, _ = wire.Text(value)
		case "description":
			e.description, _ = wire.Text(value)
		case "inputSchema":
			e.input = value
			e.schemas = append(e.schemas, value)
		case "outputSchema":
			e.output = present(value)
			e.schemas = append(e.schemas, value)
		case "annotations":
			e.annotations = present(value)
		}
	}
	return e
}

// present turns null into nothing.
func present(value json.RawMessage) json.RawMessage {
	if string(value) == "null" {
		return nil
	}
	return value
}

// Bounds of what is offered: a model can copy a longer name no more than an
// invisible one, and a schema past these is a bomb, not a description.
const (
	maxName          = 128 // UTF-16 units
	maxSchema        = 256 << 10
	maxSchemaDepth   = 64
	maxSchemaObjects = 2000
)

// unfit says why a tool cannot be offered, "" if it can.
func (e *entry) unfit() string {
	switch {
	case e.name == "":
		return "it has no name"
	case units(e.name) > maxName:
		return fmt.Sprintf("its name is longer than %d characters", maxName)
	case strings.ContainsFunc(e.name, invisible) || strings.ContainsRune(e.name, '\uFFFD'):
		return "its name has characters that cannot be seen or typed"
	}
	for _, schema := range e.schemas {
		depth, objects := wire.Nesting(schema)
		switch {
		case len(schema) > maxSchema:
			return fmt.Sprintf("its schema is larger than %d bytes", maxSchema)
		case depth > maxSchemaDepth:
			return fmt.Sprintf("its schema nests deeper than %d", maxSchemaDepth)
		case objects > maxSchemaObjects:
			return fmt.Sprintf("its schema has more than %d objects", maxSchemaObjects)
		}
	}
	return ""
}

// readNamed keeps the entries that have the member that identifies them; one
// without would make strict hosts refuse the whole list.
func (x *index) readNamed(kind, key string, list []json.RawMessage) []named {
	var kept []named
	for i, raw := range list {
		id, ok := wire.Text(wire.Get(raw, key))
		if !ok || !wire.Valid(raw) {
			x.warnf("%s %d is left out: it has no %s", kind, i+1, key)
			continue
		}
		kept = append(kept, named{id, raw})
	}
	return kept
}

// shown quotes a name from outside for a warning.
func shown(name string) string { return quote(cut(fold(name), 60)) }

func quote(s string) string { return string(wire.Quote(s)) }
