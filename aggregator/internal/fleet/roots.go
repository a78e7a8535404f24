package fleet

import (
	"context"
	"encoding/json"

	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/lazy"
)

// A server that asks for the roots may restrict itself to them. If hosts share a run, such a server
// has an upstream for each set of roots of a user, unless its entry isolates it: the first
// question for the roots reveals such a server. Calls of a host with roots wait until these are
// known, and go to the upstream of the set, whose question is answered from here. Hosts without
// roots share the upstream of the entry.
//
//	a host of the handshake era is asked when it first calls such a server, and again
//	after its roots have changed
//	a host of the stateless era is asked with the result of its first call, over HTTP of
//	each call: there is no session that could remember

// noteRootsAsked records that the upstream asks for the roots.
func (p *Endpoint) noteRootsAsked() {
	p.asksRoots.Store(true)
	server := &p.Upstream.Server
	if p.isDivisible() && !p.Record.Entry.AsksRoots.Swap(true) {
		p.fleet.Log.Info("asks for the roots: hosts have one for each set of roots", "upstream", server.Name, "most", server.MaxSessions)
	}
}

// isDivisible reports whether an upstream belongs to a shared entry whose hosts may have separate
// upstreams besides it.
func (p *Endpoint) isDivisible() bool {
	f := p.fleet
	return len(f.Sessions.Exclusive()) == 0 && p.Upstream.Owner == "" && !Isolated(&p.Upstream.Server) && f.Place == nil
}

// givenRoots returns the answer to an upstream's question for the roots if the upstream is for a set
// of roots, nil for any other.
func (p *Endpoint) givenRoots(ctx context.Context, method string) func() (json.RawMessage, error) {
	if method != "roots/list" {
		return nil
	}
	p.noteRootsAsked()
	roots := p.roots.Load()
	if roots == nil {
		return nil
	}
	return p.RootsAsked.Request(ctx, nil, func(context.Context) func() (json.RawMessage, error) {
		return func() (json.RawMessage, error) { return *roots, nil }
	})
}

// rootsOwner returns the owner of a server's upstream for the roots of a session's host, "" if there
// is none, or the roots are unknown.
func (f *Fleet) rootsOwner(s *sessions.Session, u *lazy.Upstream) string {
	if !s.Shared || s.Replica || !f.Of(u).Record.Entry.AsksRoots.Load() {
		return ""
	}
	owner, _ := s.Roots.Known()
	return owner
}

// DropRoots ends the upstreams for the previous roots of a session's host or, if it has left, for the
// present ones, unless another host has the same.
func (f *Fleet) DropRoots(s *sessions.Session, left bool) {
	last := s.Roots.Dropped(left)
	if last == "" || !s.Persistent {
		return
	}
	for _, other := range f.Sessions.All() {
		if owner, _ := other.Roots.Known(); other != s && owner == last {
			return
		}
	}
	f.removeOwner(last)
}
