package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A server that asks for the roots may serve what these allow and nothing else. Where
// hosts share a run, such a server has an upstream for each set of roots of a user, unless
// its entry isolates it: the first question for the roots says that it is one. Calls of a
// host with roots wait until these are known, and go to the upstream of the set, which has
// its question answered from here. Hosts without roots share the upstream of the entry.
//
//	a host of the handshake era is asked when it first calls such a server, and again
//	after its roots have changed
//	a host of the stateless era is asked with the result of its first call, over HTTP of
//	each call: there is no session that could remember

// noteRootsAsked notes that the upstream asks for the roots.
func (p *peer) noteRootsAsked() {
	p.asksRoots.Store(true)
	server := &p.upstream.Server
	if p.isDivisible() && !p.record.entry.asksRoots.Swap(true) {
		p.agg.log.Info("asks for the roots: hosts have one for each set of roots", "upstream", server.Name, "most", server.MaxSessions)
	}
}

// isDivisible reports whether an upstream is of an entry that hosts share, who may have
// others of it beside.
func (p *peer) isDivisible() bool {
	a := p.agg
	return !a.sessions.HasExclusive() && p.upstream.Owner == "" && !isolated(&p.upstream.Server) && a.opts.Place == nil
}

// givenRoots returns the answer to an upstream's question for the roots where the upstream
// is that of a set of roots, nil for any other.
func (p *peer) givenRoots(ctx context.Context, method string) func() (json.RawMessage, error) {
	if method != "roots/list" {
		return nil
	}
	p.noteRootsAsked()
	roots := p.roots.Load()
	if roots == nil {
		return nil
	}
	return p.rootsAsked.Request(ctx, nil, func(context.Context) func() (json.RawMessage, error) {
		return func() (json.RawMessage, error) { return *roots, nil }
	})
}

// rootsOwner returns who has a server where that is the roots' of a session's host, ""
// where it is not, or these are not known.
func (s *session) rootsOwner(u *lazy.Upstream) string {
	if !s.shares || s.replica || !s.agg.peerOf(u).record.entry.asksRoots.Load() {
		return ""
	}
	owner, _ := s.roots.Known()
	return owner
}

// redirect reports whether a call is not to go to its upstream: its host has another of
// the server, for its roots or its era, which it is sent to, or is asked for its roots first.
func (c *forwardedCall) redirect(r *host.Request) bool {
	switch {
	case c.needsRoots(r):
		c.clone()
		c.sendForRoots(r)
	case c.isOfAnotherEra():
		c.clone()
		c.reroute(r)
	default:
		return false
	}
	return true
}

// needsRoots reports whether a call is about to go to an upstream that serves more than the
// roots of its host allow.
func (c *forwardedCall) needsRoots(r *host.Request) bool {
	u, s := c.route.upstream, c.session
	if u.Owner != "" || !s.shares || s.replica || !c.peer.record.entry.asksRoots.Load() || isolated(&u.Server) {
		return false
	}
	capabilities := s.declaration().capabilities
	if r.Era == transports.Stateless {
		capabilities = wire.Get(r.Meta, transports.MetaCapabilities)
	}
	return wire.Get(capabilities, "roots") != nil
}

// sendForRoots sends a call to the upstream for the roots of its host, which is asked for
// them if need be.
func (c *forwardedCall) sendForRoots(r *host.Request) {
	s := c.session
	if q := c.rootsAsked; q != nil {
		c.rootsAsked = nil
		if roots, ok := q.Taken(); ok {
			_ = s.roots.Set(s.principal.name, roots) // what is none is asked for again
		}
	}
	owner, _ := s.roots.Known()
	switch {
	case owner != "":
		c.reroute(r)
	case r.Era == transports.Handshake:
		c.agg.work.AnswerWithin(r, func(ctx context.Context) { c.learnRoots(ctx, r) })
	case !ask.MayNeedInput(r.Method):
		c.failUnsent(r, c.rootless(errors.New(c.lacks("roots/list", nil))))
	default:
		c.rootsAsked = ask.NewQuestion("roots/list", nil)
		c.AskFirst(c.rootsAsked)
	}
}

// reroute sends a call to what its session has of its server.
func (c *forwardedCall) reroute(r *host.Request) {
	u, err := c.session.upstreamFor(c.route.upstream)
	if err != nil {
		c.failUnsent(r, err)
		return
	}
	c.route.upstream, c.peer = u, c.agg.peerOf(u)
	c.send(r, nil, nil)
}

// learnRoots asks a host of the handshake era for its roots and sends the call.
func (c *forwardedCall) learnRoots(ctx context.Context, r *host.Request) {
	s := c.session
	err := s.roots.Learn(ctx, s.principal.name, func(ctx context.Context) (json.RawMessage, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, ask.RootsWait, fmt.Errorf("no answer within %v", ask.RootsWait))
		defer cancel()
		roots, err := r.Peer.Request(ctx, "roots/list", nil)()
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return roots, err
	})
	switch {
	case ctx.Err() != nil:
		c.failUnsent(r, r.CutOff(c.route.upstream.Server.Name, transports.NotSent))
	case err != nil:
		c.failUnsent(r, c.rootless(err))
	default:
		s.dropRoots(false)
		c.send(r, nil, nil)
	}
}

// rootless is the failure of a call whose host did not say what its roots are.
func (c *forwardedCall) rootless(cause error) error {
	return &transports.Failure{
		Upstream: c.route.upstream.Server.Name, Code: transports.CodeNoHost, Outcome: transports.NotSent,
		Cause: fmt.Errorf("it asks for the host's roots, and gets no calls without: %w", cause), Hint: "call again",
	}
}

// dropRoots ends the upstreams for roots that a session's host had, and where that has
// left for those it has, unless another has the same.
func (s *session) dropRoots(left bool) {
	last := s.roots.Dropped(left)
	if last == "" || !s.lasts {
		return
	}
	for _, other := range s.agg.sessions.All() {
		if owner, _ := other.roots.Known(); other != s && owner == last {
			return
		}
	}
	s.agg.disowned(last)
}

// awaitRoots waits for the end of a gate, or asks the call's host for the roots. It reports
// false if the call has failed, or waits for the next request of its host.
func (c *forwardedCall) awaitRoots(r *host.Request, gate *ask.Gate) bool {
	failed := func(cause error) bool {
		c.failUnsent(r, &transports.Failure{Upstream: c.route.upstream.Server.Name, Code: transports.CodeNoHost, Outcome: transports.NotSent, Cause: cause,
			Hint: "it may serve more than the host's roots allow; a restart has it ask anew"})
		return false
	}
	if q := gate.Question(); q != nil {
		if lacking := c.lacks("roots/list", nil); lacking != "" {
			return failed(fmt.Errorf("it has asked for the host's roots, and gets no calls without: %s", lacking))
		}
		if r.Era == transports.Stateless {
			c.AskFirst(q)
			return false
		}
		answer := c.peer.requestHost(c.agg.ctx, c.session, r.Peer, q.Method, q.Params)
		c.agg.work.Go(func() { q.Answer(answer()) })
	}
	ctx, cancel := c.agg.work.ContextOf(r)
	defer cancel()
	select {
	case <-gate.Over():
	case <-ctx.Done():
		c.failUnsent(r, transports.CutOff(c.route.upstream.Server.Name, transports.NotSent))
		return false
	}
	err := gate.Err()
	return err == nil || failed(err)
}
