package forward

import (
	"context"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Calls of hosts and of other replicas pass one step before Conn.Start: admit. A call of a host
// that cannot be sent at once joins the queue of its server, whatever it waits for: the start of
// the server, the server's question for the roots, or earlier calls. Calls leave the queue in
// the order of arrival of their requests, even after a reload or a restart. A call that is sent
// again, after a login or a lost session, keeps the number of its request, and so its place
// before later ones. A call whose server is ready, but over a limit of it, waits in the queue of that
// limit (fleet.Limit): so do calls of other replicas, while requests that do not count pass.

// admit returns the connection for the call, and a function that releases it. ok is false if the
// call has to wait: then it is sent later, or has failed.
func (c *Call) admit(r *host.Request) (conn *upstream.Conn, release func(), ok bool) {
	if c.redirect(r) {
		return nil, nil, false
	}
	var over fleet.Limit
	if !c.Route.retry { // a retry runs within the connection that failed
		if conn, release, over = c.takeReady(nil); conn != nil {
			return conn, release, true
		}
	}
	c.clone()
	if over != nil {
		t := over.Join(r.Number)
		c.Env.Work.AnswerWithin(r, func(ctx context.Context) { c.awaitPlace(ctx, r, over, t) })
		return nil, nil, false
	}
	t := c.Server.Record.Queue.Join(r.Number)
	c.Env.Work.AnswerWithin(r, func(ctx context.Context) {
		defer t.Leave()
		c.wait(ctx, r, t)
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

// takeReady returns the connection if the call can be sent at once, nil if it has to wait. over is
// the limit that alone it has to wait for; t is its place in a queue of one, nil if it has none.
func (c *Call) takeReady(t *fleet.Ticket) (conn *upstream.Conn, release func(), over fleet.Limit) {
	// Calls of a link do not wait for a start: those before them may wait for the server to move,
	// which it does when its links have ended.
	if c.Server.Record.Queue.Length.Load() > 0 && c.Route.Link == nil {
		return nil, nil, nil
	}
	conn, release, ok := c.ready()
	if !ok {
		return nil, nil, nil
	}
	if c.gate() != nil {
		release()
		return nil, nil, nil
	}
	if release, over = c.takePlaces(conn, release, t); over != nil {
		return nil, nil, over
	}
	return conn, release, nil
}

// takePlaces returns a function that releases the connection and the places of the call within the
// limits of the server, where it runs. If one is reached, it releases all and returns that.
func (c *Call) takePlaces(conn *upstream.Conn, release func(), t *fleet.Ticket) (_ func(), over fleet.Limit) {
	if conn.Remote() || !ask.MayNeedInput(c.Method) {
		return release, nil
	}
	server := &c.Route.Upstream.Server
	for _, l := range c.Server.Record.Limits() {
		if !l.Applies(server) {
			continue
		}
		if !l.Take(t, server) {
			release()
			return nil, l
		}
		before := release
		release = func() {
			before()
			l.GiveBack(1)
		}
	}
	return release, nil
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
			release, over := c.takePlaces(conn, release, nil)
			if over == nil {
				c.SendOver(r, conn, release)
				return
			}
			place := over.Join(r.Number)
			t.Leave()
			c.awaitPlace(ctx, r, over, place)
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

// awaitPlace sends the call when it is the first of those over a limit, which have places in its
// queue, and within all limits. If its server has to be started again, it waits for that in the
// other queue.
func (c *Call) awaitPlace(ctx context.Context, r *host.Request, over fleet.Limit, t *fleet.Ticket) {
	defer func() { t.Leave() }()
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
		var due <-chan time.Time
		if d, ok := over.Delay(&c.Route.Upstream.Server); ok && t.IsFirst() {
			due = time.After(d)
		}
		select {
		case <-ctx.Done():
			c.cutOffUnsent(r)
			return
		case <-c.expired:
			c.failUnsent(r, c.reached(over, within))
			return
		case <-lost: // which Start reports
			c.SendOver(r, c.Route.Link.Connection(), func() {})
			return
		case <-t.Next:
		case <-due:
		}
		if !t.IsFirst() {
			continue
		}
		if c.followReload(r) {
			return
		}
		switch conn, release, next := c.takeReady(t); {
		case next == nil:
			c.SendOver(r, conn, release)
			return
		case next != over:
			place := next.Join(r.Number)
			t.Leave()
			over, t = next, place
		}
	}
}

// reached is the failure of a call that was over a limit for as long as a call may take.
func (c *Call) reached(over fleet.Limit, within time.Duration) error {
	server := &c.Route.Upstream.Server
	hint, cause := over.Reached(server, within)
	return &transports.Failure{Upstream: server.Name, Code: transports.CodeOverloaded, Outcome: transports.NotSent, Cause: cause, Hint: hint}
}
