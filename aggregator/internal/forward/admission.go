package forward

import (
	"context"
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Calls of hosts and of other replicas pass one step before Conn.Start: admit. A call of a host
// that cannot be sent at once joins the queue of its server, whatever it waits for: the start of
// the server, the server's question for the roots, or earlier calls. Calls leave the queue in
// the order of arrival of their requests, even after a reload or a restart. A call that is sent
// again, after a login or a lost session, keeps the number of its request, and so its place
// before later ones. If max_calls limits the calls in flight, a call whose server is ready waits
// in a separate queue for a slot: so do calls of other replicas, while requests that do not
// count pass.

// admit returns the connection for the call, and a function that releases it. ok is false if the
// call has to wait: then it is sent later, or has failed.
func (c *Call) admit(r *host.Request) (conn *upstream.Conn, release func(), ok bool) {
	if c.redirect(r) {
		return nil, nil, false
	}
	full := false
	if !c.Route.retry { // a retry runs within the connection that failed
		if conn, release, full = c.takeReady(nil); conn != nil && !full {
			return conn, release, true
		}
	}
	c.clone()
	q, wait := &c.Server.Record.Queue, c.wait
	if full {
		q, wait = &c.Server.Record.Slots, c.awaitSlot
	}
	t := q.Join(r.Number)
	c.Env.Work.AnswerWithin(r, func(ctx context.Context) {
		defer t.Leave()
		wait(ctx, r, t)
	})
	return nil, nil, false
}

// Join keeps a place for a request in the queue of a server, nil for none, while it is not a
// call yet: its tool has to be listed, or its input checked. Calls whose requests came later are
// sent later. leave gives up the place once the request is dispatched or answered.
func (env *Env) Join(s *sessions.Session, r *host.Request, u *lazy.Upstream) (leave func()) {
	if u == nil {
		return func() {}
	}
	u, err := env.Fleet.For(s, u)
	if err != nil { // the start reports it
		return func() {}
	}
	return env.Fleet.Of(u).Record.Queue.Join(r.Number).Leave
}

// takeReady returns the connection if the call can be sent at once, nil if it has to wait. full
// reports that it has to wait only for a slot; t is as in queue.take.
func (c *Call) takeReady(t *fleet.Ticket) (conn *upstream.Conn, release func(), full bool) {
	// Calls of a link do not wait for a start: those before them may wait for the server to move,
	// which it does when its links have ended.
	if c.Server.Record.Queue.Length.Load() > 0 && c.Route.Link == nil {
		return nil, nil, false
	}
	conn, release, ok := c.ready()
	if !ok {
		return nil, nil, false
	}
	if c.gate() != nil {
		release()
		return nil, nil, false
	}
	release, ok = c.takeSlot(conn, release, t)
	return conn, release, !ok
}

// takeSlot returns a function that releases the connection and the slot of the call. Only a server
// with max_calls has slots, where it runs. Without a free slot it releases the connection.
func (c *Call) takeSlot(conn *upstream.Conn, release func(), t *fleet.Ticket) (_ func(), ok bool) {
	slots, most := &c.Server.Record.Slots, c.Route.Upstream.Server.MaxCalls
	if most == 0 && slots.Length.Load() == 0 || conn.Remote() || !ask.MayNeedInput(c.Method) {
		return release, true
	}
	if !slots.Take(t, most) {
		release()
		return nil, false
	}
	return func() {
		release()
		slots.GiveBack(1)
	}, true
}

// wait sends the call when its server is ready, has its answer to the question for the roots, and
// all earlier calls were sent.
func (c *Call) wait(ctx context.Context, r *host.Request, t *fleet.Ticket) {
	for {
		conn, release, err := c.Env.Fleet.Acquire(ctx, c.Session, r, c.Route.Upstream, false)
		if err != nil {
			c.failUnsent(r, err)
			return
		}
		if c.redirect(r) {
			release()
			return
		}
		gate := c.gate()
		if gate == nil && t.IsFirst() {
			if release, ok := c.takeSlot(conn, release, nil); ok {
				c.SendOver(r, conn, release)
				return
			}
			slot := c.Server.Record.Slots.Join(r.Number)
			defer slot.Leave()
			t.Leave()
			c.awaitSlot(ctx, r, slot)
			return
		}
		release()
		if gate != nil && !c.awaitRoots(ctx, r, gate) || gate == nil && !c.awaitTurn(ctx, r, t) {
			return
		}
	}
}

// ready returns the connection of the call's server, if there is one.
func (c *Call) ready() (conn *upstream.Conn, release func(), ok bool) {
	if l := c.Route.Link; l != nil {
		return l.Connection(), func() {}, true
	}
	return c.Route.Upstream.Ready()
}

// gate returns the gate that holds the call back until its server knows the roots. Another replica
// holds back the calls of its hosts itself.
func (c *Call) gate() *ask.Gate {
	if c.Route.Link != nil {
		return nil
	}
	return c.Server.RootsAsked.Gate()
}

// awaitTurn waits until earlier calls have left the queue, and after a reload switches to the
// upstream that replaced the call's. It reports false if the request ends before: then the
// call has failed.
func (c *Call) awaitTurn(ctx context.Context, r *host.Request, t *fleet.Ticket) bool {
	select {
	case <-t.Next:
	case <-ctx.Done():
		c.cutOffUnsent(r)
		return false
	}
	return !c.followReload(r)
}

// followReload sends the call to the upstream that replaced its own, if one did.
func (c *Call) followReload(r *host.Request) bool {
	u := c.Route.Upstream
	now := c.Env.Fleet.Set.Get(u.Server.Name)
	if now == nil || c.Route.Link != nil || c.Env.Fleet.Set.Has(u) {
		return false
	}
	c.Route.Upstream = now
	c.reroute(r)
	return true
}

// awaitSlot sends the call when it is the first in the queue and a slot is free. If its server has
// to be started again, it waits for that in the other queue.
func (c *Call) awaitSlot(ctx context.Context, r *host.Request, t *fleet.Ticket) {
	within := c.Route.Upstream.Server.Timeout
	if c.Timeout != nil {
		within = *c.Timeout
	}
	if c.expired == nil && within > 0 {
		c.expired = time.After(within)
	}
	var lost <-chan struct{}
	if l := c.Route.Link; l != nil {
		lost = l.Connection().Done()
	}
	for {
		select {
		case <-ctx.Done():
			c.cutOffUnsent(r)
			return
		case <-c.expired:
			c.failUnsent(r, noSlot(&c.Route.Upstream.Server, within))
			return
		case <-lost: // which Start reports
			c.SendOver(r, c.Route.Link.Connection(), func() {})
			return
		case <-t.Next:
		}
		if !t.IsFirst() {
			continue
		}
		if c.followReload(r) {
			return
		}
		if conn, release, full := c.takeReady(t); !full {
			c.SendOver(r, conn, release)
			return
		}
	}
}

// noSlot is the failure of a call that waited for a slot for as long as a call may take.
func noSlot(server *schema.Server, within time.Duration) error {
	return &transports.Failure{Upstream: server.Name, Code: transports.CodeOverloaded, Outcome: transports.NotSent,
		Cause: fmt.Errorf("as many calls as its \"max_calls\" (%d) were in flight for %v", server.MaxCalls, within),
		Hint:  `call again when others have ended, or raise its "max_calls" or "timeout"`}
}
