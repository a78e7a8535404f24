package apps

import (
	"context"
	"time"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/schema"
)

const (
	usedSince = 30 * 24 * time.Hour
	maxRead   = time.Second // of the record of calls
)

// usage returns how often tools were called before this run, by name, if the config asks for a record of calls:
// no list waits for the record that is kept without being asked for. The
// order of a list must not change in a run: hosts would list again, and providers not find their caches.
func usage(cfg *schema.Config) map[string]int {
	used := map[string]int{}
	if a := record.Of(cfg); a == nil || !a.Asked {
		return used
	}
	dir, err := record.Dir(cfg)
	if err != nil {
		return used
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxRead)
	defer cancel()
	lines, _ := (&activity.Reader{Dir: dir}).Next(ctx, &activity.Filter{Since: time.Now().Add(-usedSince)}) // a missing directory has no lines
	for _, l := range lines {
		used[l.Name()]++
	}
	return used
}
