package verify

import (
	"bytes"
	"fmt"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// maxNested limits the depth of examples.
const maxNested = 8

// example returns a value that fits the simple keywords of a schema: its example, enum value,
// constant or default if it has one, otherwise a small value with the required members.
func example(schema []byte, depth int) []byte {
	for _, key := range []string{"examples", "enum"} {
		for value := range wire.Elements(wire.Get(schema, key)) {
			return bytes.Clone(value)
		}
	}
	for _, key := range []string{"const", "default"} {
		if value := wire.Get(schema, key); value != nil {
			return bytes.Clone(value)
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		for first := range wire.Elements(wire.Get(schema, key)) {
			return example(first, depth+1)
		}
	}
	switch kind := typeOf(schema); {
	case kind == "object" && depth < maxNested:
		return exampleObject(schema, depth)
	case kind == "object":
		return []byte(`{}`)
	case kind == "array" && wire.Get(schema, "minItems") != nil && depth < maxNested:
		return joined('[', [][]byte{example(wire.Get(schema, "items"), depth+1)}, ']')
	case kind == "array":
		return []byte(`[]`)
	case kind == "integer" || kind == "number":
		if least := wire.Get(schema, "minimum"); least != nil {
			return bytes.Clone(least)
		}
		return []byte(`1`)
	case kind == "boolean":
		return []byte(`false`)
	case kind == "null":
		return []byte(`null`)
	}
	return wire.Quote(exampleText(schema))
}

// exampleObject returns an object with the required members and those that have examples.
func exampleObject(schema []byte, depth int) []byte {
	required := map[string]bool{}
	for name := range wire.Elements(wire.Get(schema, "required")) {
		required[textOf(name)] = true
	}
	var members [][]byte
	for name, property := range wire.Members(wire.Get(schema, "properties")) {
		if !required[textOf(name)] && wire.Get(property, "examples") == nil {
			continue
		}
		members = append(members, fmt.Appendf(nil, "%s:%s", name, example(property, depth+1)))
	}
	return joined('{', members, '}')
}

func typeOf(schema []byte) string {
	kind := wire.Get(schema, "type")
	for first := range wire.Elements(kind) {
		kind = first
		break
	}
	if kind == nil && wire.Get(schema, "properties") != nil {
		return "object"
	}
	return textOf(kind)
}

func exampleText(schema []byte) string {
	switch textOf(wire.Get(schema, "format")) {
	case "uri", "url":
		return "http://127.0.0.1:9/"
	case "date":
		return "2026-01-01"
	case "date-time":
		return "2026-01-01T00:00:00Z"
	case "email":
		return "nobody@example.org"
	}
	return "example"
}

// bigNumbers returns arguments in which the first unbounded number of the schema is one that a
// float64 cannot hold, or nil if the schema has no such number.
func bigNumbers(schema, arguments []byte) []byte {
	for name, property := range wire.Members(wire.Get(schema, "properties")) {
		kind := typeOf(property)
		if bounded := wire.Get(property, "default") != nil || wire.Get(property, "minimum") != nil || wire.Get(property, "maximum") != nil; bounded || kind != "integer" && kind != "number" {
			continue // probably a count, with which the call would take long
		}
		if text := textOf(name); text != "" && !bytes.ContainsAny(name, `\`) {
			return wire.Set(arguments, text, []byte(`9007199254740993`))
		}
	}
	return nil
}
