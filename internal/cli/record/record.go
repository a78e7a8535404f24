// Package record has the keys of the record of calls, and finds the record of a config.
package record

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/schema"
)

// Keys are the keys of the document.
type Keys struct {
	// Record calls of tools, a line each, for dynmcp log and dynmcp stats: what was called, when, for whom, how it ended, how long it took and how large it was, in the user's state directory, for 30 days. false records nothing; an object says what else is recorded, and where. See docs/activity.md.
	Activity *Activity `json:"activity" example:"{arguments: true}"`
}

// Activity configures the record of calls.
type Activity struct {
	// On reports that calls are recorded, Asked that the config says so.
	On, Asked bool `json:"-"`
	// The directory of the files; a relative one is beside the config. Left out, it is in the user's state directory.
	Dir string `json:"dir" nonblank:"true" example:"activity"`
	// Record the arguments of calls, redacted and at most 16 KiB of them.
	Arguments bool `json:"arguments" default:"false" example:"true"`
	// Record the results of calls, redacted and at most 16 KiB of them.
	Results bool `json:"results" default:"false" example:"true"`
	// Record what models search for.
	Queries bool `json:"queries" default:"false" example:"true"`
	// The most bytes of all files together; of the user with the most, the oldest are removed.
	MaxBytes int `json:"max_bytes" min:"65536" default:"67108864" example:"1073741824"`
	// How old a file may become. 0 is any age.
	MaxAge time.Duration `json:"max_age" default:"720h" example:"2160h"`
}

// Switch implements schema.Switch.
func (a *Activity) Switch() { a.On, a.Asked = true, true }

// Example implements schema.Switch.
func (*Activity) Example() string { return `{"arguments": true}` }

// Written implements schema.Switch.
func (a Activity) Written() any {
	if !a.On {
		return false
	}
	return a
}

// Of returns how a config has calls recorded, nil if they are not: then it says so, or the program does
// not know the key.
func Of(cfg *schema.Config) *Activity {
	if !schema.Knows[Keys](cfg) {
		return nil
	}
	a := schema.Keys[Keys](cfg).Activity
	if a == nil {
		return &Activity{On: true, MaxBytes: 64 << 20, MaxAge: 30 * 24 * time.Hour}
	}
	if !a.On {
		return nil
	}
	return a
}

// Dir returns the directory of the record of calls of a config.
func Dir(cfg *schema.Config) (string, error) {
	a := Of(cfg)
	if a == nil {
		return "", hint.With(errors.New("calls are not recorded"), `remove "activity": false from the config`)
	}
	state, err := conf.StateDir()
	switch {
	case a.Dir == "" && err != nil:
		return "", hint.With(fmt.Errorf("activity: there is no directory for the record of calls: %w", err), `name one: "activity": {"dir": "…"}`)
	case a.Dir == "":
		return filepath.Join(state, "activity"), nil
	case filepath.IsAbs(a.Dir):
		return a.Dir, nil
	}
	return filepath.Join(filepath.Dir(cfg.Path), a.Dir), nil
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
