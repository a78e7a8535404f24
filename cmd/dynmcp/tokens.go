package main

import (
	"context"
	"fmt"
	"maps"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/schema"
)

func tokensCommand() *cobra.Command {
	var on target
	var asJSON bool
	cmd := on.command(&cobra.Command{
		Use:   "tokens [flags] [-- command args…]",
		Short: "Count what a model reads of the tools, with dynmcp and without",
		Long: `Count the tokens that a model reads of the tools: at the start of every session,
directly (each server in the host's own config) and through dynmcp, and what the
answers of dynmcp's tools take when one is asked for.

Eager servers are started, and lazy ones of which nothing is stored. Those that
cannot be started are named on stderr, and the others are counted.

The numbers are estimates of the tokens of o200k, OpenAI's tokenizer, within 5 %
over the catalogues of real servers. Other models read other tokens.`,
		Example: `  dynmcp tokens
  dynmcp tokens --json | jq '.direct - .dynmcp'`,
		Args:              atMost(0),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, _ []string) error {
		c, err := on.countTokens(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			return terminal.WriteJSON(on.out, c)
		}
		c.write(on.out)
		return on.out.Err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// countTokens starts the servers that must be and counts.
func (t *target) countTokens(ctx context.Context) (*tokenCounts, error) {
	servers := enabled(t.cfg)
	waiting, ready := terminal.ShowStarting(t.errOut, names(servers))
	defer waiting.End()
	h, err := startSelf(ctx, t.cfg, t.log)
	if err != nil {
		return nil, err
	}
	defer h.close()
	var eager, unknown []schema.Server
	for _, s := range servers {
		switch info, _ := h.agg.View().Server(s.Name); {
		case !s.Lazy():
			eager = append(eager, s)
		case info.Stored:
			ready(s.Name)
		default:
			unknown = append(unknown, s)
		}
	}
	failed := h.load(ctx, ready, names(eager)...)
	tools, err := h.conn.Call(ctx, "tools/list", nil)
	if err != nil {
		return nil, interrupted(err)
	}
	maps.Copy(failed, h.load(ctx, ready, names(unknown)...))
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	if err := t.reportLeftOut(failed, servers); err != nil {
		return nil, err
	}
	c := countDefinitions(h.agg.View(), tools, h.conn.ServerInfo().Instructions)
	c.countAnswers(h.agg.View())
	return c, nil
}

func (c *tokenCounts) write(out *terminal.Writer) {
	out.Heading("Read at the start of each session, in tokens of o200k (estimated)")
	t := terminal.Table{Header: []string{"SERVER", "TOOLS", "DIRECT", "DYNMCP"}, Right: 1}
	tools, own := 0, c.Through
	for _, s := range c.Servers {
		name := s.Name
		if s.Lazy {
			name += " (lazy)"
		}
		tools, own = tools+s.Tools, own-s.Through
		t.Rows = append(t.Rows, []string{name, fmt.Sprint(s.Tools), grouped(s.Direct), grouped(s.Through)})
	}
	t.Rows = append(t.Rows,
		[]string{"dynmcp's own", "", "", grouped(own)},
		[]string{"all", fmt.Sprint(tools), grouped(c.Direct), grouped(c.Through)})
	t.Write(out)
	if saved := c.saved(); saved != "" {
		out.Say("\n%s", saved)
	}
	out.Printf("\n")
	out.Heading("Read when it is asked for, each time")
	t = terminal.Table{Header: []string{"ANSWER OF", "COUNTED", "MEDIAN", "MOST"}, Right: 1}
	for _, a := range c.Answers {
		t.Rows = append(t.Rows, []string{a.Call, fmt.Sprint(a.Calls), grouped(a.Median), grouped(a.Most)})
	}
	t.Write(out)
	out.Say("\nEstimates, within 5 %% over real catalogues; other models than those of o200k read other tokens.")
}
