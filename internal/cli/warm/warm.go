package warm

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
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/profile"
)

// Warm lists servers and stores the listings.
var Warm = cli.Verb{
	Use:    "warm [flags] [name…]",
	Hidden: true,
	Short:  "Refresh the stored tool listings",
	Long: `Start servers, keep what they list, and stop them again, so that their tools are
found and shown from then on without starting them. Without a name that is all
servers of the config, several at a time; each result is printed as it comes.

The exit status is 1 if a server failed. What is known of that one stays.`,
	Example: `  dynmcp test --store
  dynmcp test --store files git --timeout 10s`,
	Args: cobra.ArbitraryArgs,
	New: func(cmd *cobra.Command) cli.Run {
		on := selfhost.Target{About: selfhost.OfServers}
		var asJSON bool
		var timeout time.Duration
		cmd.Flags().BoolVar(&asJSON, "json", false, "print the results as JSON")
		cli.AddTimeout(cmd, &timeout, "a server", "default: its load_timeout")
		cmd.ValidArgsFunction = conf.CompleteServers(&on.Flags, "")
		return on.Run(cmd, func(ctx context.Context, args []string) error {
			return WarmNamed(ctx, &on, args, timeout, asJSON)
		})
	},
}

// WarmNamed lists the servers called args, or all servers of the config, and stores the listings.
func WarmNamed(ctx context.Context, t *selfhost.Target, args []string, timeout time.Duration, asJSON bool) error {
	if t.Cfg.SingleWrap {
		return hint.With(errors.New("nothing is kept of a command after --"), "dynmcp add NAME -- COMMAND puts it into a config")
	}
	kept := store.Of(t.Cfg, conf.CatalogDir())
	if kept == nil {
		return hint.With(errors.New("the config keeps nothing of servers"), `take out "dir": "" of catalog`)
	}
	if err := kept.Check(); err != nil {
		return hint.With(fmt.Errorf("nothing can be kept: %w", err), "catalog.dir of the config names another directory")
	}
	servers, err := conf.Named(t.Cfg, args)
	if err != nil {
		return err
	}
	return warm(ctx, t, kept, servers, timeout, asJSON)
}

func warm(ctx context.Context, t *selfhost.Target, kept *store.Listings, servers []schema.Server, timeout time.Duration, asJSON bool) error {
	lister := tester{Target: t, linter: module.LinterOf(ctx, t.Cfg), timeout: timeout, check: func(s schema.Server) error {
		stored, err := kept.Load(s)
		if err == nil && stored == nil {
			err = errors.New("what it lists could not be kept; --verbose says why")
		}
		return err
	}}
	return lister.all(ctx, servers, fmt.Sprintf("Listing servers (%d)", len(servers)), asJSON)
}

// AddWarmFlag adds --warm to a verb that writes a config or puts one into a host.
func AddWarmFlag(cmd *cobra.Command, warm *bool) {
	cmd.Flags().BoolVar(warm, "warm", false, "start servers that are not listed yet and list them, without asking")
}

// OfferWarm lists the servers of a config that were never listed, so that their tools are known in
// the first session. Unless now is set, it asks on a terminal first; without a terminal it prints how
// to list them. If only is not empty, other servers are left out. The failure of a server is printed,
// and is not an error.
func OfferWarm(cmd *cobra.Command, from conf.Flags, now bool, only ...string) error {
	from.Profile = profile.All
	from.AsWritten = true // until the user has agreed to start servers
	on := selfhost.Target{Flags: from, Out: cli.Stdout(cmd), ErrOut: cli.Stderr(cmd)}
	var err error
	if on.Cfg, err = on.Flags.Load(cmd.Context()); err != nil {
		return nil // the verb has already reported the error
	}
	kept := store.Of(on.Cfg, conf.CatalogDir())
	if kept == nil || kept.Check() != nil {
		return nil
	}
	unknown := slices.DeleteFunc(conf.Enabled(on.Cfg), func(s schema.Server) bool {
		stored, err := kept.Load(s)
		return err == nil && stored != nil || len(only) > 0 && !slices.Contains(only, s.Name)
	})
	if len(unknown) == 0 {
		return nil
	}
	which, them := strings.Join(conf.Names(unknown), ", "), "it"
	if len(unknown) > 1 {
		them = "them"
	}
	if !now && !cli.Confirmed(cmd, fmt.Sprintf("dynmcp has not seen the tools of %s yet. Start %s now to list them?", which, them)) {
		on.ErrOut.Printf("dynmcp has not seen the tools of %s yet: the first session does not find them.\nTo list them: %s\n", which, warmLine(&on.Flags))
		return nil
	}
	return cli.Interruptibly(cmd, func(ctx context.Context) error {
		on.AsWritten = false
		if on.Cfg, err = on.Flags.Load(ctx); err != nil {
			return err
		}
		listed := conf.Names(unknown)
		unknown = slices.DeleteFunc(conf.Enabled(on.Cfg), func(s schema.Server) bool { return !slices.Contains(listed, s.Name) })
		if err := warm(ctx, &on, kept, unknown, 0, false); errors.Is(err, cli.ErrInterrupted) {
			return err
		}
		return nil // failures were printed
	})
}

// warmLine returns the command line that lists the servers of the config.
func warmLine(f *conf.Flags) string {
	words := []string{"dynmcp", "test", "--store"}
	if files, err := f.Files(); err == nil {
		words = append(words, "-c", files[0])
	}
	if f.EnvFile != "" {
		words = append(words, "-e", f.EnvFile)
	}
	return shellescape.QuoteCommand(words)
}
