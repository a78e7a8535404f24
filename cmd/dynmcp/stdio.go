package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// configFlags say which config is meant, and are the same for every verb.
type configFlags struct {
	config  string
	envFile string
	strict  bool          // a variable that is not set is an error
	expose  []string      // the surfaces, whatever the config says
	read    *schema.Files // by load

	// pushed has the documents that take the place of read, where the config comes from the
	// cluster; nil is that it is in files.
	pushed <-chan *schema.Files
}

func (f *configFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.config, "config", "c", "", "config `file` (default: mcp.json or .mcp.json in the working directory)")
	cmd.Flags().StringVarP(&f.envFile, "env", "e", "", "`file` to read variables from instead of .env")
}

// load reads the config that the flags name, or the one it finds, on top of the
// user's; or it loads that of the cluster.
func (f *configFlags) load(ctx context.Context) (*schema.Config, error) {
	if f.pushed == nil {
		paths, err := f.files()
		if err != nil {
			return nil, err
		}
		f.read = schema.ReadFiles(ctx, paths, f.options())
	}
	return loadFiles(f.read)
}

func (f *configFlags) options() schema.LoadOptions {
	return schema.LoadOptions{EnvFile: f.envFile, Strict: f.strict, Expose: f.expose}
}

func loadFiles(files *schema.Files) (*schema.Config, error) {
	cfg, err := files.Load()
	if err == nil {
		disableNested(cfg, selfloop.Above())
		secrets.Add(cfg.Secrets()...)
	}
	return cfg, err
}

// stdioFlags say how a host is served.
type stdioFlags struct {
	strict bool
	watch  bool
	tree   treeFlags
}

func (f *stdioFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.strict, "strict", false, "exit if a variable is not set, or a server that is not lazy cannot be started")
	cmd.Flags().BoolVar(&f.watch, "watch", true, "reload the config when its files change; SIGHUP always does")
	cmd.Flags().BoolVar(&f.watch, "reload", true, "") // as pyMCPBroker calls it
	_ = cmd.Flags().MarkHidden("reload")
	f.tree.add(cmd)
}

// stdioCommand serves one host on stdin and stdout: what dynmcp does without a
// verb.
func stdioCommand() *cobra.Command {
	var from configFlags
	var flags stdioFlags
	var level string
	var expose []string
	var create bool
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
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := logger(os.Stderr, level)
			if err != nil {
				return err
			}
			from.strict = flags.strict
			if create {
				if err := createConfig(from.config, log); err != nil {
					return err
				}
			}
			cfg, err := stdioConfig(cmd.Context(), &from, cmd.ArgsLenAtDash() >= 0, args, expose)
			if err != nil {
				return err
			}
			if flags.tree.dump {
				return dumpTree(cfg, flags.tree, log)
			}
			return serveStdio(cfg, &from, flags, log)
		},
	}
	from.add(cmd)
	cmd.Flags().StringSliceVar(&expose, "expose", nil, "the `surfaces` the host sees, whatever the config says (discover, direct, tree, browser, proxy or auto; direct is every tool as itself, auto that or discover, by the host)")
	flags.add(cmd)
	addLogLevel(cmd, &level, "what to log on stderr")
	cmd.Flags().BoolVar(&create, "create", false, "write the file that --config names, with an example, if it is not there")
	completeValues(cmd, map[string][]string{"expose": schema.Surfaces})
	return cmd
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

func serveStdio(cfg *schema.Config, from *configFlags, flags stdioFlags, log *slog.Logger) error {
	ctx, stop := untilSignal(cfg.SingleWrap)
	defer stop()
	return serveConfig(cfg, from, flags, aggregator.Options{Logger: log}, func(agg *aggregator.Aggregator) error {
		if screen := newTerminal(os.Stderr); screen.interactive && term.IsTerminal(int(os.Stdin.Fd())) {
			screen.say("dynmcp waits for an MCP host on stdin: put it into a host's config (dynmcp install), which then starts it. " +
				"For people there are dynmcp ls, dynmcp test and dynmcp --help. Ctrl-D ends it.")
		}
		in, out, restore := host.Std()
		defer restore()
		return agg.Serve(ctx, in, out)
	})
}

// untilSignal returns a context that ends when a signal asks us to end. The second one
// has its default effect: it ends us at once. hangup is that SIGHUP asks for it as well.
func untilSignal(hangup bool) (ctx context.Context, stop func()) {
	signals := endSignals(os.Interrupt)
	if hangup {
		signals = endSignals(os.Interrupt, syscall.SIGHUP)
	}
	ctx, stop = signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop)
	// When the host no longer reads, writes fail. Without this the signal would end
	// us instead, and leave behind what the servers started.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return ctx, stop
}

// serveConfig calls serve with an aggregator for the config, which follows its files or
// what is pushed. What the aggregator started has ended when it returns.
func serveConfig(cfg *schema.Config, from *configFlags, flags stdioFlags, opts aggregator.Options, serve func(*aggregator.Aggregator) error) error {
	log := opts.Logger
	for _, warning := range cfg.Warnings {
		log.Warn(warning)
	}
	if err := checkCommands(cfg, flags.strict, log); err != nil {
		return err
	}
	opts.Strict, opts.IgnoreBrokenTools = flags.strict, flags.tree.ignoreBroken
	agg, err := newAggregator(cfg, opts)
	if err != nil {
		return err
	}
	defer agg.Close()
	if !cfg.SingleWrap {
		paths, err := from.watched()
		if err != nil {
			return err
		}
		r := &reloader{envFile: from.envFile, paths: paths, pushed: from.pushed, read: from.read, agg: agg, log: log}
		defer r.start(flags.watch)()
	}
	return serve(agg)
}

// checkCommands warns of missing commands before a host is told of their servers.
// One that the run can do nothing without is fatal.
func checkCommands(cfg *schema.Config, strict bool, log *slog.Logger) error {
	for _, s := range cfg.Servers {
		if s.Off != nil {
			log.Warn("server is off", "upstream", s.Name, "why", s.Off.Why(), "hint", s.Off.Hint)
		}
		if s.Disabled || s.Transport != schema.Stdio {
			continue
		}
		err := command.Check(s)
		if err == nil {
			continue
		}
		if cfg.SingleWrap || strict && !s.Lazy() {
			return err
		}
		log.Warn("server cannot start", "upstream", s.Name, "err", err)
	}
	return nil
}
