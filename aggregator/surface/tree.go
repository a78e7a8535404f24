package surface

import "github.com/dynmcp/dynmcp/catalog"

// A Tree has the tools of the servers at paths.
type Tree interface {
	// Kind returns what is at a path: "node", "tool", or "" for nothing.
	Kind(v *catalog.View, path string) string
	// Servers returns the names of the servers whose tools are in it.
	Servers(v *catalog.View) []string
	// Problems returns paths that several things have, and settings that have no effect.
	Problems(v *catalog.View) (conflicts, warnings []string)
	// Broken returns the tools that are left out because their definitions are broken.
	Broken(v *catalog.View) []string
	// Dump returns a line for each node and tool.
	Dump(v *catalog.View) string
}
