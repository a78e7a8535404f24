package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/internal/wire"
)

func promptCommand() *cobra.Command {
	var on target
	var only string
	var asJSON bool
	cmd := on.command(&cobra.Command{
		Use:   "prompt [flags] [name [key=value…]] [-- command args…]",
		Short: "Get a prompt, or list them",
		Long: `Get a prompt as a host would and print its messages. Without a name, list the
prompts and their arguments; those that a prompt needs are marked with *.

All servers are started for it, or the one that --server names.`,
		Example: `  dynmcp prompt
  dynmcp prompt review file=main.go
  dynmcp prompt args-prompt city=Berlin \
    -- npx -y @modelcontextprotocol/server-everything stdio`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, args []string) error { return on.prompt(ctx, args, only, asJSON) })
	on.addServerFlag(cmd, &only)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what the server answered as JSON")
	return cmd
}

// prompt gets a prompt of the servers, or of one alone, or lists them.
func (t *target) prompt(ctx context.Context, args []string, only string, asJSON bool) error {
	if len(args) > 1 {
		if err := checkWords(args[1:]); err != nil {
			return err
		}
	}
	h, err := t.startSome(ctx, only)
	if err != nil {
		return err
	}
	defer h.close()
	if len(args) == 0 {
		return listPrompts(ctx, h, t.out, asJSON)
	}
	// Arguments of prompts are strings, whatever they look like.
	params := fmt.Appendf(nil, `{"name":%s,"arguments":%s}`, wire.Quote(args[0]), argumentObject(args[1:], nil))
	result, err := h.conn.Call(ctx, "prompts/get", params)
	if err != nil {
		return hinted(toolError(args[0], err), "dynmcp prompt lists the prompts and their arguments")
	}
	if asJSON {
		t.out.Printf("%s\n", indentedJSON(result))
		return t.out.Err
	}
	var r struct {
		Messages []struct {
			Role    string  `json:"role"`
			Content content `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("%s: what was answered is no prompt: %w", args[0], err)
	}
	for i, m := range r.Messages {
		if i > 0 {
			t.out.Printf("\n")
		}
		t.out.Heading(m.Role + ":")
		t.out.Printf("%s\n", trimEnd(m.Content.describe("--json")))
	}
	return t.out.Err
}

// listPrompts prints the prompts that there are.
func listPrompts(ctx context.Context, h *selfHost, out *terminal.Writer, asJSON bool) error {
	entries, err := h.listEntries(ctx, "prompts/list", "prompts")
	if err != nil {
		return err
	}
	if asJSON {
		return terminal.WriteJSON(out, entries)
	}
	if len(entries) == 0 {
		return hinted(fmt.Errorf("there are no prompts"), "dynmcp test shows what the servers have")
	}
	t := terminal.Table{Header: []string{"PROMPT", "ARGUMENTS", "DESCRIPTION"}, Shrink: 2}
	for _, entry := range entries {
		var p struct {
			Arguments []struct {
				Name     string `json:"name"`
				Required bool   `json:"required"`
			} `json:"arguments"`
		}
		_ = json.Unmarshal(entry, &p) // what cannot be read is not shown
		var arguments []string
		for _, a := range p.Arguments {
			if a.Required {
				a.Name += "*"
			}
			arguments = append(arguments, a.Name)
		}
		t.Rows = append(t.Rows, []string{member(entry, "name"), strings.Join(arguments, ", "), member(entry, "description")})
	}
	t.Write(out)
	return out.Err
}
