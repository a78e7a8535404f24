package pins

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/warm"
	"github.com/dynmcp/dynmcp/modules/pins/lock"
)

// diff shows tools that differ from the approved ones.
var diff = cli.Verb{
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
		return reviewed(cmd, func(ctx context.Context, r *review) error { return r.diff(ctx) })
	},
}

// approve approves the current tools.
var approve = cli.Verb{
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
		return reviewed(cmd, func(ctx context.Context, r *review) error {
			if *all {
				return r.approve(ctx, nil)
			}
			in := cli.Terminal(cmd)
			if in == nil {
				return hint.With(errors.New("there is no terminal to ask on"), "dynmcp diff shows what differs, --all approves it")
			}
			answers := cli.Lines(ctx, in)
			return r.approve(ctx, func(question string) (string, error) {
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
func reviewed(cmd *cobra.Command, verb func(context.Context, *review) error) cli.Run {
	on := selfhost.Target{About: selfhost.OfServers}
	start := cmd.Flags().Bool("start", false, "start the servers and list them again first")
	cmd.ValidArgsFunction = complete(&on)
	return on.Run(cmd, func(ctx context.Context, args []string) error {
		r := &review{
			linter: &linter{cfg: on.Cfg}, out: on.Out,
			files: lock.Files{Lock: lock.FileOf(on.Cfg.Path), Definitions: conf.DefinitionsDir()},
		}
		if err := r.choose(strings.Join(args, "")); err != nil {
			return err
		}
		if *start {
			if err := warm.WarmNamed(ctx, &on, conf.Names(r.servers), 0, false); err != nil {
				return err
			}
			on.Out.Printf("\n")
		}
		return verb(ctx, r)
	})
}

// complete completes the names of servers, and after a slash of their tools.
func complete(on *selfhost.Target) cobra.CompletionFunc {
	servers, tools := conf.CompleteServers(&on.Flags, ""), selfhost.CompleteTools(on)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if strings.Contains(word, "/") {
			return tools(cmd, args, word)
		}
		words, directive := servers(cmd, args, word)
		return words, directive | cobra.ShellCompDirectiveNoSpace // a slash and a tool may follow
	}
}
