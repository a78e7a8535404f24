package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/transports"
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
//	not sent before its next request brings the roots
//
// What the server does with the answer takes a moment, of which the protocol says
// nothing: calls wait for that too (settle).

const (
	// RootsWait is how long a host of the handshake era may take to answer.
	RootsWait = 30 * time.Second
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

// Roots are an upstream's questions for the roots, and the gate that keeps calls from it
// while one is open.
type Roots struct {
	Work *work.Group
	Conn func() *upstream.Conn // the upstream's, nil while absent

	gate atomic.Pointer[Gate]
	last atomic.Pointer[json.RawMessage] // that the connection was given
}

// A Gate keeps calls from an upstream because of one question for the roots.
type Gate struct {
	roots *Roots
	since time.Time
	over  chan struct{} // closed when calls need not wait for this any more

	// question is what hosts of the stateless era have to answer, nil where a host
	// was asked at once.
	question *Question

	mu       sync.Mutex
	answered bool            // question is
	ready    json.RawMessage // the answer, for an upstream that is to ask again
	err      error           // why calls that waited cannot be sent
	ended    bool
}

// Gate returns what keeps calls from the upstream, nil if nothing does.
func (u *Roots) Gate() *Gate { return u.gate.Load() }

// closeGate keeps calls from the upstream from now on.
func (u *Roots) closeGate(q *Question) *Gate {
	g := &Gate{roots: u, question: q, since: time.Now(), over: make(chan struct{})}
	if q != nil {
		q.gate = g
	}
	u.gate.Store(g)
	return g
}

// AwaitStream keeps calls from an upstream over HTTP that has just been connected and may
// be about to ask.
func (u *Roots) AwaitStream(conn *upstream.Conn) {
	g := &Gate{roots: u, over: make(chan struct{})}
	if u.gate.CompareAndSwap(nil, g) {
		u.Work.Go(func() {
			defer g.end(nil)
			select {
			case <-time.After(streamPause):
			case <-conn.Done():
			}
		})
	}
}

// Forget ends what the upstream's last connection has asked.
func (u *Roots) Forget() {
	if g := u.gate.Swap(nil); g != nil {
		g.end(nil)
	}
	u.last.Store(nil)
}

// ready returns the roots that a host has given already to an upstream that was
// to ask again; nil if there are none.
func (u *Roots) ready() json.RawMessage {
	g := u.gate.Load()
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	roots := g.ready
	g.ready = nil
	return roots
}

// Request answers the upstream's question for the roots with what ask returns, and keeps
// calls from it meanwhile. ctx is that of the question: it ends when the answer is on
// its way. q is the question where ask waits for the next request of a host.
func (u *Roots) Request(ctx context.Context, q *Question, ask func(context.Context) func() (json.RawMessage, error)) func() (json.RawMessage, error) {
	if roots := u.ready(); roots != nil {
		before := u.gate.Load()
		g := u.closeGate(nil)
		before.end(nil)
		return g.watch(ctx, func() (json.RawMessage, error) { return roots, nil })
	}
	g := u.closeGate(q)
	if q != nil {
		return g.watch(ctx, ask(ctx))
	}
	waiting, cancel := context.WithTimeoutCause(ctx, RootsWait, fmt.Errorf("no answer within %v", RootsWait))
	answer := ask(waiting)
	return g.watch(ctx, func() (json.RawMessage, error) {
		defer cancel()
		roots, err := answer()
		if waiting.Err() != nil && ctx.Err() == nil {
			return Refused("the host did not answer within %v", RootsWait)()
		}
		return roots, err
	})
}

// RequestReplica is Request where another replica answers, which keeps the calls of its
// hosts back itself; those of hosts here have to wait as well.
func (u *Roots) RequestReplica(ctx context.Context, ask func(context.Context) func() (json.RawMessage, error)) func() (json.RawMessage, error) {
	g, answer := u.closeGate(nil), ask(ctx)
	return func() (json.RawMessage, error) {
		u.Work.Go(func() {
			defer g.end(nil)
			<-ctx.Done()
			select {
			case <-time.After(settlePause):
			case <-u.Work.Done():
			}
		})
		return answer()
	}
}

// watch waits for the answer and goes on accordingly.
func (g *Gate) watch(ctx context.Context, answer func() (json.RawMessage, error)) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) {
		roots, err := answer()
		var cancelled *transports.Cancelled
		switch {
		case ctx.Err() == nil:
			g.roots.Work.Go(func() { g.settle(ctx, roots) })
		case g.question != nil && errors.As(context.Cause(ctx), &cancelled):
			if err == nil { // it came in the same moment
				g.question.Answer(roots, nil)
			}
			g.roots.Work.Go(g.giveUp)
		default: // it ended, or gave up on a host that could have answered
			g.end(nil)
		}
		return roots, err
	}
}

// Question returns what a host of the stateless era has to answer, nil if there is
// nothing (more).
func (g *Gate) Question() *Question {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.answered {
		return nil
	}
	return g.question
}

// Over is closed when calls need not wait for the gate any more. Err says then why they
// cannot be sent, nil if they can.
func (g *Gate) Over() <-chan struct{} { return g.over }

func (g *Gate) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// end lets calls pass, or fail with err.
func (g *Gate) end(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return
	}
	g.ended, g.err = true, err
	g.roots.gate.CompareAndSwap(g, nil)
	close(g.over)
}

// settle lets calls pass when the upstream has had the time to do what follows from
// the roots. That it had those before changes nothing.
func (g *Gate) settle(ctx context.Context, roots json.RawMessage) {
	defer g.end(nil)
	<-ctx.Done()
	u := g.roots
	last, conn := u.last.Load(), u.Conn()
	if roots == nil || last != nil && bytes.Equal(*last, roots) {
		return
	}
	if conn != nil && g.question != nil && time.Since(g.since) > rootsPatience && g.reask(conn, roots) {
		return // the gate of the new question stays
	}
	u.last.Store(&roots)
	took := g.ping(conn)
	select {
	case <-time.After(max(settlePause, settleFactor*took)):
		g.ping(conn)
	case <-u.Work.Done():
	}
}

func (g *Gate) ping(conn *upstream.Conn) (took time.Duration) {
	if conn == nil { // it is being listed
		return 0
	}
	began := time.Now()
	ctx, cancel := g.roots.Work.WithTimeout(settlePing)
	defer cancel()
	_, _ = conn.Call(ctx, "ping", nil) // that it answers is all we want
	return time.Since(began)
}

// giveUp waits for the answer to a question that the upstream waits for no more, and
// has it ask again.
func (g *Gate) giveUp() {
	var roots json.RawMessage
	select {
	case a := <-g.question.answered:
		roots = a.result
	case <-g.over:
		return
	case <-g.roots.Work.Done():
		return
	}
	conn := g.roots.Conn()
	if conn == nil || g.reask(conn, roots) {
		g.end(nil)
		return
	}
	// It serves more than it would, and does not want to know: the next call tries again.
	next := &Gate{roots: g.roots, since: g.since, over: make(chan struct{}), question: NewQuestion("roots/list", nil)}
	next.question.gate = next
	if g.roots.gate.CompareAndSwap(g, next) {
		g.roots.Work.Go(next.giveUp)
	}
	g.end(errors.New("it asked for the host's roots, gave up waiting, and does not ask again when told that they have changed"))
}

// reask announces that the roots have changed and reports whether the upstream asked
// for them.
func (g *Gate) reask(conn *upstream.Conn, roots json.RawMessage) bool {
	g.mu.Lock()
	g.ready = roots
	g.mu.Unlock()
	if err := conn.Notify("notifications/roots/list_changed", nil); err != nil {
		return false
	}
	select {
	case <-g.over: // Request has taken them
		return true
	case <-time.After(reaskWait):
	case <-conn.Done():
	case <-g.roots.Work.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ready = nil
	return g.ended
}
