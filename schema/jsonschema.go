package schema

import _ "embed"

// JSONSchema is the JSON Schema of the config document, draft 2020-12, with the keys of all modules.
//
//go:embed dynmcp.schema.json
var JSONSchema []byte

// KeysOf returns the keys of the document that sections have.
func KeysOf(sections []Section) (keys []string) {
	for _, s := range sections {
		keys = append(keys, keysOf(fieldsOf(s.Type))...)
	}
	return keys
}
