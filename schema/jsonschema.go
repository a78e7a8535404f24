package schema

import _ "embed"

// Address is the address of the JSON Schema once a version is published: in the newest version
// of the npm package.
const Address = "https://unpkg.com/dynmcp/schema/mcp-config.json"

//go:embed dynmcp.schema.json
var jsonSchema []byte

// JSONSchema returns the JSON Schema of the config document, draft 2020-12,
// as it is checked in. Callers must not change it.
func JSONSchema() []byte { return jsonSchema }
