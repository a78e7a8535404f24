package schema

import _ "embed"

// Address is where the JSON Schema is found once a version is published: in the npm
// package, as the newest version has it.
const Address = "https://unpkg.com/dynmcp/schema/mcp-config.json"

//go:embed dynmcp.schema.json
var jsonSchema []byte

// JSONSchema returns the JSON Schema of the config document, draft 2020-12,
// as it is checked in. Callers must not change it.
func JSONSchema() []byte { return jsonSchema }
