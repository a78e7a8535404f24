package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
)

func describeCommand() *cobra.Command {
	on := target{stored: true}
	var asJSON bool
	cmd := on.command(&cobra.Command{
		Use:   "describe [flags] SERVER/TOOL [-- command args…]",
		Short: "Show the definition of a tool",
		Long: `Show the definition of a tool as the model gets it from discover_tool:
description, schemas and annotations, with the changes that the config makes to
them. A server that was never started is started for it.`,
		Example: `  dynmcp describe files/read_file
  dynmcp describe files/read_file --json | jq .inputSchema
  dynmcp describe echo -- npx -y @modelcontextprotocol/server-everything stdio`,
		Args:              atMost(1),
		ValidArgsFunction: completeTools(&on),
	}, func(ctx context.Context, args []string) error { return on.describe(ctx, args, asJSON) })
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the definition as JSON")
	return cmd
}

// describe shows the definition of the tool that args name.
func (t *target) describe(ctx context.Context, args []string, asJSON bool) error {
	if len(args) == 0 {
		return hinted(errors.New("no tool given"), "dynmcp describe <server/tool>; dynmcp find WORDS finds tools")
	}
	h, tool, err := t.startTool(ctx, args[0])
	if err != nil {
		return err
	}
	defer h.close()
	if asJSON {
		t.out.Printf("%s\n", indentedJSON(tool.Definition()))
	} else {
		writeDetails(t.out, tool.Details())
	}
	return t.out.Err
}

// writeDetails writes a definition: as the model gets it or, on a terminal, with
// its schemas over several lines.
func writeDetails(out *terminal.Writer, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case out.Interactive && json.Valid([]byte(line)) && strings.HasPrefix(line, "{"):
			out.Printf("%s\n", indentedJSON(json.RawMessage(line)))
		case out.Interactive && strings.HasSuffix(line, ":"):
			out.Heading(line)
		default:
			out.Printf("%s\n", out.Fold(line, 0))
		}
	}
}
