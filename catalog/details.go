package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/directname"
	"github.com/dynmcp/dynmcp/catalog/input"
	"github.com/dynmcp/dynmcp/catalog/typescript"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/tokens"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Details returns a tool's full definition as text: name, description, schemas
// and annotations. Schemas are the upstream's bytes, but characters that
// cannot be seen are written as JSON escapes.
func (v Texts) Details(t *Tool) string {
	return t.definition(v.UseTool(t.Access), t.longDescription(), t.written(t.InputSchema), t.written(t.OutputSchema), t.hints())
}

// Brief is Details, except that a large output schema is replaced by its size: the largest
// known ones are five times as long as everything else.
func (v Texts) Brief(t *Tool) string {
	return t.definition(v.UseTool(t.Access), t.longDescription(), t.written(t.InputSchema), t.sized(t.OutputSchema, 300, `, "full": true`), t.hints())
}

// Within is Brief if that takes at most room tokens, by estimate. Otherwise the descriptions of optional
// arguments are left out, and what still does not fit.
func (v Texts) Within(t *Tool, room int) string {
	if text := v.Brief(t); tokens.Count(text) <= room {
		return text
	}
	return t.shortDefinition(v.UseTool(t.Access), max(room, minTokens), descriptionTokens, t.bareInput())
}

// written returns a schema as definitions show it: as a type if the config says so and the
// type is complete, otherwise as JSON.
func (t *Tool) written(schema json.RawMessage) string {
	if t.types && schema != nil {
		if text, complete := typescript.Type(schema); complete {
			return text
		}
	}
	return display.JSON(schema)
}

// sized returns a schema as Details shows it or, if it has more than most tokens, its size
// and how to see it.
func (t *Tool) sized(schema json.RawMessage, most int, how string) string {
	s := t.written(schema)
	if n := tokens.Count(s); n > most {
		return fmt.Sprintf(`left out, about %d tokens: discover_tool {"tool_name": %s%s} shows it.`, n, display.Quote(t.Name), how)
	}
	return s
}

func (t *Tool) longDescription() string { return strings.TrimSpace(display.Clean(t.Description)) }

func (t *Tool) definition(through, description, input, output, hints string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Name: %s\n", t.Name)
	if title := display.Fold(t.Title); title != "" {
		fmt.Fprintf(&b, "Title: %s\n", title)
	}
	if description != "" {
		fmt.Fprintf(&b, "Description: %s\n", description)
	}
	if through != useTool {
		fmt.Fprintf(&b, "Called through: %s\n", through)
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
	if hints != "" {
		fmt.Fprintf(&b, "\nAnnotations:\n%s", hints)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// VisibleInput returns the tool's input schema as Details shows it.
func (t *Tool) VisibleInput() string { return t.written(t.InputSchema) }

// hints returns the annotations, one "key: value" per line, including false ones.
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

// DirectDefinition is a tool's entry in a list for hosts that decode it into types. It has
// the name of the direct surface, in at most longest characters (directname.Short), and the URI of its
// view as hosts read it. Otherwise it means the same as Definition.
func (v *View) DirectDefinition(t *Tool, longest int) json.RawMessage {
	return v.names.ShowViews(t.Server, t.define(t.typed, directname.Short(t.Direct, longest)))
}

func (t *Tool) define(def json.RawMessage, name string) json.RawMessage {
	if t.Shaped() && t.OutputSchema != nil { // a shortened result would not conform to it
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

// setText returns a copy of a non-empty object in which the member name is a string. It
// changes every member of that name, because readers differ in which duplicate they use. A
// missing member is put in front.
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

// DefinitionsTokens are the estimated tokens of all definitions of an answer together.
const DefinitionsTokens = 1500

// Limits of a definition in the answer of a search, in estimated tokens.
const (
	shortTokens       = DefinitionsTokens
	descriptionTokens = 200 // the description, which gets at least minTokens
	secondTokens      = 50  // the description of a tool that is not the best
	minTokens         = 100
)

// shortDefinition returns the definition for the answer of a search, in about most tokens. The input
// schema is whole unless it alone takes more. The description gets the room that is left, at
// most words tokens. There is no output schema, and only the hint that a call depends on.
func (t *Tool) shortDefinition(through string, most, words int, schema json.RawMessage) string {
	shown := t.sized(schema, most, "")
	description := t.longDescription()
	room := min(max(most-tokens.Count(shown), minTokens), words)
	if n := tokens.Count(description); n > room {
		description = display.Cut(description, display.Units(description)*room/n)
	}
	short := *t
	short.Title = "" // it says what the name says
	return short.definition(through, description, shown, "", t.briefHints())
}

// briefHints returns readOnlyHint or else destructiveHint, if it is true.
func (t *Tool) briefHints() string {
	for _, hint := range []string{"readOnlyHint", "destructiveHint"} {
		if string(wire.Get(t.Annotations, hint)) == "true" {
			return hint + ": true\n"
		}
	}
	return ""
}

// plainInput is the input schema without the name of its dialect.
func (t *Tool) plainInput() json.RawMessage {
	if !wire.IsObject(t.InputSchema) {
		return t.InputSchema
	}
	return wire.Delete(t.InputSchema, "$schema")
}

// sketchedInput is the plain input schema without descriptions, with only the types of optional arguments.
func (t *Tool) sketchedInput() json.RawMessage { return input.Sketch(t.plainInput()) }

// bareInput is the plain input schema without the descriptions of optional arguments.
func (t *Tool) bareInput() json.RawMessage { return input.Bare(t.plainInput()) }
