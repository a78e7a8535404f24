package aggregator

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Calls of hosts and of other replicas pass one step before Conn.Start: admit. A call of a host that
// cannot be sent at once joins the queue of its server, whatever it waits for: the start of
// the server, the server's question for the roots, or calls before it. Calls leave the queue
// in the order in which their requests came, also after a reload or a restart. A call that is
// sent again, after a login or a lost session, keeps the number of its request, and so its
// place before later ones.

// A queue holds the calls to one server that wait to be sent. The zero value is ready to use.
type queue struct {
	length atomic.Int32 // of waiting, to be read without the lock

	mu      sync.Mutex
	waiting []*ticket // by number
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
	// A retry runs within the connection that failed. Calls of a link wait for nobody: those
	// before them may wait for the server to move, which it does when its links have ended.
	first := c.peer.record.queue.length.Load() == 0 || c.route.link != nil
	if first && !c.route.retry {
		if conn, release, ok = c.ready(); ok && c.gate() == nil {
			return conn, release, true
		} else if ok {
			release()
		}
	}
	c.clone()
	t := c.peer.record.queue.join(r.Number)
	c.agg.work.Answer(r, func() {
		defer t.leave()
		c.wait(r, t)
	})
	return nil, nil, false
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
			if !c.began.IsZero() {
				c.sent = time.Now()
			}
			c.send(r, conn, release)
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
	u := c.route.upstream
	if now := c.agg.set.Get(u.Server.Name); now != nil && !c.agg.set.Has(u) {
		c.route.upstream = now
		c.reroute(r)
		return false
	}
	return true
}
