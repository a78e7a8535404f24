package pins

import (
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
)

// Module has the verbs diff and approve.
var Module = module.Module{Name: "pins", Verbs: []cli.Verb{Diff, Approve}}
