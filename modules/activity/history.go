// Package activity has the verbs log and stats, which show the record of calls.
package activity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/history"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/internal/cli/run"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// period parses the value of --since: a duration, or a number of days such as 7d.
func period(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		d = time.Duration(n * float64(24*time.Hour))
	}
	if err != nil || d < 0 {
		return 0, errors.New(`want a time like "2h" or "7d"`)
	}
	return d, nil
}

func addFilter(cmd *cobra.Command, f *activity.Filter) {
	cmd.Flags().Func("since", "only calls of the last `time`, such as 2h or 7d", func(text string) error {
		d, err := period(text)
		f.Since = time.Now().Add(-d)
		return err
	})
	cmd.Flags().StringVar(&f.Server, "server", "", "only calls of this `server`")
	cmd.Flags().StringVar(&f.Tool, "tool", "", "only calls of this `tool`, with or without its server")
	cmd.Flags().StringVar(&f.Principal, "principal", "", "only calls of this `user`")
	cmd.Flags().StringVar(&f.Host, "host", "", "only calls of hosts of this `name`")
	cmd.Flags().StringVar(&f.Session, "session", "", "only calls of this `session`")
	cmd.Flags().Func("outcome", "only calls of this `outcome`: done, not_sent or unknown", func(text string) error {
		f.Outcome = text
		if !slices.Contains([]string{"done", "not_sent", "unknown"}, text) {
			return errors.New("want done, not_sent or unknown")
		}
		return nil
	})
	cmd.Flags().BoolVar(&f.Failed, "failed", false, "only calls that did not end as they should")
}

// logVerb shows the calls that were recorded.
var logVerb = cli.Verb{
	Use:   "log [flags]",
	Short: "Show recorded calls",
	Long: `Show recorded calls, with "activity" in the config: when, what, how it
ended, how long it took, and for whom. The last ones are at the end.`,
	Example: `  dynmcp log --since 2h --failed
  dynmcp log -f --server github
  dynmcp log -n 0 --json`,
	New: func(cmd *cobra.Command) cli.Run {
		from := conf.Flags{AsWritten: true}
		var view history.View
		from.Add(cmd)
		addFilter(cmd, &view.Filter)
		cmd.Flags().IntVarP(&view.Most, "lines", "n", 50, "how many of the last calls; 0 is all")
		cmd.Flags().BoolVarP(&view.Follow, "follow", "f", false, "show calls as they end, until interrupted")
		cmd.Flags().BoolVar(&view.JSON, "json", false, "print the lines as they were recorded")
		return func(cmd *cobra.Command, _ []string) error {
			if view.Most < 0 {
				return hint.With(fmt.Errorf("--lines %d: want a number from 0 on", view.Most), "0 shows all calls")
			}
			cfg, err := from.Load(cmd.Context())
			if err != nil {
				return err
			}
			dir, err := record.Dir(cfg)
			if err != nil {
				return err
			}
			ctx, stop := run.UntilSignal(false)
			defer stop()
			return view.Show(ctx, cli.Stdout(cmd), dir)
		}
	},
}

// statsVerb shows the statistics of recorded calls.
var statsVerb = cli.Verb{
	Use:   "stats [flags]",
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
	var servers []history.Server
	for _, s := range conf.Enabled(t.Cfg) {
		if f.Server != "" && f.Server != s.Name {
			continue
		}
		known := history.Server{Name: s.Name, Lazy: s.Lazy()}
		if stored := conf.StoredOf(t.Cfg, s); stored.ReadTools != nil {
			for _, raw := range stored.ReadTools() {
				name, _ := wire.Text(wire.Get(raw, "name"))
				known.Tools = append(known.Tools, name)
			}
		}
		servers = append(servers, known)
	}
	stats := history.Summarize(lines, servers)
	if asJSON {
		return terminal.WriteJSON(t.Out, stats)
	}
	stats.Write(t.Out)
	return t.Out.Err
}
