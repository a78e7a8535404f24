package aggregator

import (
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/lazy"
)

// A session may be about one server (session.only), as if that had been wrapped alone and
// its tools were shown as themselves. What a session sees and reaches is in this file.

// views returns the catalogue as sessions see it that are about the same as s.
func (s *session) views() *catalog.Views {
	if s.only != "" {
		return s.agg.catalog.Single(s.only)
	}
	return s.agg.catalog.Views()
}

// view returns the catalogue as a session's host may see it.
func (s *session) view() *catalog.View {
	return s.views()[s.followedTasks()]
}

// A listKey is what the list of a session's tools depends on beside the catalogue.
type listKey struct {
	only     string // see session
	tree     bool
	searches bool // and that counts
	longest  int  // name of a tool
}

func listKeyOf(s *session) listKey {
	set, st := s.surface(), s.agg.state.Load()
	key := listKey{only: s.only, tree: s.tree, searches: st.auto() && set == st.searching, longest: catalog.MaxDirect}
	if set.Direct || len(st.cfg.Pin) > 0 {
		key.longest = s.hostProfile().longest()
	}
	return key
}

// single returns the one upstream that a session is about, nil if there are many.
func (s *session) single() *lazy.Upstream {
	if s.only != "" {
		return s.agg.set.Get(s.only)
	}
	return s.agg.single()
}

// upstreams returns the upstreams that there are for a session, in config order.
func (s *session) upstreams() (all []*lazy.Upstream) {
	for _, u := range s.agg.set.All() {
		if s.only != "" && s.only != u.Server.Name {
			continue
		}
		if u = s.existingFor(u); u != nil {
			all = append(all, u)
		}
	}
	return all
}

// sees reports whether what an upstream says may be for a session.
func (s *session) sees(u *lazy.Upstream) bool {
	if s.only != "" && s.only != u.Server.Name {
		return false
	}
	owner, _ := s.owner(u)
	return u.Owner == owner
}
