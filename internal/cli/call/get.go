package call

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A getter is a verb that gets the prompt or resource named by its first argument, or lists them
// without arguments.
type getter struct {
	list   func(ctx context.Context, h *selfhost.Host, out *terminal.Writer, asJSON bool) error
	check  func(args []string) error // may be nil
	method string
	params func(args []string) []byte
	print  func(out *terminal.Writer, result json.RawMessage) error
	lists  string // a hint with the command that lists the names
}

// verb implements cli.Verb.New.
func (g *getter) verb(cmd *cobra.Command) cli.Run {
	var on selfhost.Target
	var only string
	on.AddServerFlag(cmd, &only)
	asJSON := cmd.Flags().Bool("json", false, "print what the server answered as JSON")
	return on.Run(cmd, func(ctx context.Context, args []string) error { return g.run(ctx, &on, args, only, *asJSON) })
}

func (g *getter) run(ctx context.Context, t *selfhost.Target, args []string, only string, asJSON bool) error {
	if len(args) > 1 && g.check != nil {
		if err := g.check(args[1:]); err != nil {
			return err
		}
	}
	h, err := t.StartSome(ctx, only)
	if err != nil {
		return err
	}
	defer h.Close()
	if len(args) == 0 {
		return g.list(ctx, h, t.Out, asJSON)
	}
	result, err := h.Conn.Call(ctx, g.method, g.params(args))
	if err != nil {
		return hint.With(toolError(args[0], err), "%s", g.lists)
	}
	if asJSON {
		t.Out.Printf("%s\n", indentedJSON(result))
	} else if err := g.print(t.Out, result); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return t.Out.Err
}

// Prompt gets a prompt.
var Prompt = cli.Verb{
	Use:   "prompt [flags] [name [key=value…]] [-- command args…]",
	Group: cli.Look,
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
	New: (&getter{
		list: listPrompts, check: checkTexts, method: "prompts/get", print: printPrompt, lists: "dynmcp prompt lists the prompts and their arguments",
		params: func(args []string) []byte {
			return fmt.Appendf(nil, `{"name":%s,"arguments":%s}`, wire.Quote(args[0]), ArgumentObject(args[1:], nil))
		},
	}).verb,
}

// checkTexts checks the arguments of a prompt, which are always strings.
func checkTexts(words []string) error {
	const how = "the arguments of prompts are texts: write key=value"
	for _, word := range words {
		if key, _, _ := strings.Cut(word, "="); strings.HasSuffix(key, ":") {
			return hint.With(fmt.Errorf("%q is not an argument", word), how)
		}
	}
	return checkWords(words, how)
}

func printPrompt(out *terminal.Writer, result json.RawMessage) error {
	var r struct {
		Messages []struct {
			Role    string  `json:"role"`
			Content content `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("the answer is not a prompt: %w", err)
	}
	for i, m := range r.Messages {
		if i > 0 {
			out.Printf("\n")
		}
		out.Heading(m.Role + ":")
		out.Printf("%s\n", trimEnd(m.Content.describe("--json")))
	}
	return nil
}

// Read reads a resource.
var Read = cli.Verb{
	Use:   "read [flags] [uri] [-- command args…]",
	Group: cli.Look,
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
	New: (&getter{
		list: listResources, method: "resources/read", print: printResource, lists: "dynmcp read lists what there is",
		params: func(args []string) []byte { return fmt.Appendf(nil, `{"uri":%s}`, wire.Quote(args[0])) },
	}).verb,
}

func printResource(out *terminal.Writer, result json.RawMessage) error {
	var r struct {
		Contents []resource `json:"contents"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("the answer is not a resource: %w", err)
	}
	for _, c := range r.Contents {
		out.Printf("%s\n", trimEnd(c.describe("--json")))
	}
	return nil
}
