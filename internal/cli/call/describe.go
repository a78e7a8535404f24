package call

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
)

// Describe shows the definition of a tool.
var Describe = cli.Verb{
	Use:   "describe [flags] SERVER/TOOL [-- command args…]",
	Group: cli.Look,
	Short: "Show the definition of a tool",
	Long: `Show the definition of a tool as the model gets it from discover_tool:
description, schemas and annotations, with the changes that the config makes to
them. A server that was never started is started for it.`,
	Example: `  dynmcp describe files/read_file
  dynmcp describe files/read_file --json | jq .inputSchema
  dynmcp describe echo -- npx -y @modelcontextprotocol/server-everything stdio`,
	Args: cli.AtMost(1),
	New: func(cmd *cobra.Command) cli.Run {
		on := selfhost.Target{Stored: true, About: selfhost.OfTools}
		asJSON := cmd.Flags().Bool("json", false, "print the definition as JSON")
		cmd.ValidArgsFunction = selfhost.CompleteTools(&on)
		return on.Run(cmd, func(ctx context.Context, args []string) error { return runDescribe(ctx, &on, args, *asJSON) })
	},
}

func runDescribe(ctx context.Context, t *selfhost.Target, args []string, asJSON bool) error {
	if len(args) == 0 {
		return hint.With(errors.New("no tool given"), "dynmcp describe <server/tool>; dynmcp find WORDS finds tools")
	}
	h, tool, err := t.StartTool(ctx, args[0])
	if err != nil {
		return err
	}
	defer h.Close()
	if asJSON {
		t.Out.Printf("%s\n", indentedJSON(tool.Definition()))
	} else {
		writeDetails(t.Out, h.View().Texts().Details(tool))
	}
	return t.Out.Err
}

// writeDetails writes a definition: in the form for the model or, on a terminal, with its schemas
// indented.
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
