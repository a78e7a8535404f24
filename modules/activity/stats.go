package activity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// statsVerb shows the statistics of recorded calls.
var statsVerb = cli.Verb{
	Use:   "stats [flags]",
	Group: cli.Watch,
	Short: "Summarize recorded calls",
	Long: `Summarize recorded calls, with "activity" in the config, by tool: how many,
how many failed, how long they took, the tokens of arguments and results (estimated),
the last use. Then what was never used: servers to make lazy or to remove. Nothing is
started.`,
	Example: `  dynmcp stats --since 7d
  dynmcp stats --json | jq .never_used`,
	Args: cli.AtMost(0),
	New: func(cmd *cobra.Command) cli.Run {
		on := selfhost.Target{Flags: conf.Flags{AsWritten: true}, Stored: true}
		var f activity.Filter
		addFilter(cmd, &f)
		asJSON := cmd.Flags().Bool("json", false, "print one JSON object")
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		return on.Run(cmd, func(ctx context.Context, _ []string) error {
			return writeStats(ctx, &on, &f, *asJSON)
		})
	},
}

func writeStats(ctx context.Context, t *selfhost.Target, f *activity.Filter, asJSON bool) error {
	dir, err := record.Dir(t.Cfg)
	if err != nil {
		return err
	}
	lines, err := (&activity.Reader{Dir: dir}).Next(ctx, f)
	if err != nil {
		return err
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
		table.Rows = append(table.Rows, []string{
			t.Name, fmt.Sprint(t.Calls), fmt.Sprint(t.Errors), millis(t.P50), millis(t.P99), fmt.Sprint(t.Tokens), t.Last.Local().Format(time.DateTime),
		})
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
