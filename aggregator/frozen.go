package aggregator

import (
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/schema"
)

// A host that keeps the first list of tools for a whole session, or whose provider
// caches requests by it, is shown one that stays: a function of the config and of what
// was known when its session first listed, whatever is loaded afterwards. Servers
// that start by themselves are in it as far as that list waited for them. Requests that
// are sessions of their own are all shown what the first of them was.

// frozen is what hosts of a state are shown that read a list but once.
type frozen struct {
	once  sync.Once
	views atomic.Pointer[catalog.Views] // of requests without a session; nil until one of them has listed

	mu   sync.Mutex
	of   *catalog.Views // that last was made from
	last *catalog.Views // which sessions share that begin with the same catalogue
}

// A frozenSession is what a session is shown until another config takes the place of state.
type frozenSession struct {
	state *state
	views *catalog.Views
}

// shownView returns what a session sees of a list. ready says that lists may be
// answered now: nothing is frozen before, and the view is nil.
func (s *session) shownView(now *snapshot, which listing.List, ready bool) *catalog.View {
	follows := s.followedTasks()
	if which.Key != "tools" || !s.isStable() {
		return now.views[follows]
	}
	kept := now.state.frozen
	if !s.lasts {
		if !ready && kept.views.Load() == nil {
			return nil
		}
		kept.once.Do(func() { kept.views.Store(s.agg.catalog.Unloaded()) })
		return kept.views.Load()[follows]
	}
	own := s.frozen.Load()
	if own == nil || own.state != now.state {
		if !ready {
			return nil
		}
		s.frozen.CompareAndSwap(own, &frozenSession{now.state, kept.at(now.views, s.agg.catalog)})
		own = s.frozen.Load()
	}
	return own.views[follows]
}

// at returns the views for a session that begins when the catalogue has those views.
func (f *frozen) at(views *catalog.Views, c *catalog.Catalog) *catalog.Views {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of != views {
		f.of, f.last = views, c.Unloaded()
	}
	return f.last
}

// all returns the views that requests without a session and the newest sessions are shown.
func (f *frozen) all() (all []*catalog.Views) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, views := range []*catalog.Views{f.views.Load(), f.last} {
		if views != nil {
			all = append(all, views)
		}
	}
	return all
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
