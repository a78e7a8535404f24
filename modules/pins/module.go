package pins

import (
	_ "embed"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
)

//go:embed page.js
var page string

// Module has the verbs diff and approve, and what they tell among the decisions of the page.
var Module = module.Module{Name: "pins", Verbs: []cli.Verb{Diff, Approve}, Tabs: []module.Tab{{Script: page}}}
