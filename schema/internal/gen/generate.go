package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/dynmcp/dynmcp/schema"
)

// generate returns the JSON Schema. Its descriptions are the comments in the
// Go files of dir, the directory of package schema.
func generate(dir string) ([]byte, error) {
	r := &jsonschema.Reflector{
		Anonymous:                  true,
		ExpandedStruct:             true,
		RequiredFromJSONSchemaTags: true,
		Mapper:                     ownType,
	}
	if err := r.AddGoComments("github.com/dynmcp/dynmcp/schema", dir); err != nil {
		return nil, fmt.Errorf("read the comments: %w", err)
	}
	root := r.Reflect(schema.Document{})
	for name, t := range documentTypes() {
		object := root
		if name != "Document" {
			object = root.Definitions[name]
		}
		if err := decorate(object, t); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	complete(root)
	describeDefinitions(root)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "\t")
	err := enc.Encode(root)
	return out.Bytes(), err
}

// describeDefinitions copies the texts of keys to the definitions that they refer to. Editors
// show the text of the definition, which is otherwise for readers of the Go code.
func describeDefinitions(root *jsonschema.Schema) {
	for pair := root.Properties.Oldest(); pair != nil; pair = pair.Next() {
		describeDefinition(root, pair.Value)
	}
	for _, server := range property(root, "mcp").AdditionalProperties.OneOf {
		for pair := server.Properties.Oldest(); pair != nil; pair = pair.Next() {
			describeDefinition(root, pair.Value)
		}
	}
}

func describeDefinition(root, p *jsonschema.Schema) {
	name, ok := strings.CutPrefix(p.Ref, "#/$defs/")
	if !ok {
		return
	}
	definition := root.Definitions[name]
	definition.Description = p.Description
	setExtra(definition, "markdownDescription", p.Extras["markdownDescription"])
}

// documentTypes are the structs that a document is made of.
func documentTypes() map[string]reflect.Type {
	return map[string]reflect.Type{
		"Document":        reflect.TypeFor[schema.Document](),
		"Server":          reflect.TypeFor[schema.Server](),
		"Auth":            reflect.TypeFor[schema.Auth](),
		"Sandbox":         reflect.TypeFor[schema.Sandbox](),
		"Activity":        reflect.TypeFor[schema.Activity](),
		"Scripts":         reflect.TypeFor[schema.Scripts](),
		"PolicyRule":      reflect.TypeFor[schema.PolicyRule](),
		"ToolOverride":    reflect.TypeFor[schema.ToolOverride](),
		"Node":            reflect.TypeFor[schema.Node](),
		"Source":          reflect.TypeFor[schema.Source](),
		"Catalog":         reflect.TypeFor[schema.Catalog](),
		"Profile":         reflect.TypeFor[schema.Profile](),
		"ProfileOverride": reflect.TypeFor[schema.ProfileOverride](),
		"Gateway":         reflect.TypeFor[schema.Gateway](),
	}
}

// durationPattern matches the input of time.ParseDuration, a bare number, or a text with a
// variable in it.
const durationPattern = `^([+]?([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|ms|s|m|h))+$|^[0-9]+([.][0-9]+)?$|[$][{]`

// ownType returns the schema of types whose form in a file differs from their Go type.
func ownType(t reflect.Type) *jsonschema.Schema {
	if own, ok := reflect.New(t).Interface().(schema.OwnForm); ok {
		pattern, want := own.Form()
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: pattern, Extras: map[string]any{"patternErrorMessage": want}},
			{Type: "number", Enum: []any{0}},
		}}
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: durationPattern, Extras: map[string]any{"patternErrorMessage": "write a time like 500ms, 30s or 2m, or a number of seconds"}},
			{Type: "number", Minimum: "0"},
		}}
	case reflect.TypeFor[schema.Inherit]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			{Type: "boolean"},
			{Type: "array", Items: &jsonschema.Schema{Type: "string", Pattern: `\S`}},
		}}
	case reflect.TypeFor[schema.Network]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			{Type: "string", Enum: []any{"all", "none"}},
			{Type: "array", Items: &jsonschema.Schema{Type: "string", Pattern: `\S`}},
		}}
	case reflect.TypeFor[json.RawMessage]():
		return &jsonschema.Schema{Type: "object"}
	case reflect.TypeFor[[]schema.Server]():
		return &jsonschema.Schema{Type: "object"} // filled in by complete
	}
	return nil
}
