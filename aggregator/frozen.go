package aggregator

import (
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/schema"
)

// A host that keeps the first list of tools for a whole session, or whose provider
// caches requests by it, is shown one that stays: a function of the config and of what
// was stored when the first such host listed, whatever is loaded afterwards. Servers
// that start by themselves are in it as far as that list waited for them.

// frozen is what hosts of a state are shown that read a list but once.
type frozen struct {
	once  sync.Once
	views atomic.Pointer[catalog.Views] // nil until one of them has listed the tools
}

// shownView returns what a session sees of a list. ready says that lists may be
// answered now: nothing is frozen before, and the view is nil.
func (s *session) shownView(now *snapshot, which list, ready bool) *catalog.View {
	follows := s.followedTasks()
	if which.key != "tools" || !s.isStable() {
		return now.views[follows]
	}
	if !ready && now.state.frozen.views.Load() == nil {
		return nil
	}
	kept := now.state.frozen
	kept.once.Do(func() { kept.views.Store(s.agg.catalog.Unloaded()) })
	return kept.views.Load()[follows]
}

// isStable reports whether a session's list of tools stays.
func (s *session) isStable() bool {
	if s.single() != nil {
		return false // one server as it is
	}
	switch s.agg.config().Catalog.Stable {
	case schema.StableOn:
		return true
	case schema.StableOff:
		return false
	}
	return s.hostProfile().freezes
}
