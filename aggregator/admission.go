package aggregator

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Calls of hosts and of other replicas pass one step before Conn.Start: admit. A call of a host that
// cannot be sent at once joins the queue of its server, whatever it waits for: the start of
// the server, the server's question for the roots, or calls before it. Calls leave the queue
// in the order in which their requests came, also after a reload or a restart. A call that is
// sent again, after a login or a lost session, keeps the number of its request, and so its
// place before later ones. Where max_calls bounds the calls in flight, a call whose server is
// ready waits in a queue of its own for a slot: calls of other replicas wait there as well,
// and requests that do not count pass.

// A queue holds the calls to one server that wait to be sent. The zero value is ready to use.
type queue struct {
	length atomic.Int32 // of waiting, to be read without the lock

	mu      sync.Mutex
	waiting []*ticket // by number
	running int       // calls that have a slot
}

// A ticket is the place of a call in a queue.
type ticket struct {
	queue  *queue
	number int64
	next   chan struct{} // holds a token when the ticket may have become the first
}

// join adds a call to the queue, before those with a higher number.
func (q *queue) join(number int64) *ticket {
	t := &ticket{q, number, make(chan struct{}, 1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	at, _ := slices.BinarySearchFunc(q.waiting, number, func(t *ticket, number int64) int { return cmp.Compare(t.number, number) })
	q.waiting = slices.Insert(q.waiting, at, t)
	q.changedLocked()
	return t
}

// leave lets the next call go on.
func (t *ticket) leave() {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := slices.Index(q.waiting, t); at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	q.changedLocked()
}

// take takes a slot, if fewer than most are taken, 0 being any number, and no other call
// waits before this one. t is nil of a call that does not wait.
func (q *queue) take(t *ticket, most int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if most > 0 && q.running >= most || len(q.waiting) > 0 && q.waiting[0] != t {
		return false
	}
	q.running++
	return true
}

// giveBack gives slots back, and has the first call look again whether it can be sent.
func (q *queue) giveBack(slots int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running -= slots
	q.changedLocked()
}

// inUse reports whether calls wait or have slots.
func (q *queue) inUse() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running > 0 || len(q.waiting) > 0
}

func (q *queue) changedLocked() {
	q.length.Store(int32(len(q.waiting)))
	if len(q.waiting) > 0 {
		select {
		case q.waiting[0].next <- struct{}{}:
		default:
		}
	}
}

func (t *ticket) isFirst() bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.queue.waiting[0] == t
}

// admit returns the connection to send the call over, and what gives it back. ok is false
// if the call has to wait: then it is sent later, or has failed.
func (c *forwardedCall) admit(r *host.Request) (conn *upstream.Conn, release func(), ok bool) {
	if c.redirect(r) {
		return nil, nil, false
	}
	full := false
	if !c.route.retry { // which runs within the connection that failed
		if conn, release, full = c.takeReady(nil); conn != nil && !full {
			return conn, release, true
		}
	}
	c.clone()
	q, wait := &c.peer.record.queue, c.wait
	if full {
		q, wait = &c.peer.record.slots, c.awaitSlot
	}
	t := q.join(r.Number)
	c.agg.work.Answer(r, func() {
		defer t.leave()
		wait(r, t)
	})
	return nil, nil, false
}

// takeReady returns the connection to send the call over at once, nil if that has to wait for
// something else than a slot. full says that it has to wait for that; t is as in queue.take.
func (c *forwardedCall) takeReady(t *ticket) (conn *upstream.Conn, release func(), full bool) {
	// Calls of a link do not wait for a start: those before them may wait for the server to
	// move, which it does when its links have ended.
	if c.peer.record.queue.length.Load() > 0 && c.route.link == nil {
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

// takeSlot returns what gives back the connection and the slot of the call, which only a
// server with max_calls has, where it runs. If there is no slot it gives the connection back.
func (c *forwardedCall) takeSlot(conn *upstream.Conn, release func(), t *ticket) (_ func(), ok bool) {
	slots, most := &c.peer.record.slots, c.route.upstream.Server.MaxCalls
	if most == 0 && slots.length.Load() == 0 || conn.Remote() || !ask.MayNeedInput(c.Method) {
		return release, true
	}
	if !slots.take(t, most) {
		release()
		return nil, false
	}
	return func() {
		release()
		slots.giveBack(1)
	}, true
}

// wait sends the call when its server is ready, has its answer to the question for the
// roots, and has been sent the calls before this one.
func (c *forwardedCall) wait(r *host.Request, t *ticket) {
	for {
		conn, release, err := c.acquire(r)
		if err != nil {
			c.failUnsent(r, err)
			return
		}
		if c.redirect(r) {
			release()
			return
		}
		gate := c.gate()
		if gate == nil && t.isFirst() {
			if release, ok := c.takeSlot(conn, release, nil); ok {
				c.send(r, conn, release)
				return
			}
			slot := c.peer.record.slots.join(r.Number)
			defer slot.leave()
			t.leave()
			c.awaitSlot(r, slot)
			return
		}
		release()
		if gate != nil && !c.awaitRoots(r, gate) || gate == nil && !c.awaitTurn(r, t) {
			return
		}
	}
}

// ready returns the connection of the call's server, if there is one.
func (c *forwardedCall) ready() (conn *upstream.Conn, release func(), ok bool) {
	if l := c.route.link; l != nil {
		return l.conn, func() {}, true
	}
	return c.route.upstream.Ready()
}

// acquire is ready that starts the server if need be.
func (c *forwardedCall) acquire(r *host.Request) (*upstream.Conn, func(), error) {
	return c.session.acquire(r, c.route.upstream, (*lazy.Upstream).Acquire)
}

// gate returns what keeps the call from its server until that knows the roots. Another
// replica holds back the calls of its hosts itself.
func (c *forwardedCall) gate() *ask.Gate {
	if c.route.link != nil {
		return nil
	}
	return c.peer.rootsAsked.Gate()
}

// awaitTurn waits until the calls before this one have left the queue, and follows a reload
// to the upstream that has taken the place of the call's. It reports false if the request
// ends before: then the call has failed.
func (c *forwardedCall) awaitTurn(r *host.Request, t *ticket) bool {
	ctx, cancel := c.agg.work.ContextOf(r)
	defer cancel()
	select {
	case <-t.next:
	case <-ctx.Done():
		c.failUnsent(r, r.CutOff(c.route.upstream.Server.Name, transports.NotSent))
		return false
	}
	return !c.followReload(r)
}

// followReload sends the call to the upstream that has taken the place of its own, if one has.
func (c *forwardedCall) followReload(r *host.Request) bool {
	u := c.route.upstream
	now := c.agg.set.Get(u.Server.Name)
	if now == nil || c.route.link != nil || c.agg.set.Has(u) {
		return false
	}
	c.route.upstream = now
	c.reroute(r)
	return true
}

// awaitSlot sends the call when it is the first that waits for a slot and there is one. If its
// server has to be started again, it waits for that in the other queue.
func (c *forwardedCall) awaitSlot(r *host.Request, t *ticket) {
	within := c.route.upstream.Server.Timeout
	if c.Timeout != nil {
		within = *c.Timeout
	}
	if c.expired == nil && within > 0 {
		c.expired = time.After(within)
	}
	var lost <-chan struct{}
	if l := c.route.link; l != nil {
		lost = l.conn.Done()
	}
	ctx, cancel := c.agg.work.ContextOf(r)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			c.failUnsent(r, r.CutOff(c.route.upstream.Server.Name, transports.NotSent))
			return
		case <-c.expired:
			c.failUnsent(r, noSlot(&c.route.upstream.Server, within))
			return
		case <-lost: // which Start says
			c.send(r, c.route.link.conn, func() {})
			return
		case <-t.next:
		}
		if !t.isFirst() {
			continue
		}
		if c.followReload(r) {
			return
		}
		if conn, release, full := c.takeReady(t); !full {
			c.send(r, conn, release)
			return
		}
	}
}

// noSlot is the failure of a call that waited for a slot as long as a call may take.
func noSlot(server *schema.Server, within time.Duration) error {
	return &transports.Failure{Upstream: server.Name, Code: transports.CodeOverloaded, Outcome: transports.NotSent,
		Cause: fmt.Errorf("as many calls as its \"max_calls\" (%d) were in flight for %v", server.MaxCalls, within),
		Hint:  `call again when others have ended, or raise its "max_calls" or "timeout"`}
}
