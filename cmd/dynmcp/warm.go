package main

import (
	"context"
	"errors"
	"fmt"
	"time"

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
		if on.cfg.SingleWrap {
			return hinted(errors.New("nothing is kept of a command after --"), "dynmcp add NAME -- COMMAND puts it into a config")
		}
		kept := store.Of(on.cfg, catalogDir())
		if kept == nil {
			return hinted(errors.New("the config keeps nothing of servers"), `take out "dir": "" of catalog`)
		}
		if err := kept.Check(); err != nil {
			return hinted(fmt.Errorf("nothing can be kept: %w", err), "catalog.dir of the config names another directory")
		}
		servers := wanted(on.cfg)
		if len(args) > 0 {
			servers = nil
		}
		for _, name := range args {
			s, err := serverNamed(on.cfg, name)
			if err != nil {
				return err
			}
			servers = append(servers, s)
		}
		t := tester{target: &on, timeout: time.Duration(timeout), check: func(s schema.Server) error {
			stored, err := kept.Load(s)
			if err == nil && stored == nil {
				err = errors.New("what it lists could not be kept; --verbose says why")
			}
			return err
		}}
		return t.all(ctx, servers, fmt.Sprintf("Listing servers (%d)", len(servers)), asJSON)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the results as JSON")
	timeout.add(cmd)
	return cmd
}
