package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/schema"
)

func warmCommand() *cobra.Command {
	var on target
	var asJSON bool
	var timeout milliseconds
	cmd := on.command(&cobra.Command{
		Use:   "warm [flags] [name…]",
		Short: "List servers anew and keep what they have",
		Long: `Start servers, keep what they list, and stop them again, so that their tools are
found and shown from then on without starting them. Without a name that is all
servers of the config, several at a time; each result is printed as it comes.

The exit status is 1 if a server failed. What is known of that one stays.`,
		Example: `  dynmcp warm
  dynmcp warm files git --timeout 10s`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeServers(&on.configFlags, ""),
	}, func(ctx context.Context, args []string) error {
		return on.warmNamed(ctx, args, time.Duration(timeout), asJSON)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the results as JSON")
	timeout.add(cmd)
	return cmd
}

// warmNamed lists the servers of these names, or all of the config.
func (t *target) warmNamed(ctx context.Context, args []string, timeout time.Duration, asJSON bool) error {
	if t.cfg.SingleWrap {
		return hinted(errors.New("nothing is kept of a command after --"), "dynmcp add NAME -- COMMAND puts it into a config")
	}
	kept := store.Of(t.cfg, catalogDir())
	if kept == nil {
		return hinted(errors.New("the config keeps nothing of servers"), `take out "dir": "" of catalog`)
	}
	if err := kept.Check(); err != nil {
		return hinted(fmt.Errorf("nothing can be kept: %w", err), "catalog.dir of the config names another directory")
	}
	servers := wanted(t.cfg)
	if len(args) > 0 {
		servers = nil
	}
	for _, name := range args {
		s, err := serverNamed(t.cfg, name)
		if err != nil {
			return err
		}
		servers = append(servers, s)
	}
	return t.warm(ctx, kept, servers, timeout, asJSON)
}

// warm lists servers and keeps what they list.
func (t *target) warm(ctx context.Context, kept *store.Store, servers []schema.Server, timeout time.Duration, asJSON bool) error {
	lister := tester{target: t, timeout: timeout, check: func(s schema.Server) error {
		stored, err := kept.Load(s)
		if err == nil && stored == nil {
			err = errors.New("what it lists could not be kept; --verbose says why")
		}
		return err
	}}
	return lister.all(ctx, servers, fmt.Sprintf("Listing servers (%d)", len(servers)), asJSON)
}

// addWarmFlag adds the flag of verbs that write a config or put one into a host.
func addWarmFlag(cmd *cobra.Command, warm *bool) {
	cmd.Flags().BoolVar(warm, "warm", false, "start servers that were never listed and list them, without asking")
}

// offerWarm lists the servers of a config that were never listed, so that the first
// session with them knows their tools, as the second does. It asks on a terminal, unless
// now is set; without a terminal it says which they are and how to list them. If names
// are given, it is about these servers alone. A server that fails is shown, and is no
// error of the verb that offers.
func offerWarm(cmd *cobra.Command, from configFlags, now bool, only ...string) error {
	from.asWritten = true // until it is clear that servers are started
	on := target{configFlags: from, out: stdout(cmd), errOut: stderr(cmd)}
	var err error
	if on.cfg, err = on.configFlags.load(cmd.Context()); err != nil {
		return nil // the verb has said it
	}
	kept := store.Of(on.cfg, catalogDir())
	if kept == nil || kept.Check() != nil {
		return nil
	}
	unknown := slices.DeleteFunc(enabled(on.cfg), func(s schema.Server) bool {
		stored, err := kept.Load(s)
		return err == nil && stored != nil || len(only) > 0 && !slices.Contains(only, s.Name)
	})
	if len(unknown) == 0 {
		return nil
	}
	which := strings.Join(names(unknown), ", ")
	if !now && !confirmed(cmd, fmt.Sprintf("Never listed, so that the first session does not know their tools: %s\nStart and list them now?", which)) {
		on.errOut.Printf("Never listed, so that the first session does not know their tools: %s\nTo list them: %s\n", which, on.warmCommand())
		return nil
	}
	return interruptibly(cmd, func(ctx context.Context) error {
		on.asWritten = false
		if on.cfg, err = on.configFlags.load(ctx); err != nil {
			return err
		}
		listed := names(unknown)
		unknown = slices.DeleteFunc(enabled(on.cfg), func(s schema.Server) bool { return !slices.Contains(listed, s.Name) })
		if err := on.warm(ctx, kept, unknown, 0, false); errors.Is(err, errInterrupted) {
			return err
		}
		return nil // each result was printed
	})
}

// warmCommand is what a user writes to have the servers of the config listed.
func (f *configFlags) warmCommand() string {
	words := []string{"dynmcp", "warm"}
	if files, err := f.files(); err == nil {
		words = append(words, "-c", files[0])
	}
	if f.envFile != "" {
		words = append(words, "-e", f.envFile)
	}
	return shellescape.QuoteCommand(words)
}
