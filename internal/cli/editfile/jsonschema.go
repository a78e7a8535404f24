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
// without the keys and surfaces of other modules. Callers must not change it.
func JSONSchema(ctx context.Context) []byte {
	sections := module.SectionsOf(ctx)
	document, server := schema.KeysWithout(sections, false), schema.KeysWithout(sections, true)
	surfaces := schema.SurfacesOf(sections)
	if len(document)+len(server) == 0 && len(surfaces) == len(schema.Surfaces) {
		return schema.JSONSchema
	}
	root, err := (&syntax.Source{Name: "dynmcp.schema.json", Data: schema.JSONSchema}).Parse()
	if err != nil {
		panic(err) // the checked-in file is generated
	}
	drop(root, document)
	defs := root.Get("$defs")
	for _, object := range []*syntax.Node{root, defs.Get("Profile")} {
		names := object.Get("properties").Get("expose").Get("items").Get("enum")
		names.Items = slices.DeleteFunc(names.Items, func(n *syntax.Node) bool { return !slices.Contains(surfaces, n.Scalar) })
	}
	drop(defs.Get("HostServer"), server)
	drop(root.Get("properties").Get("defaults"), server)
	kinds := root.Get("properties").Get("mcp").Get("additionalProperties").Get("oneOf")
	kinds.Items = slices.DeleteFunc(kinds.Items, func(kind *syntax.Node) bool {
		return slices.ContainsFunc(kind.ItemsOf("required"), func(n *syntax.Node) bool { return slices.Contains(server, n.Scalar) })
	})
	for _, kind := range kinds.Items {
		drop(kind, server)
	}
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

// drop removes keys from the properties of an object.
func drop(object *syntax.Node, keys []string) {
	properties := object.Get("properties")
	properties.Members = slices.DeleteFunc(properties.Members, func(m syntax.Member) bool { return slices.Contains(keys, m.Key) })
}
