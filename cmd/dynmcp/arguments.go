package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// checkWords finds what can be seen to be wrong with key=value before the
// tool's schema is known.
func checkWords(words []string) error {
	seen := map[string]bool{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" || key == ":" {
			return hinted(fmt.Errorf("%q is not an argument", word), "write key=value, key:=json, --json '{…}', or - to read JSON from stdin")
		}
		name, isJSON := strings.CutSuffix(key, ":")
		if isJSON && !json.Valid([]byte(value)) {
			return hinted(fmt.Errorf("%s is not JSON: %s", name, value), "%s=… without the colon takes text; mind the quotes of the shell", name)
		}
		if seen[name] {
			return hinted(fmt.Errorf("%s is given twice", name), `a list is written %s:='["a","b"]'`, name)
		}
		seen[name] = true
	}
	return nil
}

// arguments makes an object of key=value words that checkWords has seen, with
// the types that a tool's input schema asks for.
func arguments(words []string, schema json.RawMessage) (json.RawMessage, error) {
	var root shape
	_ = json.Unmarshal(schema, &root) // a schema we cannot read asks for nothing
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
		object = append(append(append(object, jsonText(name)...), ':'), raw...)
	}
	return append(object, '}'), nil
}

// A shape is what matters here of a JSON Schema.
type shape struct {
	Type       json.RawMessage  `json:"type"` // a string or several
	Ref        string           `json:"$ref"`
	AnyOf      []shape          `json:"anyOf"`
	OneOf      []shape          `json:"oneOf"`
	AllOf      []shape          `json:"allOf"`
	Enum       []any            `json:"enum"`
	Const      any              `json:"const"`
	Properties map[string]shape `json:"properties"`
	Defs       map[string]shape `json:"$defs"`
	OldDefs    map[string]shape `json:"definitions"`
}

// UnmarshalJSON implements json.Unmarshaler. A schema may be true or false,
// and what is malformed asks for nothing.
func (n *shape) UnmarshalJSON(raw []byte) error {
	type plain shape
	_ = json.Unmarshal(raw, (*plain)(n))
	return nil
}

// value returns a word as JSON of the type that the schema asks for under a
// name, or as a string.
func (n *shape) value(name, word string) json.RawMessage {
	property, ok := n.Properties[name]
	raw := bytes.TrimSpace([]byte(word))
	if !ok || !json.Valid(raw) {
		return jsonText(word)
	}
	types := map[string]bool{}
	n.collect(property, types, 0)
	kind := kindOf(raw)
	switch {
	case types["string"]: // "5" is text where text will do
		return jsonText(word)
	case len(types) == 0, types[kind], kind == "integer" && types["number"]:
		return raw
	}
	return jsonText(word)
}

// collect finds the types that a schema allows; none means any. Schemas may
// refer to themselves, hence the depth.
func (n *shape) collect(s shape, types map[string]bool, depth int) {
	if depth > 8 {
		return
	}
	var one string
	var several []string
	if json.Unmarshal(s.Type, &one) == nil {
		types[one] = true
	} else if json.Unmarshal(s.Type, &several) == nil {
		for _, t := range several {
			types[t] = true
		}
	}
	for _, value := range append(slices.Clone(s.Enum), s.Const) {
		if raw, err := json.Marshal(value); err == nil && value != nil {
			types[kindOf(raw)] = true
		}
	}
	for _, branch := range slices.Concat(s.AnyOf, s.OneOf, s.AllOf) {
		n.collect(branch, types, depth+1)
	}
	if i := strings.LastIndexByte(s.Ref, '/'); i >= 0 {
		if def, ok := n.Defs[s.Ref[i+1:]]; ok {
			n.collect(def, types, depth+1)
		} else if def, ok := n.OldDefs[s.Ref[i+1:]]; ok {
			n.collect(def, types, depth+1)
		}
	}
}

// kindOf names the type of a JSON value as JSON Schema does.
func kindOf(raw []byte) string {
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
