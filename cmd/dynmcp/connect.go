package main

import (
	"context"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/crash"
	"github.com/dynmcp/dynmcp/internal/cli/sharing"
	"github.com/dynmcp/dynmcp/transports/host"
)

// connectVerb serves one host from a run that others share.
var connectVerb = cli.Verb{
	Use:   "connect [--socket PATH]",
	Group: cli.Develop,
	Short: "Serve a host from a run that others share",
	Long: `Serve a host on stdin and stdout from a run that it shares with the other hosts of the
same user and the same config. It is started if needed, and ends by itself when
no host has been connected for a while.

Without --socket hosts share a run if they have the same config, profile, home and proxies, find
the same programs for its servers, and have the same values of the environment
variables that it names. The run works in the directory of the config.`,
	Example: `  dynmcp connect -c mcp.json
  dynmcp connect --socket /run/user/1000/mcp.sock`,
	New: func(cmd *cobra.Command) cli.Run {
		var flags conf.Flags
		client := sharing.Client{Version: cli.Version}
		flags.Add(cmd)
		cmd.Flags().StringVar(&client.Socket, "socket", "", "the unix `socket` of the run (default: one below $XDG_RUNTIME_DIR, by config and environment)")
		cmd.Flags().DurationVar(&client.Idle, "idle", 10*time.Minute, "a run that is started for this ends when no host has been connected for this long, or a minute if only one host ever was; 0 is never")
		cli.AddLogLevel(cmd, &client.Level, "what to log, and what a run that is started for this logs beside its socket")
		return func(cmd *cobra.Command, _ []string) error {
			var err error
			out, end := crash.Watch(os.Stderr, conf.CrashDir(), cli.Version)
			defer end()
			if client.Log, err = cli.Logger(out, client.Level); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), cli.EndSignals(os.Interrupt)...)
			defer stop()
			context.AfterFunc(ctx, stop) // the second signal ends us at once
			if client.Profile, err = flags.Chosen(ctx); err != nil {
				return err
			}
			client.EnvFile, client.Files, client.Load = flags.EnvFile, flags.Files, flags.Load
			in, stdout, restore := host.Std()
			defer restore()
			return client.Run(ctx, in, stdout)
		}
	},
}
