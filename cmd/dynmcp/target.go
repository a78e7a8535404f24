package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"dynmcp/schema"
)

// A target is what verbs that ask upstreams work on: a config file, or one
// server whose command follows "--".
type target struct {
	configFlags
	verbose bool
}

func (t *target) add(cmd *cobra.Command) {
	t.configFlags.add(cmd)
	cmd.Flags().BoolVar(&t.verbose, "verbose", false, "log on stderr what dynmcp and the servers do")
}

// load returns the config and the words before "--".
func (t *target) load(cmd *cobra.Command, args []string) (*schema.Config, []string, error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		cfg, err := t.configFlags.load()
		return cfg, args, err
	}
	cfg, err := stdioConfig(&t.configFlags, true, args[dash:], nil)
	return cfg, args[:dash], err
}

func (t *target) options(cmd *cobra.Command) insideOptions {
	if !t.verbose {
		return insideOptions{}
	}
	log := slog.New(slog.NewTextHandler(secrets.Writer(stderr(cmd)), &slog.HandlerOptions{Level: slog.LevelDebug}))
	return insideOptions{log: log, notice: func(method string, params json.RawMessage) {
		log.Info(strings.TrimPrefix(method, "notifications/"), "params", string(params))
	}}
}

// narrowed returns cfg with these servers alone, all of them lazy: a verb
// starts what it is about and nothing else.
func narrowed(cfg *schema.Config, servers ...string) *schema.Config {
	narrow := *cfg
	narrow.Expose = []string{schema.ExposeDiscover}
	narrow.Servers = nil
	for _, s := range cfg.Servers {
		if slices.Contains(servers, s.Name) {
			s.Disabled = false
			if !cfg.SingleWrap {
				s.Load = schema.LoadLazy
			}
			narrow.Servers = append(narrow.Servers, s)
		}
	}
	return &narrow
}

// enabled returns the names of the servers that hosts are offered.
func enabled(cfg *schema.Config) []string {
	var names []string
	for _, s := range cfg.Servers {
		if !s.Disabled {
			names = append(names, s.Name)
		}
	}
	return names
}

// serverOf returns a server of the config.
func serverOf(cfg *schema.Config, name string) (schema.Server, error) {
	var names []string
	for _, s := range cfg.Servers {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return schema.Server{}, hinted(&unknownServerError{name}, "%s", known(names))
}

// An unknownServerError is about a server that the config does not have.
type unknownServerError struct{ name string }

func (e *unknownServerError) Error() string { return fmt.Sprintf("Unknown MCP %q", e.name) }

func known(names []string) string {
	if len(names) == 0 {
		return "the config has no servers; dynmcp add makes one"
	}
	return "the config has: " + strings.Join(names, ", ")
}

// interruptible returns a context that ends when the user has enough. The
// second signal is the default's: it ends us at once.
func interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// completeServers completes names of servers of the config, with something
// after them.
func completeServers(t *configFlags, suffix string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		cfg, err := t.load()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, s := range cfg.Servers {
			names = append(names, cobra.CompletionWithDesc(s.Name+suffix, s.Description))
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if suffix != "" {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return names, directive
	}
}

// noArguments and atMost are what cobra has, with a hint.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return tooMany(cmd, args[0])
	}
	return nil
}

// atMost does not count what follows "--".
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args = args[:dash]
		}
		if len(args) > n {
			return tooMany(cmd, args[n])
		}
		return nil
	}
}

func tooMany(cmd *cobra.Command, word string) error {
	return hinted(fmt.Errorf("%s: %q is one word too many", cmd.CommandPath(), word), "%s --help shows what it takes", cmd.CommandPath())
}
