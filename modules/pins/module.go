// Package pins shows what has changed in the tools of servers since they were approved, and approves it. It
// keeps hosts from tools that are not approved, and finds signs of attacks in their definitions.
package pins

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/changes"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/pins/lint"
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

// A linter finds signs of attacks in the definitions of tools. It implements module.Linter.
type linter struct {
	cfg   *schema.Config
	once  sync.Once
	names lint.Names // of the tools of all enabled servers: a definition may mention those of another
}

// Lint implements module.Linter.
func (l *linter) Lint(view *catalog.View, all bool) (lines []string) {
	for _, t := range slices.Concat(view.Tools(), view.AwaitingApproval()) {
		for _, f := range l.check(t.Server, t.Upstream, t.Raw) {
			if all || f.Grade != lint.Low {
				lines = append(lines, fmt.Sprintf("%s: tool %s: %s", t.Server, changes.Visible(t.Upstream), f))
			}
		}
	}
	return lines
}

func (l *linter) check(server, tool string, raw json.RawMessage) []lint.Finding {
	l.once.Do(func() {
		for _, s := range l.cfg.Servers {
			if s.Disabled {
				continue
			}
			tools, _ := l.listed(s) // empty if the server was never listed
			for _, t := range tools {
				l.names.Add(s.Name, t.Name)
			}
		}
	})
	return lint.Check(server, tool, raw, &l.names)
}

// listed returns the last listing of a server.
func (l *linter) listed(s schema.Server) ([]definition.Tool, error) {
	stored, err := store.Of(l.cfg, conf.CatalogDir()).Load(s)
	if err != nil {
		return nil, hint.With(err, "%s", store.Remedy(err))
	}
	if stored == nil {
		return nil, hint.With(fmt.Errorf("%s has not been listed yet", s.Name), "--start starts it and lists it first")
	}
	return changes.ToolsOf(s.Name, stored), nil
}
