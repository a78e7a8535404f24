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

// Servers ask for the roots as soon as they are initialized, and some restrict themselves to the
// roots: before the answer they serve more. A host that is connected to such a server directly
// has answered long before its first call. Through dynmcp the first call often starts the
// server, and a host of the stateless era cannot be asked before it calls. So no call is sent
// to an upstream whose question for the roots is open:
//
//	a host of the handshake era is asked at once; its calls wait for the answer
//	a host of the stateless era is asked with the result of its first call, which is
//	not sent before its next request brings the roots
//
// The server needs a moment to apply the answer, for which the protocol has no signal: calls wait
// for that too (settle).

const (
	// RootsWait is how long a host of the handshake era may take to answer.
	RootsWait = 30 * time.Second
	// minRootsWait is how long servers wait for an answer at least. A later one is announced
	// as a change: not every server says that it has given up.
	minRootsWait = 20 * time.Second
	// reaskWait is how long an upstream that has given up may take to ask again.
	reaskWait = 10 * time.Second
	// settlePause is the least time for an upstream to apply the roots; one that answers pings
	// slowly has settleFactor times the time of a ping.
	settlePause  = 250 * time.Millisecond
	settleFactor = 4
	settlePing   = 5 * time.Second
	// streamPause is how long calls wait for the question of a server over HTTP: it arrives on
	// a stream that is opened after the handshake.
	streamPause = 250 * time.Millisecond
)

// Connected is an upstream.
type Connected interface {
	// Conn returns the connection, nil if there is none.
	Conn() *upstream.Conn
}

// Roots are an upstream's questions for the roots, and the gate that holds back calls while one
// is open.
type Roots struct {
	Work *work.Group
	Of   Connected

	gate atomic.Pointer[Gate]
	last atomic.Pointer[json.RawMessage] // sent to the connection
}

// A Gate holds back the calls to an upstream because of one question for the roots.
type Gate struct {
	roots *Roots
	since time.Time
	over  chan struct{} // closed when calls need not wait for this any more

	// question is for hosts of the stateless era, nil if a host was asked directly.
	question *Question

	mu       sync.Mutex
	answered bool            // question is
	ready    json.RawMessage // the answer, for an upstream that is expected to ask again
	err      error           // why waiting calls cannot be sent
	ended    bool
}

// Gate returns the gate that holds back calls to the upstream, nil if there is none.
func (u *Roots) Gate() *Gate { return u.gate.Load() }

// closeGate holds back calls to the upstream from now on.
func (u *Roots) closeGate(q *Question) *Gate {
	g := &Gate{roots: u, question: q, since: time.Now(), over: make(chan struct{})}
	if q != nil {
		q.gate = g
	}
	u.gate.Store(g)
	return g
}

// AwaitStream holds back calls to an upstream over HTTP that has just been connected and may be
// about to ask.
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

// Forget ends the questions of the upstream's last connection.
func (u *Roots) Forget() {
	if g := u.gate.Swap(nil); g != nil {
		g.end(nil)
	}
	u.last.Store(nil)
}

// ready returns the roots from a host for an upstream that was expected to ask again; nil if there
// are none.
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

// Request answers the upstream's question for the roots with the result of ask, and holds back calls
// meanwhile. ctx is that of the question: it ends when the answer was sent. q is the question if
// ask waits for the next request of a host.
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
			return NoHost("the host did not answer within %v", RootsWait)()
		}
		return roots, err
	})
}

// RequestReplica is Request if another replica answers, which holds back the calls of its own
// hosts; those of hosts here have to wait as well.
func (u *Roots) RequestReplica(ctx context.Context, ask func(context.Context) func() (json.RawMessage, error)) func() (json.RawMessage, error) {
	g, answer := u.closeGate(nil), ask(ctx)
	return func() (json.RawMessage, error) {
		u.Work.Go(func() {
			defer g.end(nil)
			<-ctx.Done()
			select {
			case <-time.After(settlePause):
			case <-u.Work.Context().Done():
			}
		})
		return answer()
	}
}

// watch waits for the answer and continues accordingly.
func (g *Gate) watch(ctx context.Context, answer func() (json.RawMessage, error)) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) {
		roots, err := answer()
		var cancelled *transports.Cancelled
		switch {
		case ctx.Err() == nil:
			g.roots.Work.Go(func() { g.settle(ctx, roots) })
		case g.question != nil && errors.As(context.Cause(ctx), &cancelled):
			if err == nil { // it arrived at the same moment
				g.question.Answer(roots, nil)
			}
			g.roots.Work.Go(g.giveUp)
		default: // the upstream ended, or gave up on a host that could have answered
			g.end(nil)
		}
		return roots, err
	}
}

// Question returns the question for a host of the stateless era, nil if there is none.
func (g *Gate) Question() *Question {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.answered {
		return nil
	}
	return g.question
}

// Over is closed when calls need not wait for the gate any more. Err then returns why they cannot
// be sent, nil if they can.
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

// settle lets calls pass when the upstream has had time to apply the roots, even if they have not
// changed.
func (g *Gate) settle(ctx context.Context, roots json.RawMessage) {
	defer g.end(nil)
	<-ctx.Done()
	u := g.roots
	last, conn := u.last.Load(), u.Of.Conn()
	if roots == nil || last != nil && bytes.Equal(*last, roots) {
		return
	}
	if conn != nil && g.question != nil && time.Since(g.since) > minRootsWait && g.reask(conn, roots) {
		return // the gate of the new question stays
	}
	u.last.Store(&roots)
	took := g.ping(conn)
	select {
	case <-time.After(max(settlePause, settleFactor*took)):
		g.ping(conn)
	case <-u.Work.Context().Done():
	}
}

func (g *Gate) ping(conn *upstream.Conn) (took time.Duration) {
	if conn == nil { // it is being listed
		return 0
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(g.roots.Work.Context(), settlePing)
	defer cancel()
	_, _ = conn.Call(ctx, "ping", nil) // only the time matters
	return time.Since(began)
}

// giveUp waits for the answer to a question that the upstream no longer waits for, and makes it
// ask again.
func (g *Gate) giveUp() {
	var roots json.RawMessage
	select {
	case a := <-g.question.answered:
		roots = a.result
	case <-g.over:
		return
	case <-g.roots.Work.Context().Done():
		return
	}
	conn := g.roots.Of.Conn()
	if conn == nil || g.reask(conn, roots) {
		g.end(nil)
		return
	}
	// It serves more than the roots allow, and did not ask again: the next call retries.
	next := &Gate{roots: g.roots, since: g.since, over: make(chan struct{}), question: NewQuestion("roots/list", nil)}
	next.question.gate = next
	if g.roots.gate.CompareAndSwap(g, next) {
		g.roots.Work.Go(next.giveUp)
	}
	g.end(errors.New("it asked for the host's roots, gave up waiting, and does not ask again when told that they have changed"))
}

// reask announces that the roots have changed and reports whether the upstream asked for them.
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
	case <-g.roots.Work.Context().Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ready = nil
	return g.ended
}
