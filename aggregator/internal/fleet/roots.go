package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/lazy"
)

// A server that asks for the roots may restrict itself to them. If hosts share a run, such a server
// has an upstream for each set of roots of a user, unless its entry isolates it: the first
// question for the roots reveals such a server. Calls of a host with roots wait until these are
// known, and go to the upstream of the set, whose question is answered from here. Hosts without
// roots share the upstream of the entry.
//
// A server may ask only in a call, when it has a state already. So the process that was answered
// with a host's roots, the upstream of the entry, becomes that of their set: its host stays there,
// and hosts without roots share an upstream of their own.
//
//	a host of the handshake era is asked when it first calls such a server, and again
//	after its roots have changed
//	a host of the stateless era is asked with the result of its first call, over HTTP of
//	each call: there is no session that could remember

// noteAsked records that the upstream asks for something, and whether for the roots, when the question is open: before, calls
// of other hosts would not be held back.
func (p *Endpoint) noteAsked(method string) {
	if ask.Capability(method) != "" {
		p.fleet.Lists.noteRegard(p)
	}
	if method != "roots/list" {
		return
	}
	p.asksRoots.Store(true)
	server := &p.Upstream.Server
	if p.isDivisible() && !p.Record.Entry.AsksRoots.Swap(true) {
		p.fleet.Log.Info("asks for the roots: hosts have one for each set of roots", "upstream", server.Name, "most", server.MaxSessions)
	}
}

// rootless owns the upstream of hosts without roots if that of the entry is for a set of roots.
const rootless = "no roots"

// claim makes the upstream that of the roots with which a session's host answers ask, if hosts may
// have separate ones. It is called before the question is known to be open.
func (p *Endpoint) claim(s *sessions.Session, ask func(context.Context) func() (json.RawMessage, error)) func(context.Context) func() (json.RawMessage, error) {
	if !s.Shared || s.Replica || !p.isDivisible() || !p.claimedBy.CompareAndSwap(nil, &s.ID) && *p.claimedBy.Load() != s.ID {
		return ask
	}
	changes := s.Roots.Changes()
	return func(ctx context.Context) func() (json.RawMessage, error) {
		answer := ask(ctx)
		return func() (json.RawMessage, error) {
			result, err := answer()
			if err != nil {
				return nil, err
			}
			if owner, invalid := s.Roots.SetIf(changes, s.User, result); invalid == nil {
				roots := json.RawMessage(bytes.Clone(result))
				p.roots.Store(&roots)
				p.user.Store(&s.User)
				p.keptFor.Store(&owner)
			}
			return result, nil
		}
	}
}

// isKeptFor reports whether the upstream of an entry is for these roots, "" if they are unknown.
func (p *Endpoint) isKeptFor(owner string) bool {
	kept := p.keptFor.Load()
	return kept != nil && *kept == owner
}

// ServesRoots reports whether calls of a session with roots may go to the upstream: it is for a
// set of roots, or is asking the session's host for them.
func (p *Endpoint) ServesRoots(s *sessions.Session) bool {
	if p.Upstream.Owner != "" {
		return p.Upstream.Owner != rootless
	}
	by := p.claimedBy.Load()
	asking := by != nil && *by == s.ID && p.RootsAsked.Gate() != nil
	owner, _ := s.Roots.Known() // after the gate, which opens when they are known
	return p.isKeptFor(owner) || asking && p.keptFor.Load() == nil
}

// isDivisible reports whether an upstream belongs to a shared entry whose hosts may have separate
// upstreams besides it.
func (p *Endpoint) isDivisible() bool {
	f := p.fleet
	return len(f.Sessions.Exclusive()) == 0 && p.Upstream.Owner == "" && !Isolated(&p.Upstream.Server) && f.Places == nil
}

// givenRoots returns the answer to an upstream's question for the roots if the upstream is for a set
// of roots, nil for any other.
func (p *Endpoint) givenRoots(ctx context.Context, method string) func() (json.RawMessage, error) {
	if method != "roots/list" {
		return nil
	}
	roots := p.roots.Load()
	if roots == nil {
		return nil
	}
	return p.RootsAsked.Request(ctx, nil, func(context.Context) func() (json.RawMessage, error) {
		return func() (json.RawMessage, error) { return *roots, nil }
	})
}

// rootsOwner returns the owner of a server's upstream for the roots of a session's host, "" if that
// is the upstream of the entry.
func (f *Fleet) rootsOwner(s *sessions.Session, u *lazy.Upstream) string {
	if !s.Shared || s.Replica || !f.Of(u).Record.Entry.AsksRoots.Load() {
		return ""
	}
	p := f.Of(cmp.Or(f.Set.Get(u.Server.Name), u))
	owner, _ := s.Roots.Known()
	switch by := p.claimedBy.Load(); {
	case by == nil:
		return owner
	case p.isKeptFor(owner), owner == "" && *by == s.ID:
		return ""
	}
	return cmp.Or(owner, rootless)
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
	for _, u := range f.Set.All() {
		if conn := u.Conn(); conn != nil && f.Of(u).isKeptFor(last) {
			u.Retire(conn)
		}
	}
}
