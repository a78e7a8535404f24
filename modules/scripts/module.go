package scripts

import (
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
)

// Module has the verb run.
var Module = module.Module{Name: "scripts", Verbs: []cli.Verb{Run}}
