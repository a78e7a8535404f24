package schema

import (
	"path/filepath"
	"time"
)

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

// ActivityDir returns the directory of the record of calls; otherwise is the default, a directory
// of the user.
func (c *Config) ActivityDir(otherwise string) string {
	switch {
	case c.Activity == nil || c.Activity.Dir == "":
		return filepath.Join(otherwise, "activity")
	case filepath.IsAbs(c.Activity.Dir):
		return c.Activity.Dir
	}
	return filepath.Join(filepath.Dir(c.Path), c.Activity.Dir)
}
