package schema

import _ "embed"

//go:embed dynmcp.schema.json
var jsonSchema []byte

// JSONSchema returns the JSON Schema of the config document, draft 2020-12,
// as it is checked in. Callers must not change it.
func JSONSchema() []byte { return jsonSchema }
