package call

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// checkWords checks key=value arguments as far as that needs no schema. how is the hint for a
// word of another form.
func checkWords(words []string, how string) error {
	seen := map[string]bool{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" || key == ":" {
			return hint.With(fmt.Errorf("%q is not an argument", word), "%s", how)
		}
		name, isJSON := strings.CutSuffix(key, ":")
		if isJSON && !json.Valid([]byte(value)) {
			return hint.With(fmt.Errorf("%s is not JSON: %s", name, value), "write %s=… without the colon for text; mind the shell's quoting", name)
		}
		if seen[name] {
			return hint.With(fmt.Errorf("%s is given twice", name), `write a list as %s:='["a","b"]'`, name)
		}
		seen[name] = true
	}
	return nil
}

// ArgumentObject converts key=value words that checkWords has accepted to an object, with the types
// of the tool's input schema.
func ArgumentObject(words []string, schema json.RawMessage) json.RawMessage {
	var root inputSchema
	_ = json.Unmarshal(schema, &root) // an unreadable schema has no types
	object := []byte{'{'}
	for i, word := range words {
		key, value, _ := strings.Cut(word, "=")
		name, isJSON := strings.CutSuffix(key, ":")
		raw := json.RawMessage(value)
		if !isJSON {
			raw = root.value(name, value)
		}
		if i > 0 {
			object = append(object, ',')
		}
		object = append(append(wire.AppendQuote(object, name), ':'), raw...)
	}
	return append(object, '}')
}

// An inputSchema holds the keywords of a JSON Schema that are used here.
type inputSchema struct {
	Type        json.RawMessage        `json:"type"` // a string or a list of strings
	Ref         string                 `json:"$ref"`
	AnyOf       []inputSchema          `json:"anyOf"`
	OneOf       []inputSchema          `json:"oneOf"`
	AllOf       []inputSchema          `json:"allOf"`
	Enum        []any                  `json:"enum"`
	Const       any                    `json:"const"`
	Properties  map[string]inputSchema `json:"properties"`
	Defs        map[string]inputSchema `json:"$defs"`
	Definitions map[string]inputSchema `json:"definitions"` // the former name of $defs
}

// UnmarshalJSON implements json.Unmarshaler. A schema may be true or false; a malformed one has no
// types.
func (s *inputSchema) UnmarshalJSON(raw []byte) error {
	type plain inputSchema
	_ = json.Unmarshal(raw, (*plain)(s))
	return nil
}

// value returns word as JSON: of the type that the schema has for the property name, or else as a
// string.
func (s *inputSchema) value(name, word string) json.RawMessage {
	raw := bytes.TrimSpace([]byte(word))
	if property, ok := s.Properties[name]; ok && json.Valid(raw) {
		types := map[string]bool{}
		s.collectTypes(property, types, 0)
		kind := typeOf(raw)
		// "5" is a string if the schema allows strings.
		if !types["string"] && (len(types) == 0 || types[kind] || kind == "integer" && types["number"]) {
			return raw
		}
	}
	return wire.Quote(word)
}

// collectTypes adds the types that a schema allows to types; none means any. depth ends the
// recursion of schemas that refer to themselves.
func (s *inputSchema) collectTypes(of inputSchema, types map[string]bool, depth int) {
	if depth > 8 {
		return
	}
	var one string
	var several []string
	if json.Unmarshal(of.Type, &one) == nil {
		types[one] = true
	} else if json.Unmarshal(of.Type, &several) == nil {
		for _, t := range several {
			types[t] = true
		}
	}
	for _, value := range append(slices.Clone(of.Enum), of.Const) {
		if raw, err := json.Marshal(value); err == nil && value != nil {
			types[typeOf(raw)] = true
		}
	}
	for _, branch := range slices.Concat(of.AnyOf, of.OneOf, of.AllOf) {
		s.collectTypes(branch, types, depth+1)
	}
	if i := strings.LastIndexByte(of.Ref, '/'); i >= 0 {
		if def, ok := s.Defs[of.Ref[i+1:]]; ok {
			s.collectTypes(def, types, depth+1)
		} else if def, ok := s.Definitions[of.Ref[i+1:]]; ok {
			s.collectTypes(def, types, depth+1)
		}
	}
}

// typeOf returns the JSON Schema type of a JSON value.
func typeOf(raw []byte) string {
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "number"
	}
	return "integer"
}
