package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"dynmcp/internal/wire"
)

// Details returns a tool's full definition as text: name, description, schemas
// and annotations. Schemas are the upstream's bytes, but characters that
// cannot be seen are written as JSON escapes.
func (v *View) Details(t *Tool) string { return t.details(true) }

// Brief is Details without an output schema that is large, which it names with
// its size: the largest met are five times as long as all else.
func (v *View) Brief(t *Tool) string { return t.details(false) }

// briefSchema is the largest output schema that Brief shows, in UTF-16 units:
// about 300 tokens.
const briefSchema = 300 * unitsPerToken

// unitsPerToken is about what models read as one token of JSON Schema, measured
// over the output schemas of real servers.
const unitsPerToken = 4

func (t *Tool) details(full bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Name: %s\n", t.Name)
	if title := fold(t.Title); title != "" {
		fmt.Fprintf(&b, "Title: %s\n", title)
	}
	if description := strings.TrimSpace(clean(t.Description)); description != "" {
		fmt.Fprintf(&b, "Description: %s\n", description)
	}
	if t.InputSchema != nil {
		fmt.Fprintf(&b, "\nInput Schema:\n%s\n", visible(t.InputSchema))
	}
	if t.ExampleArgs != nil {
		fmt.Fprintf(&b, "\nExample of an input:\n%s\n", visible(t.ExampleArgs))
	}
	if t.OutputSchema != nil {
		schema := visible(t.OutputSchema)
		if n := units(schema); n > briefSchema && !full {
			schema = fmt.Sprintf(`left out, about %d tokens: discover_tool {"tool_name": %s, "full": true} shows it.`, n/unitsPerToken, quote(t.Name))
		}
		fmt.Fprintf(&b, "\nOutput Schema:\n%s\n", schema)
	}
	if hints := t.hints(); hints != "" {
		fmt.Fprintf(&b, "\nAnnotations:\n%s", hints)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// VisibleInput returns the tool's input schema as Details shows it.
func (t *Tool) VisibleInput() string { return visible(t.InputSchema) }

// hints returns the annotations, one "key: value" per line; false is said too.
func (t *Tool) hints() string {
	var b strings.Builder
	for key, value := range wire.Members(t.Annotations) {
		name, _ := wire.Text(key)
		if s, ok := wire.Text(value); ok {
			fmt.Fprintf(&b, "%s: %s\n", fold(name), fold(s))
		} else {
			fmt.Fprintf(&b, "%s: %s\n", fold(name), visible(value))
		}
	}
	return b.String()
}

// visible returns valid JSON that means the same, with invisible characters as
// \u escapes. Outside strings there are none but white space.
func visible(raw json.RawMessage) string {
	var b strings.Builder
	b.Grow(len(raw))
	for _, r := range string(raw) {
		switch {
		case r < ' ' || !invisible(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Definition returns the upstream's tool object with the exposed name, and
// with the operator's description if there is one. All other bytes are the
// upstream's.
func (v *View) Definition(t *Tool) json.RawMessage { return t.define(t.Raw, t.Name) }

// DirectDefinition is the tool's entry in a list that hosts read into types. It
// has the name of the direct surface and otherwise means what Definition does.
func (v *View) DirectDefinition(t *Tool) json.RawMessage { return t.define(t.typed, t.Direct) }

func (t *Tool) define(def json.RawMessage, name string) json.RawMessage {
	if t.Shaped() && t.OutputSchema != nil { // a result that is shortened does not fit it
		def = wire.Delete(def, "outputSchema")
	}
	if name != t.Upstream {
		def = setText(def, "name", name)
	}
	if t.overridden {
		def = setText(def, "description", t.Description)
	}
	return def
}

// setText returns a copy of an object that is not empty in which the member name
// is a string. It changes every member of that name, since readers differ in
// which of two they take, and puts a missing one in front.
func setText(obj json.RawMessage, name, value string) json.RawMessage {
	var edits []wire.Edit
	for key, at := range wire.Spans(obj) {
		if wire.EqualString(key.In(obj), name) {
			edits = append(edits, wire.Edit{Span: at, With: wire.Quote(value)})
		}
	}
	if edits == nil {
		brace := bytes.IndexByte(obj, '{') + 1
		edits = []wire.Edit{{Span: wire.Span{Off: brace}, With: []byte(quote(name) + ":" + quote(value) + ",")}}
	}
	return wire.Replace(obj, edits...)
}
