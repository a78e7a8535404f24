package verify

import (
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
)

// Module has the verb verify.
var Module = module.Module{Name: "verify", Verbs: []cli.Verb{verb}}
