// Package sandbox limits the programs of servers whose entries say so: the files that they read and change, and
// the hosts that they connect to.
package sandbox

import (
	"context"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/sandbox/entry"
	"github.com/dynmcp/dynmcp/schema"
)

// Module has the key sandbox of entries and of defaults, which starts their programs within limits, and the
// verb sandbox.
var Module = module.Module{
	Name:     "sandbox",
	Keys:     []schema.Section{schema.ServerSectionOf[entry.Keys]("sandbox", "")},
	Verbs:    []cli.Verb{verb},
	Launcher: limits{},
}

// limits is the launcher of the module.
type limits struct{}

func (limits) Limit(s schema.Server) schema.Server { return entry.Within(s, entry.Usual) }

func (limits) Warning(s schema.Server) (text string, starts bool) {
	return warning(s), entry.Of(s).BestEffort
}

func (limits) Explain(ctx context.Context, s schema.Server) string { return explain(ctx, s) }
