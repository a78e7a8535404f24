package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/wire"
)

func listPrompts(ctx context.Context, h *selfhost.Host, out *terminal.Writer, asJSON bool) error {
	entries, err := listEntries(ctx, h, "prompts/list", "prompts")
	if err != nil {
		return err
	}
	if asJSON {
		return terminal.WriteJSON(out, entries)
	}
	if len(entries) == 0 {
		return hint.With(fmt.Errorf("there are no prompts"), "dynmcp test shows what the servers have")
	}
	t := terminal.Table{Header: []string{"PROMPT", "ARGUMENTS", "DESCRIPTION"}, Shrink: 2}
	for _, entry := range entries {
		t.Rows = append(t.Rows, []string{member(entry, "name"), promptArguments(entry), member(entry, "description")})
	}
	t.Write(out)
	return out.Err
}

// promptArguments returns the names of a prompt's arguments; required ones are marked with *.
func promptArguments(prompt json.RawMessage) string {
	var p struct {
		Arguments []struct {
			Name     string `json:"name"`
			Required bool   `json:"required"`
		} `json:"arguments"`
	}
	_ = json.Unmarshal(prompt, &p) // an invalid entry has no arguments
	var names []string
	for _, a := range p.Arguments {
		if a.Required {
			a.Name += "*"
		}
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}

func listResources(ctx context.Context, h *selfhost.Host, out *terminal.Writer, asJSON bool) error {
	t := terminal.Table{Header: []string{"URI", "NAME", "DESCRIPTION"}, Shrink: 2}
	all := map[string][]json.RawMessage{}
	for _, list := range []struct{ method, key, uri string }{
		{"resources/list", "resources", "uri"},
		{"resources/templates/list", "resourceTemplates", "uriTemplate"},
	} {
		entries, err := listEntries(ctx, h, list.method, list.key)
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
		return hint.With(fmt.Errorf("there are no resources"), "dynmcp test shows what the servers have")
	}
	t.Write(out)
	return out.Err
}

// listEntries returns all entries of a list, which is empty if no server has it.
func listEntries(ctx context.Context, h *selfhost.Host, method, key string) ([]json.RawMessage, error) {
	entries, err := h.Conn.List(ctx, method, key, nil)
	var rpc *wire.Error
	if errors.As(err, &rpc) && rpc.Code == wire.CodeMethodNotFound {
		return []json.RawMessage{}, nil
	}
	return entries, cli.Interrupted(err)
}

// member returns a string member of an object, "" if absent or not a string.
func member(object json.RawMessage, key string) string {
	text, _ := wire.Text(wire.Get(object, key))
	return text
}
