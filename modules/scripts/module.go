package scripts

import (
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/scripts/tool"
)

// Module has the surface script and the verb run.
var Module = module.Module{Name: "scripts", Surfaces: []surface.Kind{tool.Surface}, Verbs: []cli.Verb{Run}}
