// Package tokens counts what a model reads of tools, with and without dynmcp.
package tokens

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/costs"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/tokens"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// Module has the verb tokens.
var Module = module.Module{Name: "tokens", Verbs: []cli.Verb{verb}}

// verb counts what a model reads of the tools.
var verb = cli.Verb{
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

// counts are those of definitions, and of what is read after the start of a session.
type counts struct {
	*costs.Counts
	Answers []answerTokens    `json:"answers,omitempty"`
	Session *activity.Session `json:"last_session,omitempty"` // from the record of calls
}

// An answerTokens holds the counts of one kind of answer.
type answerTokens struct {
	Call   string `json:"call"`
	Calls  int    `json:"calls"` // number of counted calls
	Median int    `json:"median"`
	Most   int    `json:"most"`
}

// countServers starts eager servers and those without a stored listing, and counts.
func countServers(ctx context.Context, t *selfhost.Target) (*counts, error) {
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
	c := &counts{Counts: costs.CountDefinitions(h.View(), tools, h.Conn.ServerInfo().Instructions)}
	c.countAnswers(h.View())
	c.Session = record.LastSession(ctx, t.Cfg)
	return c, nil
}

// countAnswers counts the answers of discover_tool and load_mcp: for every tool, every server, and
// searches for the descriptions of some tools.
func (c *counts) countAnswers(v *catalog.View) {
	const searches = 200 // about as many searches are enough for a median
	var query, tool, list, load []int
	tools := v.Tools()
	step := max(len(tools)/searches, 1)
	for i, t := range tools {
		tool = append(tool, tokens.Count(v.Texts().Brief(t)))
		if i%step == 0 && t.Summary != "" {
			query = append(query, tokens.Count(v.Texts().Found(catalog.Search{Queries: []string{t.Summary}})))
		}
	}
	for _, s := range c.Servers {
		page, _ := v.Texts().Page(s.Name, 0, 0, false)
		list = append(list, tokens.Count(page))
		if s.Lazy {
			load = append(load, tokens.Count(v.Texts().Loaded(s.Name)))
		}
	}
	for _, a := range []struct {
		call   string
		counts []int
	}{{`discover_tool {"query"}`, query}, {`discover_tool {"tool_name"}`, tool}, {`discover_tool {"server"}`, list}, {`load_mcp`, load}} {
		if n := len(a.counts); n > 0 {
			slices.Sort(a.counts)
			c.Answers = append(c.Answers, answerTokens{Call: a.call, Calls: n, Median: a.counts[n/2], Most: a.counts[n-1]})
		}
	}
}

func (c *counts) write(out *terminal.Writer) {
	out.Heading("Read at the start of each session, in tokens of o200k (estimated)")
	t := terminal.Table{Header: []string{"SERVER", "TOOLS", "DIRECT", "DYNMCP"}, Right: 1}
	tools, own := 0, c.Through
	for _, s := range c.Servers {
		name := s.Name
		if s.Lazy {
			name += " (lazy)"
		}
		tools, own = tools+s.Tools, own-s.Through
		t.Rows = append(t.Rows, []string{name, fmt.Sprint(s.Tools), costs.Grouped(s.Direct), costs.Grouped(s.Through)})
	}
	t.Rows = append(t.Rows,
		[]string{"dynmcp's own", "", "", costs.Grouped(own)},
		[]string{"all", fmt.Sprint(tools), costs.Grouped(c.Direct), costs.Grouped(c.Through)})
	t.Write(out)
	if saved := c.Saved(); saved != "" {
		out.Say("\n%s", saved)
	}
	out.Printf("\n")
	out.Heading("Read when it is asked for, each time")
	t = terminal.Table{Header: []string{"ANSWER OF", "COUNTED", "MEDIAN", "MOST"}, Right: 1}
	for _, a := range c.Answers {
		t.Rows = append(t.Rows, []string{a.Call, fmt.Sprint(a.Calls), costs.Grouped(a.Median), costs.Grouped(a.Most)})
	}
	t.Write(out)
	if s := c.Session; s != nil {
		out.Printf("\n")
		out.Heading("Read in the last session that was recorded, " + s.Began.Local().Format(time.DateTime))
		session := terminal.Table{Header: []string{"", "TOKENS"}, Right: 1, Rows: [][]string{
			{"definitions, at its start", costs.Grouped(c.Through)}, {"answers of dynmcp's own tools", costs.Grouped(s.Builtin)},
			{"arguments that the model wrote", costs.Grouped(s.Asked)}, {"results of servers", costs.Grouped(s.Tools)},
			{"all", costs.Grouped(c.Through + s.Builtin + s.Asked + s.Tools)},
		}}
		session.Write(out)
	}
	out.Say("\nEstimates, within 5 %% over real catalogues; other models than those of o200k read other tokens.")
}
