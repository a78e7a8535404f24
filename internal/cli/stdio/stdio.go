// Package stdio serves one host on stdin and stdout: what dynmcp does without a verb.
package stdio

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/crash"
	"github.com/dynmcp/dynmcp/internal/cli/entries"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/run"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/host"
)

// Flags say how one host is served.
type Flags struct {
	run.Flags
	from   conf.Flags
	level  string
	Expose []string
	create bool
}

// Verb serves one host on stdin and stdout: what dynmcp does without a verb.
var Verb = cli.Verb{
	Use:   "dynmcp [flags] [-- command args…]",
	Short: "One MCP server in front of many",
	Long: `dynmcp serves an MCP host on stdin and stdout. It connects to the MCP servers
of a config file, or to the one whose command follows "--", and shows the host
three tools instead of all of theirs: discover_tool, use_tool, load_mcp.`,
	Example: `  dynmcp -- npx -y @modelcontextprotocol/server-everything stdio
  dynmcp -c mcp.json`,
	Args: func(cmd *cobra.Command, args []string) error {
		if dash := cmd.ArgsLenAtDash(); dash > 0 || dash < 0 && len(args) > 0 {
			if err := run.PyMCPBrokerArguments(cmd, args); err != nil {
				return err
			}
			return unknownVerb(cmd, args[0])
		}
		return nil
	},
	New: func(cmd *cobra.Command) cli.Run {
		var flags Flags
		flags.Add(cmd)
		return func(cmd *cobra.Command, args []string) error { return flags.Serve(cmd, args, nil) }
	},
}

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	f.from.Add(cmd)
	surfaces := schema.SurfacesOf(module.SectionsOf(cmd.Context()))
	cmd.Flags().StringSliceVar(&f.Expose, "expose", nil, "the `surfaces` the host sees, whatever the config says ("+inWords(surfaces)+"). direct shows every tool as itself; auto is direct for hosts with a tool search, and discover for others")
	f.Flags.Add(cmd)
	cli.AddLogLevel(cmd, &f.level, "what to log on stderr")
	cmd.Flags().BoolVar(&f.create, "create", false, "write the file that --config names, with an example, if it does not exist")
	cli.CompleteValues(cmd, map[string][]string{"expose": surfaces})
}

// inWords names surfaces, auto the last.
func inWords(surfaces []string) string {
	last := len(surfaces) - 1
	return strings.Join(surfaces[:last], ", ") + " or " + surfaces[last]
}

// Serve serves a host. If messages is not nil, it receives every message.
func (f *Flags) Serve(cmd *cobra.Command, args []string, messages *event.Tap) error {
	out, end := crash.Watch(os.Stderr, conf.CrashDir(), cli.Version)
	defer end()
	log, err := cli.Logger(out, f.level)
	if err != nil {
		return err
	}
	f.from.Strict = f.Strict
	if f.create {
		if err := entries.Create(cmd.Context(), f.from.Config, log); err != nil {
			return err
		}
	}
	cfg, err := conf.LoadOrWrap(cmd.Context(), &f.from, cmd.ArgsLenAtDash() >= 0, args, f.Expose)
	if err != nil {
		return err
	}
	if f.Tree.Dump {
		return run.DumpTree(cmd.Context(), cfg, f.Tree, log)
	}
	ctx, stop := run.UntilSignal(cmd.Context(), cfg.SingleWrap)
	defer stop()
	return run.Serve(ctx, cfg, &f.from, f.Flags, aggregator.Options{Logger: log, Tap: messages}, func(agg *aggregator.Aggregator, _ selfhost.Parts) error {
		if screen := terminal.New(os.Stderr); screen.Interactive && term.IsTerminal(int(os.Stdin.Fd())) {
			screen.Say("dynmcp waits for an MCP host on stdin: put it into a host's config (dynmcp install), which then starts it. " +
				"To look around, try dynmcp ls, dynmcp test and dynmcp --help. Ctrl-D ends it.")
		}
		in, out, restore := host.Std()
		defer restore()
		return agg.Serve(ctx, in, out)
	})
}

// unknownVerb is the error for a word that is not a verb: a typo, or the command
// of a server.
func unknownVerb(cmd *cobra.Command, word string) error {
	err := fmt.Errorf("unknown command %q", word)
	cmd.SuggestionsMinimumDistance = max(1, len(word)/3)
	near := cmd.SuggestionsFor(word)
	if len(near) == 0 {
		if swapped := nearest.Word(word, cli.VerbsBelow(cmd)); swapped != "" { // cobra counts two edits for two letters that are swapped
			near = []string{swapped}
		}
	}
	if len(near) > 0 {
		return hint.With(err, "did you mean dynmcp %s? To wrap a server, write: dynmcp -- %s", strings.Join(near, " or "), word)
	}
	return hint.With(err, "to wrap a server, write: dynmcp -- %s", word)
}
