package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"dynmcp/catalog"
	"dynmcp/schema"
)

// A target is what the verbs that start servers work on: a config file, or one
// server whose command follows "--".
type target struct {
	configFlags
	verbose bool

	// Set when the verb runs.
	cfg         *schema.Config
	out, errOut *terminal
	log         *slog.Logger // nil is silent
}

// command completes a verb: its flags, and how it runs. run gets the words before
// "--", and a context that ends when the user interrupts.
func (t *target) command(cmd *cobra.Command, run func(ctx context.Context, args []string) error) *cobra.Command {
	t.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args, err := t.load(cmd, args)
		if err != nil {
			return err
		}
		ctx, stop := interruptible(cmd)
		defer stop()
		return run(ctx, args)
	}
	return cmd
}

func (t *target) add(cmd *cobra.Command) {
	t.configFlags.add(cmd)
	cmd.Flags().BoolVar(&t.verbose, "verbose", false, "log on stderr what dynmcp and the servers do")
}

// interruptible returns a context that ends when the user interrupts. The second
// signal has its default effect: it ends us at once.
func interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(cmd.Context(), endSignals(os.Interrupt, syscall.SIGHUP)...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// endSignals returns the signals that end dynmcp: SIGTERM, and those given that were
// not ignored when it was started. What nohup, or a script for its background jobs,
// had ignored stays ignored.
func endSignals(signals ...os.Signal) []os.Signal {
	return append(slices.DeleteFunc(signals, signal.Ignored), syscall.SIGTERM)
}

// load loads the config and returns the words before "--".
func (t *target) load(cmd *cobra.Command, args []string) (words []string, err error) {
	t.out, t.errOut = stdout(cmd), stderr(cmd)
	if t.verbose {
		t.log = slog.New(slog.NewTextHandler(secrets.Writer(t.errOut), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		t.cfg, err = stdioConfig(&t.configFlags, true, args[dash:], nil)
		return args[:dash], err
	}
	t.cfg, err = t.configFlags.load()
	return args, err
}

// start starts servers of the config and nothing else. close must be called,
// unless there is an error.
func (t *target) start(ctx context.Context, servers ...string) (h *selfHost, failed map[string]error, err error) {
	waiting := showProgress(t.errOut, "starting "+strings.Join(servers, ", "))
	defer waiting.end()
	h, err = startSelf(ctx, onlyServers(t.cfg, servers...), t.log)
	if err != nil {
		return nil, nil, err
	}
	return h, h.load(ctx, servers...), nil
}

// startTool starts the server of a tool, and it alone, and finds the tool. close
// must be called, unless there is an error.
func (t *target) startTool(ctx context.Context, name string) (*selfHost, *catalog.Tool, error) {
	server, err := serverOfTool(t.cfg, name)
	if err != nil {
		return nil, nil, err
	}
	h, failed, err := t.start(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	tool, ok := h.agg.View().Tool(name)
	switch {
	case failed[server] != nil:
		err = failed[server]
	case !ok:
		err = unknownTool(h.agg.View(), name)
	default:
		return h, tool, nil
	}
	h.close()
	return nil, nil, err
}

// onlyServers returns cfg with these servers alone, all of them lazy: a verb
// starts the servers it is about and no other.
func onlyServers(cfg *schema.Config, servers ...string) *schema.Config {
	only := *cfg
	only.Expose = []string{schema.ExposeDiscover}
	only.Servers = nil
	for _, s := range cfg.Servers {
		if slices.Contains(servers, s.Name) {
			s.Disabled = false
			if !cfg.SingleWrap {
				s.Load = schema.LoadLazy
			}
			only.Servers = append(only.Servers, s)
		}
	}
	return &only
}

// enabled returns the servers that hosts are offered.
func enabled(cfg *schema.Config) []schema.Server {
	return slices.DeleteFunc(slices.Clone(cfg.Servers), func(s schema.Server) bool { return s.Disabled })
}

func names(servers []schema.Server) []string {
	var names []string
	for _, s := range servers {
		names = append(names, s.Name)
	}
	return names
}

// serverNamed returns a server of the config.
func serverNamed(cfg *schema.Config, name string) (schema.Server, error) {
	for _, s := range cfg.Servers {
		if s.Name == name {
			return s, nil
		}
	}
	err := messageError(fmt.Sprintf("Unknown MCP %q", name))
	if len(cfg.Servers) == 0 {
		return schema.Server{}, hinted(err, "the config has no servers; dynmcp add adds one")
	}
	return schema.Server{}, hinted(err, "the config has: %s", strings.Join(names(cfg.Servers), ", "))
}

// completeServers completes names of servers of the config, with something after
// them.
func completeServers(t *configFlags, suffix string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		cfg, err := t.load()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for _, s := range cfg.Servers {
			words = append(words, cobra.CompletionWithDesc(s.Name+suffix, s.Description))
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if suffix != "" {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return words, directive
	}
}

// atMost limits the number of arguments before "--". It is what cobra has, with a
// hint.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args = args[:dash]
		}
		if len(args) > n {
			return unexpectedArgument(cmd, args[n])
		}
		return nil
	}
}

// noArguments takes what follows "--" for an argument as well.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unexpectedArgument(cmd, args[0])
	}
	return nil
}

func unexpectedArgument(cmd *cobra.Command, arg string) error {
	return hinted(fmt.Errorf("%s: unexpected argument %q", cmd.CommandPath(), arg), "%s --help shows its usage", cmd.CommandPath())
}
