package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/schema"
)

// A target is what the verbs that start servers work on: a config file, or one
// server whose command follows "--".
type target struct {
	configFlags
	verbose bool
	stored  bool // servers that are known from an earlier run need not be started

	// Set when the verb runs.
	cfg         *schema.Config
	out, errOut *terminal.Writer
	log         *slog.Logger // nil is silent
}

// command completes a verb: its flags, and how it runs. run gets the words before
// "--", and a context that ends when the user interrupts.
func (t *target) command(cmd *cobra.Command, run func(ctx context.Context, args []string) error) *cobra.Command {
	t.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args, err := t.load(cmd.Context(), cmd, args)
		if err != nil {
			return err
		}
		return interruptibly(cmd, func(ctx context.Context) error { return run(ctx, args) })
	}
	return cmd
}

func (t *target) add(cmd *cobra.Command) {
	t.configFlags.add(cmd)
	cmd.Flags().BoolVar(&t.verbose, "verbose", false, "log on stderr what dynmcp and the servers do")
}

// load loads the config and returns the words before "--".
func (t *target) load(ctx context.Context, cmd *cobra.Command, args []string) (words []string, err error) {
	t.out, t.errOut = stdout(cmd), stderr(cmd)
	if t.verbose {
		t.log = slog.New(slog.NewTextHandler(secrets.Writer(t.errOut), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		t.cfg, err = stdioConfig(ctx, &t.configFlags, true, args[dash:], nil)
		return args[:dash], err
	}
	t.cfg, err = t.configFlags.load(ctx)
	return args, err
}

// start starts servers of the config and nothing else. close must be called,
// unless there is an error.
func (t *target) start(ctx context.Context, servers ...string) (h *selfHost, failed map[string]error, err error) {
	if !t.cfg.SingleWrap {
		if h, err = startSelf(ctx, onlyServers(t.cfg, servers...), t.log); err != nil {
			return nil, nil, err
		}
	}
	if t.stored && h != nil {
		view := h.agg.View()
		servers = slices.DeleteFunc(slices.Clone(servers), func(name string) bool { info, _ := view.Server(name); return info.Stored })
		if len(servers) == 0 {
			return h, nil, nil
		}
	}
	waiting, ready := terminal.ShowStarting(t.errOut, servers)
	defer waiting.End()
	if h == nil {
		if h, err = startSelf(ctx, t.cfg, t.log); err != nil {
			return nil, nil, err
		}
	}
	return h, h.load(ctx, ready, servers...), nil
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
	if info, _ := h.agg.View().Server(server); !ok && info.Stored { // it may be new there
		waiting := terminal.ShowProgress(t.errOut, "starting "+server)
		failed = h.load(ctx, func(string) {}, server)
		waiting.End()
		tool, ok = h.agg.View().Tool(name)
	}
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
			s.Disabled = s.Off != nil
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

// wanted returns the servers that hosts are to be offered: the enabled ones, and
// those that are off.
func wanted(cfg *schema.Config) []schema.Server {
	return slices.DeleteFunc(slices.Clone(cfg.Servers), func(s schema.Server) bool { return s.Disabled && s.Off == nil })
}

// offError says why a server is off.
func offError(s schema.Server) error {
	return hinted(fmt.Errorf("%s is off: %s", s.Name, s.Off.Why()), "%s", s.Off.Hint)
}

func names(servers []schema.Server) []string {
	var names []string
	for _, s := range servers {
		names = append(names, s.Name)
	}
	return names
}

// mostListed is how many names an error lists.
const mostListed = 10

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
	all := names(cfg.Servers)
	if near := schema.Nearest(name, all); near != "" {
		return schema.Server{}, hinted(err, "did you mean %s? dynmcp ls lists them all", near)
	}
	if len(all) > mostListed {
		return schema.Server{}, hinted(err, "the config has %d servers; dynmcp ls lists them", len(all))
	}
	return schema.Server{}, hinted(err, "the config has: %s", strings.Join(all, ", "))
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

// addServerFlag adds --server, which narrows a verb that starts all servers.
func (t *target) addServerFlag(cmd *cobra.Command, only *string) {
	cmd.Flags().StringVar(only, "server", "", "start and ask only this `server`")
	// The error is about a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("server", completeServers(&t.configFlags, ""))
}

// startSome starts the server of that name, or all where it is empty, but those that
// need not be. Those that
// cannot be started are reported on stderr; that none can is an error. close must
// be called, unless there is an error.
func (t *target) startSome(ctx context.Context, only string) (*selfHost, error) {
	servers := wanted(t.cfg)
	if only != "" {
		s, err := serverNamed(t.cfg, only)
		if err != nil {
			return nil, err
		}
		servers = []schema.Server{s}
	}
	h, failed, err := t.start(ctx, names(servers)...)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		h.close()
		return nil, errInterrupted
	}
	if err := t.reportLeftOut(failed, servers); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// reportLeftOut says on stderr which servers could not be started. It is an error
// if none could. Why is said where one was asked for, and by test.
func (t *target) reportLeftOut(failed map[string]error, servers []schema.Server) error {
	var left []string
	for _, s := range servers {
		if failed[s.Name] != nil {
			left = append(left, s.Name)
		}
	}
	switch {
	case len(left) == 0:
		return nil
	case len(servers) == 1:
		return failed[left[0]]
	}
	t.errOut.Say("%d of %s could not be started and are left out (dynmcp test says why): %s", len(left), count(len(servers), "server"), strings.Join(left, ", "))
	if len(left) == len(servers) {
		return errors.New("no server could be started")
	}
	return nil
}
