package call

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/conf"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/described"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/selfhost"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/internal/packages"
)

// DescribeServers judges the descriptions of servers.
var DescribeServers = cli.Verb{
	Use:   "describe-servers [flags]",
	Short: "Judge the descriptions of servers, and propose others",
	Long: `Show what a model reads of each server, for how many of its tools a search over
the descriptions has it among the first three, and a description made of what
its tools are about. Nothing is started: what counts is what is stored.`,
	Example: `  dynmcp describe-servers
  dynmcp describe-servers --json | jq '.[].proposal'`,
	Args:     cli.AtMost(0),
	Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		on := selfhost.Target{Flags: conf.Flags{AsWritten: true}}
		var asJSON bool
		cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
		return on.Run(cmd, func(ctx context.Context, _ []string) error { return describeServers(ctx, &on, asJSON) })
	},
}

func describeServers(ctx context.Context, t *selfhost.Target, asJSON bool) error {
	h, err := selfhost.Start(ctx, selfhost.OnlyServers(t.Cfg, conf.Names(conf.Enabled(t.Cfg))...), t.Log)
	if err != nil {
		return err
	}
	defer h.Close()
	all := described.Judge(h.View(), func(server string) string {
		s, err := conf.ServerNamed(t.Cfg, server)
		if err != nil {
			return ""
		}
		return packages.Description(ctx, s.Command, s.Args)
	})
	if asJSON {
		return terminal.WriteJSON(t.Out, all)
	}
	described.Write(t.Out, all)
	return t.Out.Err
}
