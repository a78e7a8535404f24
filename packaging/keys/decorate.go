package keys

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml"
	"github.com/invopop/jsonschema"

	"github.com/dynmcp/dynmcp/schema"
)

// decorate adds the tags of a Go type to the schema of its object. They are described at
// schema.Document.
func decorate(object *jsonschema.Schema, t reflect.Type) error {
	for f := range t.Fields() {
		key := f.Tag.Get("json")
		property, ok := object.Properties.Get(key)
		if !ok {
			continue
		}
		if err := decorateProperty(property, f); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if f.Tag.Get("required") == "true" {
			object.Required = append(object.Required, key)
		}
	}
	return nil
}

func decorateProperty(p *jsonschema.Schema, f reflect.StructField) error {
	of := p
	if p.Items != nil {
		of = p.Items
	}
	for _, value := range schema.Allowed(f.Tag) {
		of.Enum = append(of.Enum, value)
	}
	if f.Tag.Get("nonblank") == "true" {
		p.Pattern = `\S`
	}
	if pattern := f.Tag.Get("pattern"); pattern != "" {
		p.Pattern = pattern
	}
	if p.Type == "integer" {
		p.Minimum = json.Number("0")
	}
	if least := f.Tag.Get("min"); least != "" && p.Type == "integer" {
		p.Minimum = json.Number(least)
	}
	if text, ok := f.Tag.Lookup("default"); ok {
		value, err := tagValue(p, text)
		if err != nil {
			return err
		}
		p.Default = value
	}
	example, err := tagValue(p, f.Tag.Get("example"))
	p.Examples = []any{example}
	hover(p, f.Tag)
	return err
}

// hover sets the text that VS Code shows for a key, with its default and an example.
func hover(p *jsonschema.Schema, tag reflect.StructTag) {
	text := p.Description
	if preset := tag.Get("default"); preset != "" {
		text += "\n\nDefault: `" + preset + "`"
	}
	if example := tag.Get("example"); example != "" {
		text += "\n\nExample: `" + example + "`"
	}
	setExtra(p, "markdownDescription", text)
}

// setExtra sets a keyword of VS Code that is not part of JSON Schema. Other readers, the YAML
// language server among them, know it too or ignore it.
func setExtra(p *jsonschema.Schema, key string, value any) {
	if p.Extras == nil {
		p.Extras = map[string]any{}
	}
	p.Extras[key] = value
}

// tagValue reads a default or an example, which is YAML unless the key is a
// text.
func tagValue(p *jsonschema.Schema, text string) (any, error) {
	if p.Type == "string" {
		return text, nil
	}
	var value any
	err := yaml.Unmarshal([]byte(text), &value)
	return value, err
}
