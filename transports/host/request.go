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

// A Request is an unanswered request of the host. It is answered or cancelled once; later
// attempts have no effect.
type Request struct {
	ID      json.RawMessage // as it was sent; nil if the request is rejected because of a duplicate id
	Method  string
	Params  json.RawMessage // of a tools/call: valid until HandleRequest returns, see CopyParams
	Outline *wire.Outline   // of the original Params, nil for others
	Meta    json.RawMessage // the _meta of Params, nil if absent
	Era     transports.Era  // era of the request
	Peer    transports.Peer // the host, for messages that belong to this request
	Via     any             // value that the edge passed to Session.Receive

	Number   int64 // in the order of arrival; the owner of the sessions sets it
	Ready    bool  // its prerequisites were started: its session, the log level it asks for
	Repeated bool  // repeated after a login that was just made
	NoOffer  bool  // for a login: its host already had an offer
	Counted  bool  // its end was reported to the observer

	// Answer is the outline of the result, if that is the unchanged one of an upstream's answer.
	Answer *wire.Outline

	// Respond writes the answer, once. The session sets it.
	Respond func(r *Request, result json.RawMessage, err error)

	session *Session
	shortID [24]byte                  // memory for a short ID
	pieces  [wire.ResultPieces][]byte // memory for the pieces of the answer
	sdkID   int64                     // its id on the control plane, 0 on the data plane
	batch   *batch                    // the batch it came in, nil if none

	mu       sync.Mutex
	ended    bool
	draining bool // the session ends: it must be answered now
	onCancel func(reason json.RawMessage)
}

// CopyParams copies the params of the request. A handler that needs them after HandleRequest
// returns must call it before.
func (r *Request) CopyParams() { r.Params, r.Outline = bytes.Clone(r.Params), nil }

// Notify implements transports.Peer: it sends a notification that belongs to the request,
// such as its progress.
func (r *Request) Notify(method string, params json.RawMessage) { r.session.notify(r, method, params) }

// Request implements transports.Peer: it sends the host a request that belongs to r.
func (r *Request) Request(ctx context.Context, method string, params json.RawMessage) func() (json.RawMessage, error) {
	return r.session.request(ctx, r, method, params)
}

// Reply answers the request; a *wire.Error is sent unchanged.
func (r *Request) Reply(result json.RawMessage, err error) {
	if _, first := r.end(); first {
		r.Respond(r, result, err)
	}
}

// Cancel ends the request without an answer and calls the function of OnCancel. reason, raw
// JSON, may be nil.
func (r *Request) Cancel(reason json.RawMessage) {
	if onCancel, first := r.end(); first && onCancel != nil {
		onCancel(reason)
	}
}

// Inner returns a request for a part of r, such as a call that is an argument of r. It has
// the host and the era of r. Its messages are sent to the host under r, and it is cancelled
// and drained with r. answer is called once, on the goroutine that answers; its result
// may be valid only during the call.
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

// end marks the request as ended. first is false if it had ended before.
func (r *Request) end() (onCancel func(json.RawMessage), first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = !r.ended
	r.ended = true
	return r.onCancel, first
}

// OnCancel makes f the function that is called if the request is cancelled from now on. It
// replaces an earlier function. f is also called when the session ends while the request is
// in flight; the request can, and should, still be answered then. OnCancel returns false, and
// does not keep f, if the request was answered or cancelled, or the session ends.
func (r *Request) OnCancel(f func(reason json.RawMessage)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	live := !r.ended && !r.draining
	if live {
		r.onCancel = f
	}
	return live
}

// drain tells the goroutine that handles the request that the session ends.
func (r *Request) drain() {
	r.mu.Lock()
	onCancel, ended := r.onCancel, r.ended
	r.draining = true
	r.mu.Unlock()
	if !ended && onCancel != nil {
		onCancel(nil)
	}
}

// ErrEndedByHost is the cause of a context for End if the host ended its session and the
// process continues.
var ErrEndedByHost = errors.New("the session was ended by its host")

// cutOff returns the error for a request that the end of the session interrupts, if its
// upstream is not known.
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
	if r.session != nil && r.session.endedByHost.Load() { // a program's own call has no session
		f.Cause = ErrEndedByHost
		if outcome == transports.NotSent {
			f.Hint = "call again in a new session"
		}
	}
	return f
}
