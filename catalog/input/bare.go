package input

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// Bare returns an input schema without the descriptions of optional arguments.
func Bare(schema json.RawMessage) json.RawMessage { return shortened(schema, undescribed, nil) }

// Sketch returns an input schema without descriptions, and with only the types of optional arguments.
func Sketch(schema json.RawMessage) json.RawMessage {
	return shortened(schema, func(optional json.RawMessage) json.RawMessage {
		if kind := wire.Get(optional, "type"); kind != nil {
			return fmt.Appendf(nil, `{"type":%s}`, kind)
		}
		return json.RawMessage(`{}`)
	}, undescribed)
}

// shortened changes the schemas of optional arguments, and those of others unless needed is nil.
func shortened(schema json.RawMessage, optional, needed func(json.RawMessage) json.RawMessage) json.RawMessage {
	var required []string
	_ = json.Unmarshal(wire.Get(schema, "required"), &required) // anything but a list requires nothing
	properties := wire.Get(schema, "properties")
	if !wire.IsObject(properties) {
		return schema
	}
	var edits []wire.Edit
	for key, at := range wire.Spans(properties) {
		change := optional
		if name, _ := wire.Text(key.In(properties)); slices.Contains(required, name) {
			change = needed
		}
		if change != nil {
			edits = append(edits, wire.Edit{Span: at, With: change(at.In(properties))})
		}
	}
	return wire.Set(schema, "properties", wire.Replace(properties, edits...))
}

// valueWords are the members of schemas that hold values, not schemas.
var valueWords = []string{"default", "const", "enum", "examples", "required"}

// undescribed returns a schema without the descriptions in it.
func undescribed(schema json.RawMessage) json.RawMessage {
	switch {
	case wire.IsObject(schema):
		if _, isText := wire.Text(wire.Get(schema, "description")); isText {
			schema = wire.Delete(schema, "description")
		}
		var edits []wire.Edit
		for key, at := range wire.Spans(schema) {
			if name, _ := wire.Text(key.In(schema)); !slices.Contains(valueWords, name) {
				edits = append(edits, wire.Edit{Span: at, With: undescribed(at.In(schema))})
			}
		}
		return wire.Replace(schema, edits...)
	case len(schema) > 0 && schema[0] == '[':
		var parts [][]byte
		for part := range wire.Elements(schema) {
			parts = append(parts, undescribed(part))
		}
		return wire.Array(parts)
	}
	return schema
}
