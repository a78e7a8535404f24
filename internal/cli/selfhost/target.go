package selfhost

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/schema"
)

// A Target is the subject of a verb that starts servers: a config file, or one server whose
// command follows "--".
type Target struct {
	conf.Flags
	verbose bool
	Stored  bool // do not start servers with a stored listing

	// About returns the servers that the words of a verb refer to. Only their secrets are
	// resolved; a nil result or a nil function means all.
	About func(words []string) []string

	// Set by Load.
	Cfg         *schema.Config
	Out, ErrOut *terminal.Writer
	Log         *slog.Logger // nil without --verbose
}

// Run adds the flags of a target to the command of a verb, and returns the function that loads the
// target and calls verb. verb gets the words before "--", and a context that ends when the user
// interrupts.
func (t *Target) Run(cmd *cobra.Command, verb func(ctx context.Context, args []string) error) cli.Run {
	t.Add(cmd)
	return func(cmd *cobra.Command, args []string) error {
		args, err := t.Load(cmd.Context(), cmd, args)
		if err != nil {
			return err
		}
		return cli.Interruptibly(cmd, func(ctx context.Context) error { return verb(ctx, args) })
	}
}

// Add adds the flags of a target to a command.
func (t *Target) Add(cmd *cobra.Command) {
	t.Flags.Add(cmd)
	cmd.Flags().BoolVar(&t.verbose, "verbose", false, "log on stderr what dynmcp and the servers do")
}

// Verbose reports whether --verbose was given.
func (t *Target) Verbose() bool { return t.verbose }

// Load loads the config and returns the words before "--".
func (t *Target) Load(ctx context.Context, cmd *cobra.Command, args []string) (words []string, err error) {
	t.Out, t.ErrOut = cli.Stdout(cmd), cli.Stderr(cmd)
	if t.verbose {
		t.Log = cli.LoggerAt(t.ErrOut, slog.LevelDebug)
	}
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		t.Cfg, err = conf.LoadOrWrap(ctx, &t.Flags, true, args[dash:], nil)
		return args[:dash], err
	}
	if t.About != nil {
		t.Only = t.About(args)
	}
	t.Cfg, err = t.Flags.Load(ctx)
	return args, err
}

// OfTools is a Target.About function. It returns the server of the first word, if that has the form
// server/tool.
func OfTools(words []string) (servers []string) {
	if len(words) > 0 && strings.Contains(words[0], "/") {
		return OfServers(words[:1])
	}
	return nil
}

// OfServers is a Target.About function. It returns the servers of words of the form server or
// server/tool.
func OfServers(words []string) (servers []string) {
	for _, word := range words {
		server, _, _ := strings.Cut(word, "/")
		servers = append(servers, server)
	}
	return servers
}

// Start starts only the given servers of the config. The caller must close the Host.
func (t *Target) Start(ctx context.Context, servers ...string) (h *Host, failed map[string]error, err error) {
	if !t.Cfg.SingleWrap {
		if h, err = Start(ctx, OnlyServers(t.Cfg, servers...), t.Log); err != nil {
			return nil, nil, err
		}
	}
	if t.Stored && h != nil {
		view := h.View()
		servers = slices.DeleteFunc(slices.Clone(servers), func(name string) bool { info, _ := view.Server(name); return info.Stored })
		if len(servers) == 0 {
			return h, nil, nil
		}
	}
	waiting, ready := terminal.ShowStarting(t.ErrOut, servers)
	defer waiting.End()
	if h == nil {
		if h, err = Start(ctx, t.Cfg, t.Log); err != nil {
			return nil, nil, err
		}
	}
	return h, h.Load(ctx, ready, servers...), nil
}

// OnlyServers returns cfg with only the given servers, all of them lazy.
func OnlyServers(cfg *schema.Config, servers ...string) *schema.Config {
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

// AddServerFlag adds --server, which limits a verb that starts all servers to one.
func (t *Target) AddServerFlag(cmd *cobra.Command, only *string) {
	cmd.Flags().StringVar(only, "server", "", "start and ask only this `server`")
	t.About = func([]string) []string { return named(*only) }
	// It fails only if the flag does not exist.
	_ = cmd.RegisterFlagCompletionFunc("server", conf.CompleteServers(&t.Flags, ""))
}

// named returns the name that a flag selects, or nil if it is "".
func named(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// StartSome starts the server only, or all servers if only is "". It reports servers that fail on
// stderr, and returns an error if all fail. The caller must close the Host.
func (t *Target) StartSome(ctx context.Context, only string) (*Host, error) {
	servers, err := conf.Named(t.Cfg, named(only))
	if err != nil {
		return nil, err
	}
	h, failed, err := t.Start(ctx, conf.Names(servers)...)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		h.Close()
		return nil, cli.ErrInterrupted
	}
	if err := t.ReportLeftOut(failed, servers); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// ReportLeftOut reports on stderr which servers failed, and returns an error if all did. It gives
// the reason only for a single server; the verb test shows the others.
func (t *Target) ReportLeftOut(failed map[string]error, servers []schema.Server) error {
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
	t.ErrOut.Say("%d of %s could not be started and are left out (dynmcp test says why): %s", len(left), display.Plural(len(servers), "server"), strings.Join(left, ", "))
	if len(left) == len(servers) {
		return errors.New("no server could be started")
	}
	return nil
}
