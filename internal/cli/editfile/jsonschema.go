package editfile

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// JSONSchema returns the JSON Schema of the config document for the modules of ctx: schema.JSONSchema
// without the keys of other modules. Callers must not change it.
func JSONSchema(ctx context.Context) []byte {
	keys := schema.KeysOf(module.Sections(module.Of(ctx)))
	root, err := (&syntax.Source{Name: "dynmcp.schema.json", Data: schema.JSONSchema}).Parse()
	if err != nil {
		panic(err) // the checked-in file is generated
	}
	without := func(key string) bool { return schema.ModuleOf(key) != "" && !slices.Contains(keys, key) }
	if !slices.ContainsFunc(root.MembersOf("properties"), func(m syntax.Member) bool { return without(m.Key) }) {
		return schema.JSONSchema
	}
	properties, defs := root.Get("properties"), root.Get("$defs")
	properties.Members = slices.DeleteFunc(properties.Members, func(m syntax.Member) bool { return without(m.Key) })
	for before := 0; before != len(defs.Members); { // a removed definition may have been the last to refer to another
		before = len(defs.Members)
		text := string(root.Compact())
		defs.Members = slices.DeleteFunc(defs.Members, func(m syntax.Member) bool { return !strings.Contains(text, `"#/$defs/`+m.Key+`"`) })
	}
	var out bytes.Buffer
	if err := json.Indent(&out, root.Compact(), "", "\t"); err != nil {
		panic(err)
	}
	return append(out.Bytes(), '\n')
}
