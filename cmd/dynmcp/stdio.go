package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/host"
)

// stdioFlags say how one host is served.
type stdioFlags struct {
	runFlags
	from   configFlags
	level  string
	expose []string
	create bool
}

// stdioCommand serves one host on stdin and stdout: what dynmcp does without a
// verb.
func stdioCommand() *cobra.Command {
	var flags stdioFlags
	cmd := &cobra.Command{
		Use:   "dynmcp [flags] [-- command args…]",
		Short: "One MCP server in front of many",
		Long: `dynmcp serves an MCP host on stdin and stdout. It connects to the MCP servers
of a config file, or to the one whose command follows "--", and shows the host
three tools instead of all of theirs: discover_tool, use_tool, load_mcp.`,
		Example: `  dynmcp -- npx -y @modelcontextprotocol/server-everything stdio
  dynmcp -c mcp.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash > 0 || dash < 0 && len(args) > 0 {
				if err := pyMCPBrokerArguments(cmd, args); err != nil {
					return err
				}
				return unknownVerb(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	flags.from.add(cmd)
	cmd.Flags().StringSliceVar(&flags.expose, "expose", nil, "the `surfaces` the host sees, whatever the config says (discover, direct, tree, browser, proxy or auto; direct is every tool as itself, auto that or discover, by the host)")
	flags.runFlags.add(cmd)
	addLogLevel(cmd, &flags.level, "what to log on stderr")
	cmd.Flags().BoolVar(&flags.create, "create", false, "write the file that --config names, with an example, if it is not there")
	completeValues(cmd, map[string][]string{"expose": schema.Surfaces})
	return cmd
}

func (f *stdioFlags) run(cmd *cobra.Command, args []string) error {
	log, err := logger(os.Stderr, f.level)
	if err != nil {
		return err
	}
	f.from.strict = f.strict
	if f.create {
		if err := createConfig(f.from.config, log); err != nil {
			return err
		}
	}
	cfg, err := stdioConfig(cmd.Context(), &f.from, cmd.ArgsLenAtDash() >= 0, args, f.expose)
	if err != nil {
		return err
	}
	if f.tree.dump {
		return dumpTree(cfg, f.tree, log)
	}
	return serveStdio(cfg, &f.from, f.runFlags, log)
}

// unknownVerb is the error for a word that is not a verb: a typo, or the command
// of a server.
func unknownVerb(cmd *cobra.Command, word string) error {
	err := fmt.Errorf("unknown command %q", word)
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		return hinted(err, "did you mean dynmcp %s? To wrap a server, write: dynmcp -- %s", strings.Join(near, " or "), word)
	}
	return hinted(err, "to wrap a server, write: dynmcp -- %s", word)
}

func stdioConfig(ctx context.Context, from *configFlags, wrap bool, args, expose []string) (*schema.Config, error) {
	if err := checkSurfaces(expose); err != nil {
		return nil, err
	}
	switch {
	case !wrap:
		from.expose = expose
		return from.load(ctx)
	case len(args) == 0:
		return nil, hinted(errors.New("no upstream command was provided after --"),
			"dynmcp -- npx -y @modelcontextprotocol/server-everything stdio")
	case from.config != "":
		return nil, hinted(errors.New("a config file and a command after -- exclude each other"), "leave out one of them")
	}
	cfg := schema.Single(args[0], args[1:])
	if expose != nil {
		cfg.Expose = expose
	}
	return cfg, nil
}

func checkSurfaces(expose []string) error {
	for _, surface := range expose {
		if !slices.Contains(schema.Surfaces, surface) {
			err := fmt.Errorf("--expose: unknown surface %q", surface)
			if near := schema.Nearest(surface, schema.Surfaces); near != "" {
				return hinted(err, "did you mean %s?", near)
			}
			return hinted(err, "there are %s", strings.Join(schema.Surfaces, ", "))
		}
	}
	if err := schema.CheckExpose(expose); err != nil {
		return hinted(fmt.Errorf("--expose: %w", err), "leave out one of them")
	}
	return nil
}

func serveStdio(cfg *schema.Config, from *configFlags, flags runFlags, log *slog.Logger) error {
	ctx, stop := untilSignal(cfg.SingleWrap)
	defer stop()
	return serveConfig(cfg, from, flags, aggregator.Options{Logger: log}, func(agg *aggregator.Aggregator) error {
		if screen := terminal.New(os.Stderr); screen.Interactive && term.IsTerminal(int(os.Stdin.Fd())) {
			screen.Say("dynmcp waits for an MCP host on stdin: put it into a host's config (dynmcp install), which then starts it. " +
				"For people there are dynmcp ls, dynmcp test and dynmcp --help. Ctrl-D ends it.")
		}
		in, out, restore := host.Std()
		defer restore()
		return agg.Serve(ctx, in, out)
	})
}
