package main

import (
	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/schema"
)

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the config file",
		Long: `Print the JSON Schema (draft 2020-12) of the config file, with which editors
complete and check it. dynmcp init --offline writes it beside the config.`,
		Example:           `  dynmcp schema > dynmcp.schema.json`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(schema.JSONSchema())
			return err
		},
	}
}
