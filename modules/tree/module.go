// Package tree has the surface tree, three tools by which a model walks a tree of tools, and the tree of
// the HTTP API.
package tree

import (
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/tree/tools"
)

// Module has a surface, without which the core refuses the key tree.
var Module = module.Module{Name: "tree", Surfaces: []surface.Kind{tools.Surface}}
