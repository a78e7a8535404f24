package aggregator

import (
	"slices"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
)

// A session may be about one server, as if that had been wrapped alone and its tools
// were shown as themselves: session.only names it. What such a session sees and
// reaches, and what that server says to it, is told here.

// views returns the catalogue as sessions see it that are about the same as s.
func (s *session) views() *catalog.Views {
	if s.only != "" {
		return s.agg.catalog.Alone(s.only)
	}
	return s.agg.catalog.Views()
}

// view returns the catalogue as a session's host may see it.
func (s *session) view() *catalog.View {
	return s.views()[s.followedTasks()]
}

// tools returns what a session's host finds in its list of tools.
func (s *session) tools() []tool {
	switch {
	case s.only != "":
		return directSurface(s.agg, nil)
	case s.tree:
		return treeSurface(s.agg, s.agg.config())
	}
	st := s.agg.state.Load()
	if st.auto && s.hostProfile().searches {
		return st.direct
	}
	return st.tools
}

// exposes reports whether a surface is on for a session.
func (s *session) exposes(surface string) bool {
	switch {
	case s.only != "":
		return surface == schema.ExposeDirect
	case s.tree:
		return surface == schema.ExposeTree
	}
	if s.agg.state.Load().auto && (surface == schema.ExposeDiscover || surface == schema.ExposeDirect) {
		return s.hostProfile().searches == (surface == schema.ExposeDirect)
	}
	return slices.Contains(s.agg.config().Expose, surface)
}

// A face is what the list of a session's tools depends on beside the catalogue.
type face struct {
	only     string // see session
	tree     bool
	searches bool // and that counts
	longest  int  // name of a tool
}

func (s *session) face() face {
	f := face{only: s.only, tree: s.tree, searches: s.agg.state.Load().auto && s.hostProfile().searches, longest: catalog.MaxDirect}
	if s.exposes(schema.ExposeDirect) || len(s.agg.config().Pin) > 0 {
		f.longest = s.hostProfile().longest()
	}
	return f
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
		if u = s.ownIfAny(u); u != nil {
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
