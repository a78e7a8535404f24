package activity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// statsVerb shows the statistics of recorded calls.
var statsVerb = cli.Verb{
	Use:   "stats [flags]",
	Group: cli.Watch,
	Short: "Summarize recorded calls",
	Long: `Summarize recorded calls by tool: how many,
how many failed, how long they took, the tokens of arguments and results (estimated),
the last use. Then what was never used: servers to make lazy or to remove. Nothing is
started.`,
	Example: `  dynmcp stats --since 7d
  dynmcp stats --by day
  dynmcp stats --json | jq .never_used`,
	Args: cli.AtMost(0),
	New: func(cmd *cobra.Command) cli.Run {
		on := selfhost.Target{Flags: conf.Flags{AsWritten: true}, Stored: true}
		var f activity.Filter
		addFilter(cmd, &on.Flags, &f)
		by := cmd.Flags().String("by", "tool", "what to sum up: tool, server, host or `day`")
		cli.CompleteValues(cmd, map[string][]string{"by": sums})
		asJSON := cmd.Flags().Bool("json", false, "print one JSON object")
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		return on.Run(cmd, func(ctx context.Context, _ []string) error {
			if !slices.Contains(sums, *by) {
				return hint.With(fmt.Errorf("--by %s: there is no such sum", *by), "%s", nearest.Hint(*by, sums))
			}
			return writeStats(ctx, &on, &f, *by, *asJSON)
		})
	},
}

// sums are the values of --by.
var sums = []string{"tool", "server", "host", "day"}

// writeSums prints the statistics of calls by server, host or day. Calls of dynmcp's own tools are of the server
// dynmcp.
func writeSums(out *terminal.Writer, lines []activity.Line, by string, asJSON bool) error {
	all := []*activity.ToolStats{}
	for _, sum := range activity.By(lines, func(l *activity.Line) string {
		switch by {
		case "server":
			return cmp.Or(l.Server, "dynmcp")
		case "host":
			return cmp.Or(l.Host, "-")
		}
		return l.Time.Local().Format(time.DateOnly)
	}) {
		sum.Server = "" // of its first call
		all = append(all, sum)
	}
	slices.SortFunc(all, func(a, b *activity.ToolStats) int {
		if by == "day" {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
	})
	switch {
	case asJSON:
		return terminal.WriteJSON(out, all)
	case len(all) == 0:
		out.Say("No calls were recorded.")
		return out.Err
	}
	table := terminal.Table{Header: []string{strings.ToUpper(by), "CALLS", "ERRORS", "P50", "P99", "TOKENS", "LAST"}, Right: 1}
	for _, t := range all {
		table.Rows = append(table.Rows, row(t))
	}
	table.Write(out)
	return out.Err
}

func row(t *activity.ToolStats) []string {
	return []string{display.Fold(t.Name), fmt.Sprint(t.Calls), fmt.Sprint(t.Errors), millis(t.P50), millis(t.P99), fmt.Sprint(t.Tokens), t.Last.Local().Format(time.DateTime)}
}

func writeStats(ctx context.Context, t *selfhost.Target, f *activity.Filter, by string, asJSON bool) error {
	dir, err := record.Dir(t.Cfg)
	if err != nil {
		return err
	}
	lines, err := (&activity.Reader{Dir: dir}).Next(ctx, f)
	if err != nil {
		return err
	}
	if by != "tool" {
		return writeSums(t.Out, lines, by, asJSON)
	}
	var servers []activity.Server
	for _, s := range conf.Enabled(t.Cfg) {
		if f.Server != "" && f.Server != s.Name {
			continue
		}
		known := activity.Server{Name: s.Name, Lazy: s.Lazy()}
		if stored := conf.StoredOf(t.Cfg, s); stored.ReadTools != nil {
			for _, raw := range stored.ReadTools() {
				name, _ := wire.Text(wire.Get(raw, "name"))
				known.Tools = append(known.Tools, name)
			}
		}
		servers = append(servers, known)
	}
	stats := activity.Summarize(lines, servers)
	if asJSON {
		return terminal.WriteJSON(t.Out, stats)
	}
	write(t.Out, stats)
	return t.Out.Err
}

// write prints statistics as text.
func write(out *terminal.Writer, s *activity.Stats) {
	if s.Lines == 0 {
		out.Say("No calls were recorded.")
		return
	}
	out.Heading(fmt.Sprintf("%s since %s", display.Plural(s.Lines, "call"), s.Since.Local().Format(time.DateTime)))
	if s.Dropped > 0 {
		out.Say("%s could not be recorded.", display.Plural(int(s.Dropped), "call"))
	}
	table := terminal.Table{Header: []string{"TOOL", "CALLS", "ERRORS", "P50", "P99", "TOKENS", "LAST"}, Right: 1}
	for _, t := range append(slices.Clone(s.Tools), s.Builtin...) {
		table.Rows = append(table.Rows, row(&t))
	}
	table.Write(out)
	if s := s.Search; s.Answers > 0 {
		out.Printf("\n")
		out.Heading("Searches")
		out.Say("%s in %s, %d of them empty, %d tokens; %d were followed by a call.",
			display.Plural(s.Queries, "query"), display.Plural(s.Answers, "answer"), s.Empty, s.Tokens, s.Followed)
	}
	writeUnused(out, s.Unused)
}

func writeUnused(out *terminal.Writer, unused []activity.Unused) {
	if len(unused) == 0 {
		return
	}
	out.Printf("\n")
	out.Heading("Never used")
	for _, u := range unused {
		switch {
		case u.All && u.Lazy:
			out.Say("%s: no call. Remove it if it is not needed.", u.Server)
		case u.All:
			out.Say(`%s: no call. "load": "lazy" with a description starts it only when it is used; or remove it.`, u.Server)
		default:
			out.Say("%s: %s: %s", u.Server, display.Plural(len(u.Tools), "tool"), display.Cut(strings.Join(u.Tools, ", "), 200))
		}
	}
}
