package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// A Request is a request of the host that is not answered yet. It is answered
// or cancelled once; what comes later has no effect.
type Request struct {
	ID      json.RawMessage // as it was sent; nil of one refused because another has it
	Method  string
	Params  json.RawMessage // of a tools/call: lent until HandleRequest returns, see Own
	Outline *wire.Outline   // of Params as they came, nil of others
	Meta    json.RawMessage // the _meta of Params, nil if absent
	Era     transports.Era  // which one it was made in
	Peer    transports.Peer // the host, for what belongs to this request
	Via     any             // what the edge gave to Session.Receive with it

	Number   int64 // in the order in which requests came; the sessions' owner sets it
	Ready    bool  // what it starts has been started: its session, the log level it asks for
	Repeated bool  // after a login that somebody had just made
	NoOffer  bool  // of a login: its host had one for it already
	Counted  bool  // how it ended was told to who observes

	// Respond writes the answer, once. The session sets it.
	Respond func(r *Request, result json.RawMessage, err error)

	session *Session
	shortID [24]byte                  // where an ID lies that is no longer
	pieces  [wire.ResultPieces][]byte // where those of the answer lie
	sdkID   int64                     // its id on the control plane, 0 on the data plane
	batch   *batch                    // it came in, nil where it came by itself

	mu       sync.Mutex
	ended    bool
	draining bool // we end: it is to be answered now
	onCancel func(reason json.RawMessage)
}

// Own gives the request params of its own. Who needs them after HandleRequest has
// returned calls it before that.
func (r *Request) Own() { r.Params, r.Outline = bytes.Clone(r.Params), nil }

// Notify implements transports.Peer: it sends a notification that belongs to the
// request, such as its progress.
func (r *Request) Notify(method string, params json.RawMessage) { r.session.notify(r, method, params) }

// Request implements transports.Peer: it sends the host a request that belongs
// to this one.
func (r *Request) Request(ctx context.Context, method string, params json.RawMessage) func() (json.RawMessage, error) {
	return r.session.request(ctx, r, method, params)
}

// Reply answers the request; an error that is a *wire.Error goes out as it is.
func (r *Request) Reply(result json.RawMessage, err error) {
	if _, first := r.end(); first {
		r.Respond(r, result, err)
	}
}

// Cancel ends the request without an answer and tells the goroutine that works on it.
// reason, raw JSON, may be nil.
func (r *Request) Cancel(reason json.RawMessage) {
	if onCancel, first := r.end(); first && onCancel != nil {
		onCancel(reason)
	}
}

// Inner returns a request for a part of what r asks, such as a call that is an
// argument of r. It has the host and the era of r, what belongs to it goes to the host
// under r, and it is cancelled and drained with r. answer gets what it is
// answered with, once, on the goroutine that answers; the result may be lent.
func (r *Request) Inner(method string, params json.RawMessage, answer func(result json.RawMessage, err error)) *Request {
	inner := &Request{
		ID: r.ID, Method: method, Params: params, Meta: bytes.Clone(wire.Get(params, "_meta")), Era: r.Era, Peer: r.Peer, Ready: true, Number: r.Number, session: r.session,
		Respond: func(_ *Request, result json.RawMessage, err error) { answer(result, err) },
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.onCancel
	inner.ended, inner.draining = r.ended, r.draining
	r.onCancel = func(reason json.RawMessage) {
		if before != nil {
			before(reason)
		}
		if r.hasEnded() {
			inner.Cancel(reason)
		} else {
			inner.drain()
		}
	}
	return inner
}

func (r *Request) hasEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

func (r *Request) end() (onCancel func(json.RawMessage), first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = !r.ended
	r.ended = true
	return r.onCancel, first
}

// OnCancel has f called if the request is cancelled from now on, in the place
// of a function given before. f is called as well when the session ends while the
// request is in flight; then the request can still be answered, and is to be.
// OnCancel reports false, and does not keep f, if the request is no longer live: it was
// answered or cancelled, or the session ends.
func (r *Request) OnCancel(f func(reason json.RawMessage)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	live := !r.ended && !r.draining
	if live {
		r.onCancel = f
	}
	return live
}

// drain tells the goroutine that works on the request that the session ends.
func (r *Request) drain() {
	r.mu.Lock()
	onCancel, ended := r.onCancel, r.ended
	r.draining = true
	r.mu.Unlock()
	if !ended && onCancel != nil {
		onCancel(nil)
	}
}

// ErrEndedByHost is the cause of a context for End where the host wants no more of its
// session, while we go on.
var ErrEndedByHost = errors.New("the session was ended by its host")

// cutOff returns the error that answers a request which the end of the session
// interrupts, of which it is not known which upstream it is for.
func (s *Session) cutOff(outcome transports.Outcome) *wire.Error {
	e := transports.ShuttingDown(outcome)
	if s.endedByHost.Load() {
		e.Message = ErrEndedByHost.Error()
	}
	return e
}

// CutOff returns the failure of a call that the end of its session interrupts.
func (r *Request) CutOff(upstream string, outcome transports.Outcome) *transports.Failure {
	f := transports.CutOff(upstream, outcome)
	if r.session != nil && r.session.endedByHost.Load() { // that of a program's own call has none
		f.Cause = ErrEndedByHost
		if outcome == transports.NotSent {
			f.Hint = "call again in a new session"
		}
	}
	return f
}
