package call

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/selfhost"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Read reads a resource.
var Read = cli.Verb{
	Use:   "read [flags] [uri] [-- command args…]",
	Short: "Read a resource, or list them",
	Long: `Read a resource as a host would and print its text; other data is only described.
Without a URI, list the resources and the templates of their URIs.

All servers are started for it, or the one that --server names.`,
	Example: `  dynmcp read
  dynmcp read --server docs docs://guide/start
  dynmcp read demo://resource/static/document/features.md \
    -- npx -y @modelcontextprotocol/server-everything stdio`,
	Args:     cli.AtMost(1),
	Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		var on selfhost.Target
		var only string
		var asJSON bool
		on.AddServerFlag(cmd, &only)
		cmd.Flags().BoolVar(&asJSON, "json", false, "print what the server answered as JSON")
		return on.Run(cmd, func(ctx context.Context, args []string) error { return runRead(ctx, &on, args, only, asJSON) })
	},
}

// runRead reads a resource of the servers, or of one alone, or lists them.
func runRead(ctx context.Context, t *selfhost.Target, args []string, only string, asJSON bool) error {
	h, err := t.StartSome(ctx, only)
	if err != nil {
		return err
	}
	defer h.Close()
	if len(args) == 0 {
		return listResources(ctx, h, t.Out, asJSON)
	}
	result, err := h.Conn.Call(ctx, "resources/read", fmt.Appendf(nil, `{"uri":%s}`, wire.Quote(args[0])))
	if err != nil {
		return hint.With(toolError(args[0], err), "dynmcp read lists what there is")
	}
	if asJSON {
		t.Out.Printf("%s\n", indentedJSON(result))
		return t.Out.Err
	}
	var r struct {
		Contents []resource `json:"contents"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("%s: what was answered is no resource: %w", args[0], err)
	}
	for _, c := range r.Contents {
		t.Out.Printf("%s\n", trimEnd(c.describe("--json")))
	}
	return t.Out.Err
}
