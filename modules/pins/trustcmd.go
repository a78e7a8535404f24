// Package pins has the verbs diff and approve for the lock of approved tools.
package pins

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/trust"
	"github.com/dynmcp/dynmcp/internal/cli/warm"
	"github.com/dynmcp/dynmcp/internal/pins"
	"github.com/dynmcp/dynmcp/schema"
)

// Diff shows tools that differ from the approved ones.
var Diff = cli.Verb{
	Use:   "diff [flags] [server[/tool]]",
	Group: cli.Guard,
	Short: "Show tools that differ from what was approved",
	Long: `Compare what servers listed when they were last started with dynmcp.lock: what has
changed in which definition, which tools are new, which are gone. Without a name that is
all servers with pins. Descriptions are compared word by word, schemas and annotations
member by member. No server is started, unless --start is given.

The exit status is 1 if something differs.`,
	Example: `  dynmcp diff
  dynmcp diff github --start`,
	Args: cli.AtMost(1),
	New: func(cmd *cobra.Command) cli.Run {
		return reviewed(cmd, func(_ context.Context, r *trust.Review) error { return r.Diff() })
	},
}

// Approve approves the current tools.
var Approve = cli.Verb{
	Use:   "approve [flags] [server[/tool]]",
	Group: cli.Guard,
	Short: "Approve the current tools",
	Long: `Show what differs from dynmcp.lock, as diff does, ask for each tool, and write what is
approved into the lock. Without a name that is all servers with pins. A run of dynmcp that
serves the config reads the lock again at once.`,
	Example: `  dynmcp approve
  dynmcp approve github/create_issue
  dynmcp approve --all`,
	Args: cli.AtMost(1),
	New: func(cmd *cobra.Command) cli.Run {
		all := cmd.Flags().Bool("all", false, "approve all of it without asking")
		return reviewed(cmd, func(ctx context.Context, r *trust.Review) error {
			if *all {
				return r.Approve(nil)
			}
			in := cli.Terminal(cmd)
			if in == nil {
				return hint.With(errors.New("there is no terminal to ask on"), "dynmcp diff shows what differs, --all approves it")
			}
			answers := cli.Lines(ctx, in)
			return r.Approve(func(question string) (string, error) {
				cli.Stderr(cmd).Printf("%s", question)
				select {
				case answer, ok := <-answers:
					if !ok {
						return "quit", nil
					}
					return answer, nil
				case <-ctx.Done():
					return "", cli.ErrInterrupted
				}
			})
		})
	},
}

// reviewed returns a verb that reviews the listings of the config's servers. With --start it lists
// them again first.
func reviewed(cmd *cobra.Command, verb func(context.Context, *trust.Review) error) cli.Run {
	on := selfhost.Target{About: selfhost.OfServers}
	start := cmd.Flags().Bool("start", false, "start the servers and list them again first")
	cmd.ValidArgsFunction = selfhost.CompleteReviewed(&on)
	return on.Run(cmd, func(ctx context.Context, args []string) error {
		r := &trust.Review{
			Config: on.Cfg, Store: store.Of(on.Cfg, conf.CatalogDir()), Out: on.Out,
			Package: func(s schema.Server) string { return conf.Running(ctx, s) },
			Files:   pins.Files{Lock: pins.FileOf(on.Cfg.Path), Definitions: conf.DefinitionsDir()},
		}
		named := func(name string) (schema.Server, error) { return conf.ServerNamed(on.Cfg, name) }
		if err := r.Select(strings.Join(args, ""), named); err != nil {
			return err
		}
		if *start {
			if err := warm.WarmNamed(ctx, &on, conf.Names(r.Servers), 0, false); err != nil {
				return err
			}
			on.Out.Printf("\n")
		}
		return verb(ctx, r)
	})
}
