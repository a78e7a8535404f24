package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/internal/wire"
)

func readCommand() *cobra.Command {
	var on target
	var only string
	var asJSON bool
	cmd := on.command(&cobra.Command{
		Use:   "read [flags] [uri] [-- command args…]",
		Short: "Read a resource, or list them",
		Long: `Read a resource as a host would and print its text; other data is only described.
Without a URI, list the resources and the templates of their URIs.

All servers are started for it, or the one that --server names.`,
		Example: `  dynmcp read
  dynmcp read --server docs docs://guide/start
  dynmcp read demo://resource/static/document/features.md \
    -- npx -y @modelcontextprotocol/server-everything stdio`,
		Args:              atMost(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, args []string) error { return on.read(ctx, args, only, asJSON) })
	on.addServerFlag(cmd, &only)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what the server answered as JSON")
	return cmd
}

// read reads a resource of the servers, or of one alone, or lists them.
func (t *target) read(ctx context.Context, args []string, only string, asJSON bool) error {
	h, err := t.startSome(ctx, only)
	if err != nil {
		return err
	}
	defer h.close()
	if len(args) == 0 {
		return listResources(ctx, h, t.out, asJSON)
	}
	result, err := h.conn.Call(ctx, "resources/read", fmt.Appendf(nil, `{"uri":%s}`, wire.Quote(args[0])))
	if err != nil {
		return hinted(toolError(args[0], err), "dynmcp read lists what there is")
	}
	if asJSON {
		t.out.Printf("%s\n", indentedJSON(result))
		return t.out.Err
	}
	var r struct {
		Contents []resource `json:"contents"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("%s: what was answered is no resource: %w", args[0], err)
	}
	for _, c := range r.Contents {
		t.out.Printf("%s\n", trimEnd(c.describe("--json")))
	}
	return t.out.Err
}

// listResources prints what there is to read.
func listResources(ctx context.Context, h *selfHost, out *terminal.Writer, asJSON bool) error {
	t := terminal.Table{Header: []string{"URI", "NAME", "DESCRIPTION"}, Shrink: 2}
	all := map[string][]json.RawMessage{}
	for _, list := range []struct{ method, key, uri string }{
		{"resources/list", "resources", "uri"},
		{"resources/templates/list", "resourceTemplates", "uriTemplate"},
	} {
		entries, err := h.listEntries(ctx, list.method, list.key)
		if err != nil {
			return err
		}
		all[list.key] = entries
		for _, entry := range entries {
			t.Rows = append(t.Rows, []string{member(entry, list.uri), member(entry, "name"), member(entry, "description")})
		}
	}
	if asJSON {
		return terminal.WriteJSON(out, all)
	}
	if len(t.Rows) == 0 {
		return hinted(fmt.Errorf("there are no resources"), "dynmcp test shows what the servers have")
	}
	t.Write(out)
	return out.Err
}
