// Package policy explains which calls of tools the rules of a config allow.
package policy

import (
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/policy/rules"
	"github.com/dynmcp/dynmcp/schema"
)

// Module has the key policy, whose rules decide about the calls of a run, and the verb policy.
var Module = module.Module{
	Name:  "policy",
	Keys:  []schema.Section{rules.Section},
	Verbs: []cli.Verb{verb},
}
