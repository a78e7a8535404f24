// Package entry reads the entries of a server's lists, and leaves out those that no host could use.
package entry

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/conform"
	"github.com/dynmcp/dynmcp/catalog/input"
	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/pace"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Tool is one tool of a listing.
type Tool struct {
	Name, Title, Description   string
	Raw                        json.RawMessage
	Typed                      json.RawMessage // Raw, fit for typed hosts
	Input, Output, Annotations json.RawMessage // nil if absent
	Access                     toolglob.Access // according to the annotations
	Class                      string          // for the rules of a policy
	OnlyTask                   bool            // execution.taskSupport is "required"
	OnlyViews                  bool            // only views of MCP Apps call it, no model
	Check                      *input.Schema   // of inputs

	schemas []json.RawMessage // all, including those of duplicate members
}

// LeftOut is a tool that cannot be offered, and why.
type LeftOut struct {
	Tool *Tool
	Why  string
}

// Named is a prompt, resource or template with the member that identifies it.
type Named struct {
	ID  string
	Raw json.RawMessage
}

// A Reader reads lists, and warns of the entries that it leaves out.
type Reader struct{ Warnings []string }

// Tools returns the tools that can be offered, in their order, and by name those that cannot.
func (r *Reader) Tools(list []json.RawMessage) (tools []*Tool, out map[string]LeftOut) {
	out = map[string]LeftOut{}
	seen := map[string]bool{}
	malformed := tally{kind: "tool"}
	var pacer pace.Pacer
	for i, raw := range list {
		pacer.Step()
		t := readTool(raw)
		var f *conform.Fault
		if t.Typed, f = conform.Tool.Entry(raw); f != nil {
			malformed.add(i, t.Name, f)
			out[t.Name] = LeftOut{t, f.String()}
			continue
		}
		why := t.unfit()
		if why == "" && seen[t.Name] {
			why = "an earlier tool has the same name"
		}
		if why != "" {
			r.Warnf("tool %d %s is left out: %s", i+1, display.Name(t.Name), why)
			out[t.Name] = LeftOut{t, why}
			continue
		}
		seen[t.Name] = true
		tools = append(tools, t)
	}
	r.warnOf(malformed)
	return tools, out
}

// Named returns the entries that typed hosts accept. key is the member that identifies an entry.
func (r *Reader) Named(kind, key string, list []json.RawMessage, is conform.Check) (kept []Named) {
	malformed := tally{kind: kind}
	for i, raw := range list {
		typed, f := is.Entry(raw)
		id, _ := wire.Text(wire.Get(raw, key))
		if f != nil {
			malformed.add(i, id, f)
			continue
		}
		kept = append(kept, Named{id, typed})
	}
	r.warnOf(malformed)
	return kept
}

// Warnf adds a warning.
func (r *Reader) Warnf(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// readTool reads the indexed members of a tool object. Of duplicate members the last counts,
// as for other JSON readers. A member of the wrong type counts as absent.
func readTool(raw json.RawMessage) *Tool {
	t := &Tool{Raw: raw}
	if !wire.Valid(raw) {
		return t
	}
	for key, value := range wire.Members(raw) {
		switch name, _ := wire.Text(key); name {
		case "name":
			t.Name, _ = wire.Text(value)
		case "title":
			t.Title, _ = wire.Text(value)
		case "description":
			t.Description, _ = wire.Text(value)
		case "inputSchema":
			t.Input = value
			t.schemas = append(t.schemas, value)
		case "outputSchema":
			t.Output = present(value)
			t.schemas = append(t.schemas, value)
		case "annotations":
			t.Annotations = present(value)
		case "execution":
			t.OnlyTask = wire.EqualString(wire.Get(value, "taskSupport"), "required")
		case "_meta":
			t.OnlyViews = IsForViews(value)
		}
	}
	t.Check, t.Access, t.Class = input.New(t.Input), toolglob.AccessOf(t.Annotations), toolglob.ClassOf(t.Annotations)
	return t
}

// IsForViews reports whether the _meta of a tool says that only views of MCP Apps call it.
func IsForViews(meta json.RawMessage) bool { return !IsVisibleTo("model", meta) }

// IsVisibleTo reports whether the _meta of a tool lets somebody call it: the model, or the app, which are
// the views of the server.
func IsVisibleTo(somebody string, meta json.RawMessage) bool {
	visibility := wire.Get(meta, "ui", "visibility")
	for who := range wire.Elements(visibility) {
		if wire.EqualString(who, somebody) {
			return true
		}
	}
	return len(visibility) == 0 || visibility[0] != '['
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
	MaxName    = 128 // UTF-16 units
	MaxSchema  = 256 << 10
	MaxDepth   = 64
	MaxObjects = 2000
)

// unfit returns why a tool cannot be offered, "" if it can.
func (t *Tool) unfit() string {
	if why := UnfitName(t.Name); why != "" {
		return why
	}
	for _, schema := range t.schemas {
		depth, objects := wire.Nesting(schema)
		switch {
		case len(schema) > MaxSchema:
			return fmt.Sprintf("its schema is larger than %d bytes", MaxSchema)
		case depth > MaxDepth:
			return fmt.Sprintf("its schema nests deeper than %d", MaxDepth)
		case objects > MaxObjects:
			return fmt.Sprintf("its schema has more than %d objects", MaxObjects)
		}
	}
	return ""
}

// UnfitName returns why a tool cannot have a name, "" if it can.
func UnfitName(name string) string {
	switch {
	case name == "":
		return "it has no name"
	case display.Units(name) > MaxName:
		return fmt.Sprintf("its name is longer than %d characters", MaxName)
	case strings.ContainsFunc(name, display.Invisible) || strings.ContainsRune(name, '\uFFFD'):
		return "its name has characters that cannot be seen or typed"
	}
	return ""
}

// Index makes the index of tools for searches.
func Index(tools []*Tool) *search.Index {
	return search.NewIndex(len(tools), func(i int) search.Doc {
		t := tools[i]
		return search.Doc{Name: t.Name, Title: t.Title, Description: t.Description, Input: t.Input}
	})
}

// A tally counts the malformed entries of one list, for one warning.
type tally struct {
	kind  string
	n     int
	named []string // the first of them, and what is wrong
}

// MaxNamed is how many entries a warning names.
const MaxNamed = 5

func (t *tally) add(position int, name string, f *conform.Fault) {
	if t.n++; t.n > MaxNamed {
		return
	}
	which := display.Name(name)
	if name == "" {
		which = strconv.Itoa(position + 1)
	}
	t.named = append(t.named, t.kind+" "+which+": "+f.String())
}

func (r *Reader) warnOf(t tally) {
	more := ""
	if t.n > len(t.named) {
		more = fmt.Sprintf("; and %d more", t.n-len(t.named))
	}
	if t.n > 0 {
		r.Warnf("malformed and left out: %s%s", strings.Join(t.named, "; "), more)
	}
}
