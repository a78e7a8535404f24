package activity

import (
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
)

// Module has the verbs log and stats.
var Module = module.Module{Name: "activity", Verbs: []cli.Verb{logVerb, statsVerb}}
