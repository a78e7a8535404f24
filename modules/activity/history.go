package activity

import (
	"context"
	"encoding/json"
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
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/internal/cli/run"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
)

// instant parses the value of --since or, with end set, of --until: how long ago, such as 2h or 7d; today,
// yesterday or a date, of which --until takes the whole day; a date with a time.
func instant(text string, now time.Time, end bool) (time.Time, error) {
	d, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		d = time.Duration(n * float64(24*time.Hour))
	}
	if err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	year, month, day := now.Date()
	after := 0
	if end {
		after = 1
	}
	switch text {
	case "today":
		return time.Date(year, month, day+after, 0, 0, 0, 0, now.Location()), nil
	case "yesterday":
		return time.Date(year, month, day-1+after, 0, 0, 0, 0, now.Location()), nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return t.AddDate(0, 0, after), nil
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02T15:04", time.DateTime, time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New(`want a time like "2h", "7d", "yesterday", "2026-11-28" or "2026-11-28 15:04"`)
}

func addFilter(cmd *cobra.Command, from *conf.Flags, f *activity.Filter) {
	cmd.Flags().Func("since", "only calls from this `time` on: 2h or 7d ago, today, yesterday, a date, a date and time", func(text string) (err error) {
		f.Since, err = instant(text, time.Now(), false)
		return err
	})
	cmd.Flags().Func("until", "only calls before the end of this `time`, in the same forms", func(text string) (err error) {
		f.Until, err = instant(text, time.Now(), true)
		return err
	})
	cli.CompleteValues(cmd, map[string][]string{"since": {"today", "yesterday", "7d"}, "until": {"today", "yesterday"}})
	cmd.Flags().StringVar(&f.Server, "server", "", "only calls of this `server`")
	_ = cmd.RegisterFlagCompletionFunc("server", conf.CompleteServers(from, "")) // it fails only without the flag
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
	Group: cli.Watch, Aliases: []string{"logs"},
	Short: "Show recorded calls",
	Long: `Show recorded calls, of all runs unless the config has "activity": false: when,
what, how it ended, how long it took, and for whom. The last ones are at the end.`,
	Example: `  dynmcp log --since 2h --failed
  dynmcp log --since yesterday --until yesterday
  dynmcp log -f --server github
  dynmcp log -n 0 --json`,
	New: func(cmd *cobra.Command) cli.Run {
		from := conf.Flags{AsWritten: true}
		var v view
		from.Add(cmd)
		addFilter(cmd, &from, &v.Filter)
		cmd.Flags().IntVarP(&v.most, "limit", "n", 50, "show at most this `number` of the last calls; 0 is all")
		cli.AddOld(cmd, "limit", "lines")
		cmd.Flags().BoolVarP(&v.follow, "follow", "f", false, "show calls as they end, until interrupted")
		cmd.Flags().BoolVar(&v.json, "json", false, "print the lines as they were recorded")
		return func(cmd *cobra.Command, _ []string) error {
			if v.most < 0 {
				return hint.With(fmt.Errorf("--limit %d: want a number from 0 on", v.most), "0 shows all calls")
			}
			cfg, err := from.Load(cmd.Context())
			if err != nil {
				return err
			}
			dir, err := record.Dir(cfg)
			if err != nil {
				return err
			}
			ctx, stop := run.UntilSignal(cmd.Context(), false)
			defer stop()
			shown, err := v.show(ctx, cli.Stdout(cmd), dir)
			if shown == 0 && err == nil && !v.follow && !v.json {
				cli.Stderr(cmd).Say("No calls were recorded.")
			}
			return err
		}
	},
}

// pollEvery is the interval between checks for new lines.
const pollEvery = 200 * time.Millisecond

// A view selects the lines of the record, and their format.
type view struct {
	activity.Filter

	most   int // number of last lines, 0 for all
	follow bool
	json   bool
}

// show prints the lines of a directory and, with follow, new lines until ctx ends. It returns the number of the first ones.
func (v *view) show(ctx context.Context, out *terminal.Writer, dir string) (shown int, err error) {
	r := &activity.Reader{Dir: dir}
	lines, err := r.Next(ctx, &v.Filter)
	if err != nil {
		return 0, err
	}
	if v.most > 0 && len(lines) > v.most {
		lines = lines[len(lines)-v.most:]
	}
	shown = len(lines)
	for {
		for i := range lines {
			if err := v.write(out, &lines[i]); err != nil {
				return shown, err
			}
		}
		if !v.follow || out.Err != nil {
			return shown, out.Err
		}
		select {
		case <-ctx.Done():
			return shown, nil
		case <-time.After(pollEvery):
		}
		if lines, err = r.Next(ctx, &v.Filter); err != nil {
			return shown, nil // the context ended
		}
	}
}

func (v *view) write(out *terminal.Writer, l *activity.Line) error {
	if v.json {
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		out.Printf("%s\n", text)
		return nil
	}
	if l.Dropped > 0 {
		out.Printf("%s  (%s could not be recorded)\n", at(l.Time), display.Plural(int(l.Dropped), "call"))
	}
	how := l.Kind
	if l.Outcome != "done" {
		how += " (" + l.Outcome + ")"
	}
	who := l.Host
	if l.Principal != "" {
		who += " " + l.Principal
	}
	out.Printf("%s  %-32s %-18s %9s %7d tokens  %s\n", at(l.Time), display.Fold(l.Name()), how, millis(l.MS), l.TokensIn+l.TokensOut, display.Fold(who))
	for _, part := range []json.RawMessage{l.Query, l.Arguments, l.Result} {
		if part != nil {
			out.Printf("    %s\n", display.JSON(part))
		}
	}
	return nil
}

func at(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05.000") }

func millis(ms float64) string {
	if ms >= 10 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.2f ms", ms)
}
