package main

import (
	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
)

var schemaVerb = cli.Verb{
	Use:   "schema",
	Group: cli.Develop,
	Short: "Print the JSON Schema of the config file",
	Long: `Print the JSON Schema (draft 2020-12) of the config file, with which editors
complete and check it. dynmcp init --offline writes it beside the config.`,
	Example: `  dynmcp schema > dynmcp.schema.json`,
	New: func(cmd *cobra.Command) cli.Run {
		return func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(editfile.JSONSchema(cmd.Context()))
			return err
		}
	},
}
