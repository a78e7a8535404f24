package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/tokens"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Details returns a tool's full definition as text: name, description, schemas
// and annotations. Schemas are the upstream's bytes, but characters that
// cannot be seen are written as JSON escapes.
func (t *Tool) Details() string {
	return t.definition(t.longDescription(), display.JSON(t.InputSchema), display.JSON(t.OutputSchema))
}

// Brief is Details without an output schema that is large, which it names with
// its size: the largest met are five times as long as all else.
func (t *Tool) Brief() string {
	return t.definition(t.longDescription(), display.JSON(t.InputSchema), t.sized(t.OutputSchema, 300, `, "full": true`))
}

// shortTokens is what a definition among the results of a search may take, by
// estimate; its description is left at least leastTokens.
const (
	shortTokens = 1500
	leastTokens = 100
)

// inShort is Brief as the answer of a search has it: the input schema is whole unless
// it takes all the room, the description gets what is left, and what the tool
// answers is left to Brief unless that is short.
func (t *Tool) inShort() string {
	input := t.sized(t.InputSchema, shortTokens, "")
	description := t.longDescription()
	room := max(shortTokens-tokens.Count(input), leastTokens)
	if n := tokens.Count(description); n > room {
		description = display.Cut(description, display.Units(description)*room/n) + fmt.Sprintf(" [Cut: discover_tool {\"tool_name\": %s} shows all.]", display.Quote(t.Name))
	}
	return t.definition(description, input, t.sized(t.OutputSchema, 50, ""))
}

// sized is a schema as Details shows it, or if it takes more than most tokens
// its size and how to see it.
func (t *Tool) sized(schema json.RawMessage, most int, how string) string {
	s := display.JSON(schema)
	if n := tokens.Count(s); n > most {
		return fmt.Sprintf(`left out, about %d tokens: discover_tool {"tool_name": %s%s} shows it.`, n, display.Quote(t.Name), how)
	}
	return s
}

func (t *Tool) longDescription() string { return strings.TrimSpace(display.Clean(t.Description)) }

func (t *Tool) definition(description, input, output string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Name: %s\n", t.Name)
	if title := display.Fold(t.Title); title != "" {
		fmt.Fprintf(&b, "Title: %s\n", title)
	}
	if description != "" {
		fmt.Fprintf(&b, "Description: %s\n", description)
	}
	if t.UseTool != useTool && t.UseTool != "" {
		fmt.Fprintf(&b, "Called through: %s\n", t.UseTool)
	}
	if input != "" {
		fmt.Fprintf(&b, "\nInput Schema:\n%s\n", input)
	}
	if t.ExampleArgs != nil {
		fmt.Fprintf(&b, "\nExample of an input:\n%s\n", display.JSON(t.ExampleArgs))
	}
	if output != "" {
		fmt.Fprintf(&b, "\nOutput Schema:\n%s\n", output)
	}
	if hints := t.hints(); hints != "" {
		fmt.Fprintf(&b, "\nAnnotations:\n%s", hints)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// VisibleInput returns the tool's input schema as Details shows it.
func (t *Tool) VisibleInput() string { return display.JSON(t.InputSchema) }

// hints returns the annotations, one "key: value" per line; false is said too.
func (t *Tool) hints() string {
	var b strings.Builder
	for key, value := range wire.Members(t.Annotations) {
		name, _ := wire.Text(key)
		if s, ok := wire.Text(value); ok {
			fmt.Fprintf(&b, "%s: %s\n", display.Fold(name), display.Fold(s))
		} else {
			fmt.Fprintf(&b, "%s: %s\n", display.Fold(name), display.JSON(value))
		}
	}
	return b.String()
}

// Definition returns the upstream's tool object with the exposed name, and
// with the operator's description if there is one. All other bytes are the
// upstream's.
func (t *Tool) Definition() json.RawMessage { return t.define(t.Raw, t.Name) }

// DirectDefinition is the tool's entry in a list that hosts read into types. It
// has the name of the direct surface, in at most longest characters (ShortDirect), and
// otherwise means what Definition does.
func (t *Tool) DirectDefinition(longest int) json.RawMessage {
	return t.define(t.typed, ShortDirect(t.Direct, longest))
}

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
		edits = []wire.Edit{{Span: wire.Span{Off: brace}, With: []byte(display.Quote(name) + ":" + display.Quote(value) + ",")}}
	}
	return wire.Replace(obj, edits...)
}
