package cluster

import (
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
)

// Module has the verb cluster.
var Module = module.Module{Name: "cluster", Verbs: []cli.Verb{verb}}
