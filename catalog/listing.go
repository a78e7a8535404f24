package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/catalog/conform"
	"github.com/dynmcp/dynmcp/catalog/input"
	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/pace"
	"github.com/dynmcp/dynmcp/internal/pins"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Listing is everything that one upstream said about itself, verbatim and in its order. It is
// immutable once passed to [Catalog.Index].
type Listing struct {
	Tools, Prompts, Resources, Templates []json.RawMessage

	Protocol           string          // the version in use
	Capabilities, Info json.RawMessage // as in the answer to initialize
	Tasks              Tasks           // that it offers
	AsksRoots          bool            // it has asked a host for roots
	Instructions       string
	Rest               json.RawMessage // an object of the other members of that answer; may be nil

	Refreshed bool                   // it replaces one of the same connection
	Declared  Abilities              // of the host for which it was listed; more than AbleToAll if not known
	Unlisted  map[Abilities][]string // what hosts with other abilities are not listed, see abilities.go

	Failed map[string]string // lists that could not be fetched and are empty here: method → why
}

// index is a listing, parsed once.
type index struct {
	listing *Listing
	stored  *Stored              // the stored listing that it is from; nil for a listing of this run
	open    func() *index        // reads the tools; nil if they are here
	tools   []*entry             // tools that can be offered, in listed order
	words   func() *search.Index // over tools, made when first needed
	pinned  func() []pins.Tool   // tools as they are pinned, made when first needed

	prompts, resources, templates []named

	hidden   map[string]hiddenTool // tools that are left out, by name
	warnings []string              // what was left out, and why
}

// hiddenTool is a tool that cannot be offered, and why.
type hiddenTool struct {
	entry *entry
	why   string
}

// entry is one tool of a listing.
type entry struct {
	name, title, description   string
	raw                        json.RawMessage
	typed                      json.RawMessage   // raw, fit for typed hosts
	input, output, annotations json.RawMessage   // nil if absent
	onlyTask                   bool              // execution.taskSupport is "required"
	schemas                    []json.RawMessage // all, including those of duplicate members
	check                      *input.Schema     // of inputs
}

// named is a prompt, resource or template with the member that identifies it.
type named struct {
	id  string
	raw json.RawMessage
}

func newIndex(l *Listing) *index {
	x := &index{listing: l}
	x.addTools()
	x.addOthers()
	return x
}

// addTools reads the tools.
func (x *index) addTools() {
	x.hidden = map[string]hiddenTool{}
	seen := map[string]bool{}
	malformed := tally{kind: "tool"}
	var pacer pace.Pacer
	for i, raw := range x.listing.Tools {
		pacer.Step()
		e := readTool(raw)
		var f *conform.Fault
		if e.typed, f = conform.Tool.Entry(raw); f != nil {
			malformed.add(i, e.name, f)
			x.hidden[e.name] = hiddenTool{e, f.String()}
			continue
		}
		why := e.unfit()
		if why == "" && seen[e.name] {
			why = "an earlier tool has the same name"
		}
		if why != "" {
			x.warnf("tool %d %s is left out: %s", i+1, display.Name(e.name), why)
			x.hidden[e.name] = hiddenTool{e, why}
			continue
		}
		seen[e.name] = true
		x.tools = append(x.tools, e)
	}
	x.warnings = append(x.warnings, malformed.warnings()...)
	x.words = sync.OnceValue(func() *search.Index { return indexOf(x.tools) })
	x.pinned = sync.OnceValue(x.pin)
}

// indexOf makes the index of tools for searches.
func indexOf(tools []*entry) *search.Index {
	return search.NewIndex(len(tools), func(i int) search.Doc {
		e := tools[i]
		return search.Doc{Name: e.name, Title: e.title, Description: e.description, Input: e.input}
	})
}

// addOthers reads the prompts, resources and templates.
func (x *index) addOthers() {
	l := x.listing
	x.prompts = x.readNamed("prompt", "name", l.Prompts, conform.Prompt)
	x.resources = x.readNamed("resource", "uri", l.Resources, conform.Resource)
	x.templates = x.readNamed("resource template", "uriTemplate", l.Templates, conform.Template)
	for _, method := range slices.Sorted(maps.Keys(l.Failed)) {
		x.warnf("%s is empty until its server answers: %s", method, display.Cut(display.Fold(l.Failed[method]), 200))
	}
}

func (x *index) warnf(format string, args ...any) {
	x.warnings = append(x.warnings, fmt.Sprintf(format, args...))
}

// readTool reads the indexed members of a tool object. Of duplicate members the last counts,
// as for other JSON readers. A member of the wrong type counts as absent.
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
		case "execution":
			e.onlyTask = wire.EqualString(wire.Get(value, "taskSupport"), "required")
		}
	}
	e.check = input.New(e.input)
	return e
}

// present returns nil for null.
func present(value json.RawMessage) json.RawMessage {
	if string(value) == "null" {
		return nil
	}
	return value
}

// Limits of offered tools: a model cannot copy a longer name, and a larger schema is an
// attack, not a description.
const (
	maxName          = 128 // UTF-16 units
	maxSchema        = 256 << 10
	maxSchemaDepth   = 64
	maxSchemaObjects = 2000
)

// unfit returns why a tool cannot be offered, "" if it can.
func (e *entry) unfit() string {
	switch {
	case e.name == "":
		return "it has no name"
	case display.Units(e.name) > maxName:
		return fmt.Sprintf("its name is longer than %d characters", maxName)
	case strings.ContainsFunc(e.name, display.Invisible) || strings.ContainsRune(e.name, '\uFFFD'):
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

// readNamed keeps the entries that typed hosts accept.
func (x *index) readNamed(kind, key string, list []json.RawMessage, is conform.Check) []named {
	var kept []named
	malformed := tally{kind: kind}
	for i, raw := range list {
		typed, f := is.Entry(raw)
		id, _ := wire.Text(wire.Get(raw, key))
		if f != nil {
			malformed.add(i, id, f)
			continue
		}
		kept = append(kept, named{id, typed})
	}
	x.warnings = append(x.warnings, malformed.warnings()...)
	return kept
}

// A tally counts the malformed entries of one list, for one warning.
type tally struct {
	kind  string
	n     int
	named []string // the first of them, and what is wrong
}

// maxNamed is how many malformed entries of a list its warning names.
const maxNamed = 5

func (t *tally) add(position int, name string, f *conform.Fault) {
	if t.n++; t.n > maxNamed {
		return
	}
	which := display.Name(name)
	if name == "" {
		which = strconv.Itoa(position + 1)
	}
	t.named = append(t.named, t.kind+" "+which+": "+f.String())
}

// warnings returns the warning, if one is due.
func (t *tally) warnings() []string {
	if t.n == 0 {
		return nil
	}
	w := "malformed and left out: " + strings.Join(t.named, "; ")
	if more := t.n - len(t.named); more > 0 {
		w += fmt.Sprintf("; and %d more", more)
	}
	return []string{w}
}

// Check returns the problems of a listing for a declared server: broken tools that its filter
// does not hide, and aliases that are another tool's name.
func (c *Catalog) Check(name string, l *Listing) (broken, clashes []string) {
	s, ok := c.declared(name)
	if !ok {
		return nil, nil
	}
	x := newIndex(l)
	listed := map[string]bool{}
	for _, e := range x.tools {
		listed[e.name] = true
	}
	for _, tool := range slices.Sorted(maps.Keys(s.Aliases)) {
		if alias := s.Aliases[tool]; alias != tool && listed[tool] && listed[alias] {
			clashes = append(clashes, fmt.Sprintf("tool %s has the alias %s, which is another tool's name; give one of them another in path_aliases", display.Name(tool), display.Name(alias)))
		}
	}
	return x.broken(NewFilter(s.Filter)), clashes
}

// Broken returns the tools of a server that pass f but are left out because of their
// definitions, each with the reason.
func (v *View) Broken(server string, f Filter) []string {
	if p := v.server[server]; p != nil && p.index != nil {
		return p.index.broken(NewFilter(p.server.Filter), f)
	}
	return nil
}

func (x *index) broken(filters ...Filter) []string {
	var all []string
tools:
	for _, name := range slices.Sorted(maps.Keys(x.hidden)) {
		h := x.hidden[name]
		if h.why == whyUnlisted {
			continue
		}
		for _, f := range filters {
			if !f.Passes(name, AccessOf(h.entry.annotations)) {
				continue tools
			}
		}
		all = append(all, fmt.Sprintf("tool %s is broken: %s", display.Name(name), h.why))
	}
	return all
}
