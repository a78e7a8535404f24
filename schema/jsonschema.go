package schema

import (
	_ "embed"
	"maps"
	"slices"
)

// JSONSchema is the JSON Schema of the config document, draft 2020-12, with the keys of all modules.
//
//go:embed dynmcp.schema.json
var JSONSchema []byte

// KeysOf returns the keys of the document that sections have or, with server set, those of an entry.
func KeysOf(sections []Section, server bool) []string {
	return keysOf(withSections(nil, sections, server))
}

// KeysWithout returns the keys of modules that sections do not have: of the document or, with server set,
// of an entry.
func KeysWithout(sections []Section, server bool) (keys []string) {
	all := documentModules
	if server {
		all = serverModules
	}
	have := KeysOf(sections, server)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(key string) bool { return slices.Contains(have, key) })
}
