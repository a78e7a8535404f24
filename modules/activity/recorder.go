package activity

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// A recorder records calls with the settings of a config, which may change.
type recorder struct {
	log *slog.Logger

	mu  sync.RWMutex
	cfg record.Activity // the current settings
	dir string
	to  *activity.Log // nil if calls are not recorded
}

// start records the calls of a run.
func start(run module.Run) (module.Part, error) {
	r := &recorder{log: run.Log}
	return r, r.follow(run.Config)
}

// Follow changes to the settings of another config. After an error they are unchanged.
func (r *recorder) Follow(cfg *schema.Config) error {
	if err := r.follow(cfg); err != nil {
		return fmt.Errorf("calls are recorded as before: %w", err)
	}
	return nil
}

func (r *recorder) follow(cfg *schema.Config) (err error) {
	var next *activity.Log
	var a record.Activity
	var dir string
	of := record.Of(cfg)
	if of != nil {
		a = *of
		switch dir, err = record.Dir(cfg); {
		case err != nil && !a.Asked: // a user without a state directory
			of, a = nil, record.Activity{}
		case err != nil:
			return err
		}
	}
	r.mu.RLock()
	same := a == r.cfg && dir == r.dir
	r.mu.RUnlock()
	if same {
		return nil
	}
	if of != nil {
		next, err = activity.Open(activity.LogOptions{
			Dir: dir, Bytes: int64(a.MaxBytes), Age: a.MaxAge, Logger: r.log, Unasked: !a.Asked,
			Keep: activity.Keep{Sizes: !a.Asked, Arguments: a.Arguments, Results: a.Results, Queries: a.Queries, Redact: cli.Redacted},
		})
		if err != nil {
			return hint.With(err, `name another in "activity": {"dir": "…"}`)
		}
	}
	r.turnTo(next, a, dir)
	return nil
}

func (r *recorder) turnTo(next *activity.Log, a record.Activity, dir string) {
	r.mu.Lock()
	last := r.to
	r.to, r.cfg, r.dir = next, a, dir
	r.mu.Unlock()
	if last != nil {
		last.Close()
	}
}

// Called, Opened, Closed, Dropped, Wants and End are those of an event.Observer.

func (r *recorder) Called(end event.Call) {
	r.mu.RLock() // keeps the record open meanwhile
	defer r.mu.RUnlock()
	if r.to != nil {
		r.to.Add(activity.EntryOf(&end, !r.cfg.Asked))
	}
}

func (r *recorder) Opened(event.Session)  {}
func (r *recorder) Closed(event.Session)  {}
func (r *recorder) Dropped(event.Session) {}

func (r *recorder) Wants() (calls, params bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.to != nil, r.to != nil && r.cfg.Asked
}

// End ends the record.
func (r *recorder) End() { r.turnTo(nil, record.Activity{}, "") }
