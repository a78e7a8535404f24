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
	// Record calls of tools, a line each, for dynmcp log and dynmcp stats. An empty object records what was called, how it ended and how long it took.
	Activity *Activity `json:"activity" example:"{arguments: true}"`
}

// Activity configures the record of calls.
type Activity struct {
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

// Of returns how a config has calls recorded, nil if it does not.
func Of(cfg *schema.Config) *Activity { return schema.Keys[Keys](cfg).Activity }

// Dir returns the directory of the record of calls of a config.
func Dir(cfg *schema.Config) (string, error) {
	a := Of(cfg)
	if a == nil {
		return "", hint.With(errors.New("calls are not recorded"), `add "activity": {} to the config`)
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
