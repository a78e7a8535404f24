package aggregator

import (
	"slices"

	"dynmcp/catalog"
	"dynmcp/lazy"
	"dynmcp/schema"
)

// A session may be about one server, as if that had been wrapped alone and its tools
// were shown as themselves: session.only names it. What such a session sees and
// reaches, and what that server says to it, is told here.

// viewsOf returns the catalogue as sessions see it that are about the same as s.
func (a *Aggregator) viewsOf(s *session) *catalog.Views {
	if s.only != "" {
		return a.catalog.Alone(s.only)
	}
	return a.catalog.Views()
}

// viewOf returns the catalogue as a session's host may see it.
func (a *Aggregator) viewOf(s *session) *catalog.View {
	return a.viewsOf(s)[a.followedTasks(s)]
}

// toolsOf returns what a session's host finds in its list of tools.
func (a *Aggregator) toolsOf(s *session) []tool {
	switch {
	case s.only != "":
		return directSurface(a, nil)
	case s.tree:
		return treeSurface(a, a.config())
	}
	st := a.state.Load()
	if st.auto && a.profileOf(s).searches {
		return st.direct
	}
	return st.tools
}

// exposesTo reports whether a surface is on for a session.
func (a *Aggregator) exposesTo(s *session, surface string) bool {
	switch {
	case s.only != "":
		return surface == schema.ExposeDirect
	case s.tree:
		return surface == schema.ExposeTree
	}
	if a.state.Load().auto && (surface == schema.ExposeDiscover || surface == schema.ExposeDirect) {
		return a.profileOf(s).searches == (surface == schema.ExposeDirect)
	}
	return slices.Contains(a.config().Expose, surface)
}

// A face is what the list of a session's tools depends on beside the catalogue.
type face struct {
	only     string // see session
	tree     bool
	searches bool // and that counts
	longest  int  // name of a tool
}

func (a *Aggregator) faceOf(s *session) face {
	f := face{only: s.only, tree: s.tree, searches: a.state.Load().auto && a.profileOf(s).searches, longest: catalog.MaxDirect}
	if a.exposesTo(s, schema.ExposeDirect) || len(a.config().Pin) > 0 {
		f.longest = a.profileOf(s).longest()
	}
	return f
}

// singleOf returns the one upstream that a session is about, nil if there are many.
func (a *Aggregator) singleOf(s *session) *lazy.Upstream {
	if s.only != "" {
		return a.set.Get(s.only)
	}
	return a.single()
}

// upstreamsOf returns the upstreams that there are for a session, in config order.
func (a *Aggregator) upstreamsOf(s *session) (all []*lazy.Upstream) {
	for _, u := range a.set.All() {
		if s.only != "" && s.only != u.Server.Name {
			continue
		}
		if u = a.ownIfAny(s, u); u != nil {
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
	owner, _ := s.owner(&u.Server)
	return u.Owner == owner
}

// sessions returns those that see the upstream, in the order in which they came.
func (p *peer) sessions() []*session {
	all := p.agg.sessions.all()
	if !slices.ContainsFunc(all, func(s *session) bool { return !s.sees(p.upstream) }) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(s *session) bool { return !s.sees(p.upstream) })
}
