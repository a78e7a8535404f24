// Package costs has the verb tokens, which counts what a model reads of tools.
package costs

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/schema"
)

// Tokens counts what a model reads of the tools.
var Tokens = cli.Verb{
	Use:   "tokens [flags] [-- command args…]",
	Group: cli.Look,
	Short: "Compare tokens of tool definitions with and without dynmcp",
	Long: `Count the tokens that a model reads of the tools: at the start of every session,
directly (each server in the host's own config) and through dynmcp, and what the
answers of dynmcp's tools take when one is asked for.

Eager servers are started, and lazy ones of which nothing is stored. Those that
cannot be started are named on stderr, and the others are counted.

The numbers are estimates of the tokens of o200k, OpenAI's tokenizer, within 5 %
over the catalogues of real servers. Other models read other tokens.`,
	Example: `  dynmcp tokens
  dynmcp tokens --json | jq '.direct - .dynmcp'`,
	Args:     cli.AtMost(0),
	Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		var on selfhost.Target
		var asJSON bool
		cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
		return on.Run(cmd, func(ctx context.Context, _ []string) error {
			c, err := countServers(ctx, &on)
			if err != nil {
				return err
			}
			if asJSON {
				return terminal.WriteJSON(on.Out, c)
			}
			c.write(on.Out)
			return on.Out.Err
		})
	},
}

// countServers starts eager servers and those without a stored listing, and counts.
func countServers(ctx context.Context, t *selfhost.Target) (*Counts, error) {
	conf.SayIfEmpty(t.ErrOut, t.Cfg)
	servers := conf.Enabled(t.Cfg)
	waiting, ready := terminal.ShowStarting(t.ErrOut, conf.Names(servers))
	defer waiting.End()
	h, err := selfhost.Start(ctx, t.Cfg, t.Log)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	var eager, unknown []schema.Server
	for _, s := range servers {
		switch info, _ := h.View().Server(s.Name); {
		case !s.Lazy():
			eager = append(eager, s)
		case info.Stored:
			ready(s.Name)
		default:
			unknown = append(unknown, s)
		}
	}
	failed := h.Load(ctx, ready, conf.Names(eager)...)
	tools, err := h.Conn.Call(ctx, "tools/list", nil)
	if err != nil {
		return nil, cli.Interrupted(err)
	}
	maps.Copy(failed, h.Load(ctx, ready, conf.Names(unknown)...))
	if ctx.Err() != nil {
		return nil, cli.ErrInterrupted
	}
	if err := t.ReportLeftOut(failed, servers); err != nil {
		return nil, err
	}
	c := CountDefinitions(h.View(), tools, h.Conn.ServerInfo().Instructions)
	c.countAnswers(h.View())
	c.Session = record.LastSession(ctx, t.Cfg)
	return c, nil
}

func (c *Counts) write(out *terminal.Writer) {
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
	if saved := c.Saved(); saved != "" {
		out.Say("\n%s", saved)
	}
	out.Printf("\n")
	out.Heading("Read when it is asked for, each time")
	t = terminal.Table{Header: []string{"ANSWER OF", "COUNTED", "MEDIAN", "MOST"}, Right: 1}
	for _, a := range c.Answers {
		t.Rows = append(t.Rows, []string{a.Call, fmt.Sprint(a.Calls), grouped(a.Median), grouped(a.Most)})
	}
	t.Write(out)
	if s := c.Session; s != nil {
		out.Printf("\n")
		out.Heading("Read in the last session that was recorded, " + s.Began.Local().Format(time.DateTime))
		session := terminal.Table{Header: []string{"", "TOKENS"}, Right: 1, Rows: [][]string{
			{"definitions, at its start", grouped(c.Through)}, {"answers of dynmcp's own tools", grouped(s.Builtin)},
			{"arguments that the model wrote", grouped(s.Asked)}, {"results of servers", grouped(s.Tools)},
			{"all", grouped(c.Through + s.Builtin + s.Asked + s.Tools)},
		}}
		session.Write(out)
	}
	out.Say("\nEstimates, within 5 %% over real catalogues; other models than those of o200k read other tokens.")
}
