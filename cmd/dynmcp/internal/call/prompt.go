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

// Prompt gets a prompt.
var Prompt = cli.Verb{
	Use:   "prompt [flags] [name [key=value…]] [-- command args…]",
	Short: "Get a prompt, or list them",
	Long: `Get a prompt as a host would and print its messages. Without a name, list the
prompts and their arguments; those that a prompt needs are marked with *.

All servers are started for it, or the one that --server names.`,
	Example: `  dynmcp prompt
  dynmcp prompt review file=main.go
  dynmcp prompt args-prompt city=Berlin \
    -- npx -y @modelcontextprotocol/server-everything stdio`,
	Args:     cobra.ArbitraryArgs,
	Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		var on selfhost.Target
		var only string
		var asJSON bool
		on.AddServerFlag(cmd, &only)
		cmd.Flags().BoolVar(&asJSON, "json", false, "print what the server answered as JSON")
		return on.Run(cmd, func(ctx context.Context, args []string) error { return runPrompt(ctx, &on, args, only, asJSON) })
	},
}

// runPrompt gets a prompt of the servers, or of one alone, or lists them.
func runPrompt(ctx context.Context, t *selfhost.Target, args []string, only string, asJSON bool) error {
	if len(args) > 1 {
		if err := checkWords(args[1:]); err != nil {
			return err
		}
	}
	h, err := t.StartSome(ctx, only)
	if err != nil {
		return err
	}
	defer h.Close()
	if len(args) == 0 {
		return listPrompts(ctx, h, t.Out, asJSON)
	}
	// Arguments of prompts are strings, whatever they look like.
	params := fmt.Appendf(nil, `{"name":%s,"arguments":%s}`, wire.Quote(args[0]), argumentObject(args[1:], nil))
	result, err := h.Conn.Call(ctx, "prompts/get", params)
	if err != nil {
		return hint.With(toolError(args[0], err), "dynmcp prompt lists the prompts and their arguments")
	}
	if asJSON {
		t.Out.Printf("%s\n", indentedJSON(result))
		return t.Out.Err
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
			t.Out.Printf("\n")
		}
		t.Out.Heading(m.Role + ":")
		t.Out.Printf("%s\n", trimEnd(m.Content.describe("--json")))
	}
	return t.Out.Err
}
