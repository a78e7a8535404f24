// Package pins shows what has changed in the tools of servers since they were approved, and approves it. It
// keeps hosts from tools that are not approved, and finds signs of attacks in their definitions.
package pins

import (
	_ "embed"
	"log/slog"

	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/pins/lock"
	"github.com/dynmcp/dynmcp/schema"
)

//go:embed page.js
var page string

// Module has the key pins of entries and of defaults, the verbs diff and approve, what they tell among the decisions of the page, and the lock of
// approved tools, by which a run shows them.
var Module = module.Module{
	Name:  "pins",
	Keys:  []schema.Section{lock.Section},
	Verbs: []cli.Verb{diff, approve},
	Tabs:  []module.Tab{{Script: page}},
	Trust: trust{},
}

// trust is the lock of the user who runs dynmcp.
type trust struct{}

func (trust) Linter(cfg *schema.Config) module.Linter { return &linter{cfg: cfg} }

func (trust) File(config string) string { return lock.FileOf(config) }

func (trust) Guards(cfg *schema.Config, log *slog.Logger) approval.Guards {
	return lock.Guards(cfg, conf.DefinitionsDir(), log)
}
