package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func describeCommand() *cobra.Command {
	var on target
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "describe [flags] <server/tool> [-- command args…]",
		Short: "Show the definition of a tool",
		Long: `Start the server of a tool and show the tool's definition, as the model gets it
from discover_tool: description, schemas and annotations, with what the config
changes about them.`,
		Example: `  dynmcp describe files/read_file
  dynmcp describe files/read_file --json | jq .inputSchema
  dynmcp describe echo -- npx -y @modelcontextprotocol/server-everything stdio`,
		Args:              atMost(1),
		ValidArgsFunction: completeServers(&on.configFlags, "/"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, args, err := on.load(cmd, args)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return hinted(errors.New("which tool? none was named"), "dynmcp describe <server/tool>; dynmcp find WORDS finds tools")
			}
			ctx, stop := interruptible(cmd)
			defer stop()
			in, tool, err := startTool(ctx, cmd, &on, cfg, args[0])
			if err != nil {
				return err
			}
			defer in.close()
			out, view := stdout(cmd), in.agg.View()
			if asJSON {
				out.printf("%s\n", indentedJSON(view.Definition(tool)))
			} else {
				out.printf("%s\n", view.Details(tool))
			}
			return out.err
		},
	}
	on.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the definition as JSON")
	return cmd
}
