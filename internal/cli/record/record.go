// Package record records the calls of a run as its config demands, and finds the record.
package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
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
		r.to.Add(activity.EntryOf(&end))
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
func LastSession(ctx context.Context, cfg *schema.Config) *activity.Session {
	dir, err := Dir(cfg)
	if err != nil {
		return nil
	}
	lines, _ := (&activity.Reader{Dir: dir}).Next(ctx, &activity.Filter{}) // a missing directory has no lines
	return activity.LastSession(lines)
}
