package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Servers ask for the roots as soon as they are initialized, and some narrow what they
// serve to them: until they have the answer they serve more. A host that is connected
// to such a server directly has answered long before its first call. Through us the
// first call is often the reason why the server starts, and a host of the stateless
// era cannot be asked before it calls. So no call reaches an upstream whose question
// for the roots is open:
//
//	a host of the handshake era is asked at once; its calls wait for the end of that
//	a host of the stateless era is asked with the result of its first call, which is
//	parked without having been sent, and sent when its next request brings the roots
//
// What the server does with the answer takes a moment, of which the protocol says
// nothing: calls wait for that too (settle).

const (
	// rootsWait is how long a host of the handshake era may take to answer.
	rootsWait = 30 * time.Second
	// rootsPatience is how long servers wait for an answer at least. One that comes
	// later is announced as a change: not every server says that it has given up.
	rootsPatience = 20 * time.Second
	// reaskWait is how long an upstream that has given up may take to ask again.
	reaskWait = 10 * time.Second
	// settlePause is the least time an upstream has to do what follows from the roots;
	// one that takes long to answer a ping has settleFactor as much as for that.
	settlePause  = 250 * time.Millisecond
	settleFactor = 4
	settlePing   = 5 * time.Second
	// streamPause is how long calls wait for the question of a server over HTTP: it comes
	// on a stream that is opened after the handshake, beside everything else.
	streamPause = 250 * time.Millisecond
)

// A rootsGate keeps calls from an upstream because of one question for the roots.
type rootsGate struct {
	peer  *peer
	since time.Time
	over  chan struct{} // closed when calls need not wait for this any more

	// question is what hosts of the stateless era have to answer, nil where a host
	// was asked at once.
	question *question

	mu       sync.Mutex
	answered bool            // question is
	ready    json.RawMessage // the answer, for an upstream that is to ask again
	err      error           // why calls that waited cannot be sent
	ended    bool
}

// closeGate keeps calls from the upstream from now on.
func (p *peer) closeGate(q *question) *rootsGate {
	h := &rootsGate{peer: p, question: q, since: time.Now(), over: make(chan struct{})}
	if q != nil {
		q.gate = h
	}
	p.rootsGate.Store(h)
	return h
}

// holdForStream keeps calls from an upstream over HTTP that has just been connected
// and may be about to ask for the roots.
func (p *peer) holdForStream(conn *upstream.Conn) {
	first, _ := p.declaration()
	if conn.Era() != transports.Handshake || p.upstream.Server.Transport == schema.Stdio || wire.Get(first.capabilities, "roots") == nil {
		return
	}
	h := &rootsGate{peer: p, over: make(chan struct{})}
	if p.rootsGate.CompareAndSwap(nil, h) {
		p.agg.work.Go(func() {
			defer h.end(nil)
			select {
			case <-time.After(streamPause):
			case <-conn.Done():
			}
		})
	}
}

// forgetRoots lets go what an upstream's last connection has asked.
func (p *peer) forgetRoots() {
	if h := p.rootsGate.Swap(nil); h != nil {
		h.end(nil)
	}
	p.lastRoots.Store(nil)
}

// readyRoots returns the roots that a host has given already to an upstream that was
// to ask again; nil if there are none.
func (p *peer) readyRoots() json.RawMessage {
	h := p.rootsGate.Load()
	if h == nil {
		return nil
	}
	h.mu.Lock()
	roots := h.ready
	h.ready = nil
	h.mu.Unlock()
	return roots
}

// requestRoots answers an upstream's question for the roots with what ask returns, and
// keeps calls from it meanwhile. ctx is that of the question: it ends when the answer is on
// its way. q is the question where ask waits for the next request of a host.
func (p *peer) requestRoots(ctx context.Context, q *question, ask func(context.Context) func() (json.RawMessage, error)) func() (json.RawMessage, error) {
	if roots := p.readyRoots(); roots != nil {
		before := p.rootsGate.Load()
		h := p.closeGate(nil)
		before.end(nil)
		return h.watch(ctx, func() (json.RawMessage, error) { return roots, nil })
	}
	h := p.closeGate(q)
	if q != nil {
		return h.watch(ctx, ask(ctx))
	}
	waiting, cancel := context.WithTimeoutCause(ctx, rootsWait, fmt.Errorf("no answer within %v", rootsWait))
	answer := ask(waiting)
	return h.watch(ctx, func() (json.RawMessage, error) {
		defer cancel()
		roots, err := answer()
		if waiting.Err() != nil && ctx.Err() == nil {
			return refused("the host did not answer within %v", rootsWait)()
		}
		return roots, err
	})
}

// watch waits for the answer and goes on accordingly.
func (h *rootsGate) watch(ctx context.Context, answer func() (json.RawMessage, error)) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) {
		roots, err := answer()
		var cancelled *transports.Cancelled
		switch {
		case ctx.Err() == nil:
			h.peer.agg.work.Go(func() { h.settle(ctx, roots) })
		case h.question != nil && errors.As(context.Cause(ctx), &cancelled):
			if err == nil { // it came in the same moment
				h.question.answer(roots, nil)
			}
			h.peer.agg.work.Go(h.giveUp)
		default: // it ended, or gave up on a host that could have answered
			h.end(nil)
		}
		return roots, err
	}
}

// ask returns what a host of the stateless era has to answer, nil if there is
// nothing (more).
func (h *rootsGate) ask() *question {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.answered {
		return nil
	}
	return h.question
}

// end lets calls pass, or fail with err.
func (h *rootsGate) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	h.ended, h.err = true, err
	h.peer.rootsGate.CompareAndSwap(h, nil)
	close(h.over)
}

// settle lets calls pass when the upstream has had the time to do what follows from
// the roots. That it had those before changes nothing.
func (h *rootsGate) settle(ctx context.Context, roots json.RawMessage) {
	defer h.end(nil)
	<-ctx.Done()
	p := h.peer
	last, conn := p.lastRoots.Load(), p.upstream.Conn()
	if roots == nil || last != nil && bytes.Equal(*last, roots) {
		return
	}
	if conn != nil && h.question != nil && time.Since(h.since) > rootsPatience && h.reask(conn, roots) {
		return // the hold of the new question goes on
	}
	p.lastRoots.Store(&roots)
	took := h.ping(conn)
	select {
	case <-time.After(max(settlePause, settleFactor*took)):
		h.ping(conn)
	case <-p.agg.ctx.Done():
	}
}

func (h *rootsGate) ping(conn *upstream.Conn) (took time.Duration) {
	if conn == nil { // it is being listed
		return 0
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(h.peer.agg.ctx, settlePing)
	defer cancel()
	_, _ = conn.Call(ctx, "ping", nil) // that it answers is all we want
	return time.Since(began)
}

// giveUp waits for the answer to a question that the upstream waits for no more, and
// has it ask again.
func (h *rootsGate) giveUp() {
	var roots json.RawMessage
	select {
	case a := <-h.question.answered:
		roots = a.result
	case <-h.over:
		return
	case <-h.peer.agg.ctx.Done():
		return
	}
	conn := h.peer.upstream.Conn()
	if conn == nil || h.reask(conn, roots) {
		h.end(nil)
		return
	}
	// It is wider than it would be, and does not want to know: the next call tries
	// again.
	next := &rootsGate{peer: h.peer, since: h.since, over: make(chan struct{})}
	next.question = newQuestion("roots/list", nil)
	next.question.gate = next
	if h.peer.rootsGate.CompareAndSwap(h, next) {
		h.peer.agg.work.Go(next.giveUp)
	}
	h.end(errors.New("it asked for the host's roots, gave up waiting, and does not ask again when told that they have changed"))
}

// reask announces that the roots have changed and reports whether the upstream asked
// for them.
func (h *rootsGate) reask(conn *upstream.Conn, roots json.RawMessage) bool {
	h.mu.Lock()
	h.ready = roots
	h.mu.Unlock()
	if err := conn.Notify("notifications/roots/list_changed", nil); err != nil {
		return false
	}
	select {
	case <-h.over: // requestRoots has taken them
		return true
	case <-time.After(reaskWait):
	case <-conn.Done():
	case <-h.peer.agg.ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready = nil
	return h.ended
}

// awaitRoots waits for the end of a gate, or asks the call's host for the roots. It reports
// false if the call has failed, or waits for the next request of its host.
func (c *forwardedCall) awaitRoots(r *host.Request, h *rootsGate) bool {
	failed := func(cause error) bool {
		c.failUnsent(r, &transports.Failure{Upstream: c.route.upstream.Server.Name, Code: transports.CodeNoHost, Outcome: transports.NotSent, Cause: cause,
			Hint: "it may serve more than the host's roots allow; a restart has it ask anew"})
		return false
	}
	if q := h.ask(); q != nil {
		if lacking := c.lacks("roots/list", nil); lacking != "" {
			return failed(fmt.Errorf("it has asked for the host's roots, and gets no calls without: %s", lacking))
		}
		if r.Era == transports.Stateless {
			c.parkWith(q)
			return false
		}
		answer := c.peer.requestHost(c.agg.ctx, c.session, r.Peer, q.method, q.params)
		c.agg.work.Go(func() { q.answer(answer()) })
	}
	ctx, cancel := c.agg.work.ContextOf(r)
	defer cancel()
	select {
	case <-h.over:
	case <-ctx.Done():
		c.failUnsent(r, transports.CutOff(c.route.upstream.Server.Name, transports.NotSent))
		return false
	}
	h.mu.Lock()
	err := h.err
	h.mu.Unlock()
	return err == nil || failed(err)
}
