package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

func describeCommand() *cobra.Command {
	var on target
	var asJSON bool
	cmd := on.command(&cobra.Command{
		Use:   "describe [flags] <server/tool> [-- command args…]",
		Short: "Show the definition of a tool",
		Long: `Start the server of a tool and show the tool's definition as the model gets it
from discover_tool: description, schemas and annotations, with the changes that
the config makes to them.`,
		Example: `  dynmcp describe files/read_file
  dynmcp describe files/read_file --json | jq .inputSchema
  dynmcp describe echo -- npx -y @modelcontextprotocol/server-everything stdio`,
		Args:              atMost(1),
		ValidArgsFunction: completeServers(&on.configFlags, "/"),
	}, func(ctx context.Context, args []string) error {
		if len(args) == 0 {
			return hinted(errors.New("no tool given"), "dynmcp describe <server/tool>; dynmcp find WORDS finds tools")
		}
		h, tool, err := on.startTool(ctx, args[0])
		if err != nil {
			return err
		}
		defer h.close()
		if asJSON {
			on.out.printf("%s\n", indentedJSON(h.agg.View().Definition(tool)))
		} else {
			on.out.printf("%s\n", h.agg.View().Details(tool))
		}
		return on.out.err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the definition as JSON")
	return cmd
}
