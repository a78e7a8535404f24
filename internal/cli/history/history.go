// Package history prints the record of calls: its lines, and their statistics.
package history

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
)

// pollEvery is the interval between checks for new lines.
const pollEvery = 200 * time.Millisecond

// A View selects the lines of the record, and their format.
type View struct {
	activity.Filter

	Most   int // number of last lines, 0 for all
	Follow bool
	JSON   bool
}

// Show prints the lines of a directory and, with Follow, new lines until ctx ends.
func (v *View) Show(ctx context.Context, out *terminal.Writer, dir string) error {
	r := &activity.Reader{Dir: dir}
	lines, err := r.Next(ctx, &v.Filter)
	if err != nil {
		return err
	}
	if v.Most > 0 && len(lines) > v.Most {
		lines = lines[len(lines)-v.Most:]
	}
	for {
		for i := range lines {
			if err := v.write(out, &lines[i]); err != nil {
				return err
			}
		}
		if !v.Follow || out.Err != nil {
			return out.Err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollEvery):
		}
		if lines, err = r.Next(ctx, &v.Filter); err != nil {
			return nil // the context ended
		}
	}
}

func (v *View) write(out *terminal.Writer, l *activity.Line) error {
	if v.JSON {
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
