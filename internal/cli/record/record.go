// Package record records the calls of a run as its config demands, and finds the record.
package record

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/history"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/schema"
)

// A Recorder records calls with the settings of a config, which may change. It is an
// event.Observer.
type Recorder struct {
	log *slog.Logger

	mu  sync.RWMutex
	cfg schema.Activity // the current settings
	dir string
	to  *activity.Log // nil if calls are not recorded
}

// New returns a recorder with the settings of a config.
func New(cfg *schema.Config, log *slog.Logger) (*Recorder, error) {
	r := &Recorder{log: cmp.Or(log, slog.New(slog.DiscardHandler))}
	return r, r.Follow(cfg)
}

// Follow changes to the settings of another config. After an error they are unchanged.
func (r *Recorder) Follow(cfg *schema.Config) (err error) {
	var next *activity.Log
	var a schema.Activity
	var dir string
	if cfg.Activity != nil {
		a = *cfg.Activity
		if dir, err = Dir(cfg); err != nil {
			return err
		}
	}
	r.mu.RLock()
	same := a == r.cfg && dir == r.dir
	r.mu.RUnlock()
	if same {
		return nil
	}
	if cfg.Activity != nil {
		next, err = activity.Open(activity.LogOptions{
			Dir: dir, Bytes: int64(a.MaxBytes), Age: a.MaxAge, Logger: r.log,
			Keep: activity.Keep{Arguments: a.Arguments, Results: a.Results, Queries: a.Queries, Redact: cli.Redacted},
		})
		if err != nil {
			return hint.With(err, `name another in "activity": {"dir": "…"}`)
		}
	}
	r.turnTo(next, a, dir)
	return nil
}

func (r *Recorder) turnTo(next *activity.Log, a schema.Activity, dir string) {
	r.mu.Lock()
	last := r.to
	r.to, r.cfg, r.dir = next, a, dir
	r.mu.Unlock()
	if last != nil {
		last.Close()
	}
}

// Called, Opened, Closed, Dropped, Wants and End are those of an event.Observer.

func (r *Recorder) Called(end event.Call) {
	r.mu.RLock() // keeps the record open meanwhile
	defer r.mu.RUnlock()
	if r.to != nil {
		r.to.Add(entryOf(end))
	}
}

func (r *Recorder) Opened(event.Session)  {}
func (r *Recorder) Closed(event.Session)  {}
func (r *Recorder) Dropped(event.Session) {}

func (r *Recorder) Wants() (calls, params bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.to != nil, r.to != nil
}

// End ends the record.
func (r *Recorder) End() { r.turnTo(nil, schema.Activity{}, "") }

// entryOf returns the entry for a call.
func entryOf(end event.Call) activity.Entry {
	e := activity.Entry{
		Line: activity.Line{
			Time: end.Began.UTC(), Session: end.From.ID, Host: end.From.Host, Principal: end.From.User, Surface: end.Surface, Server: end.Upstream, Tool: end.Tool,
			Outcome: string(end.Outcome), Kind: end.Kind, Rule: end.Rule, MS: milliseconds(end.End.Sub(end.Began)), BytesIn: end.Asked, BytesOut: end.Answered,
			Queries: end.Queries, Shown: end.Shown,
		},
		User: end.From.Share, Input: end.Arguments, Output: bytes.Clone(end.Result[:min(len(end.Result), activity.MostOutput)]),
	}
	if wait := end.Sent.Sub(end.Began); !end.Sent.IsZero() && wait >= time.Millisecond {
		e.StartMS = milliseconds(wait)
	}
	if end.Method != "tools/call" {
		e.Method = end.Method
	}
	return e
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Dir returns the directory of the record of calls of a config.
func Dir(cfg *schema.Config) (string, error) {
	if cfg.Activity == nil {
		return "", hint.With(errors.New("calls are not recorded"), `add "activity": {} to the config`)
	}
	state, err := conf.StateDir()
	if err != nil && cfg.Activity.Dir == "" {
		return "", hint.With(fmt.Errorf("activity: there is no directory for the record of calls: %w", err), `name one: "activity": {"dir": "…"}`)
	}
	return cfg.ActivityDir(state), nil
}

// LastSession returns the counts of the last recorded session, or nil if there is none.
func LastSession(ctx context.Context, cfg *schema.Config) *history.Session {
	dir, err := Dir(cfg)
	if err != nil {
		return nil
	}
	lines, _ := (&activity.Reader{Dir: dir}).Next(ctx, &activity.Filter{}) // a missing directory has no lines
	return history.LastSession(lines)
}
