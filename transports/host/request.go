package host

import (
	"encoding/json"
	"sync"

	"dynmcp/internal/wire"
	"dynmcp/transports"
)

// A Request is a request to us that is not answered yet. It is answered or
// cancelled once; what comes later has no effect.
type Request struct {
	ID     json.RawMessage // as it was sent; nil where it came over no wire
	Method string
	Params json.RawMessage
	Meta   json.RawMessage // the _meta of Params, nil where there is none
	Modern bool            // of the stateless era (2026-07-28 and later)
	Peer   transports.Peer // takes the request's progress

	sdkID  int64  // its id on the control plane, 0 on the data plane
	batch  *batch // it came in, nil where it came by itself
	answer func(*Request, json.RawMessage, error)

	mu       sync.Mutex
	ended    bool
	hurried  bool // we end: it is to be answered now
	onCancel func(reason json.RawMessage)
}

// NewRequest returns a request that came over no wire: answer is called with
// what it is answered with.
func NewRequest(method string, params json.RawMessage, peer transports.Peer, answer func(json.RawMessage, error)) *Request {
	return &Request{Method: method, Params: params, Meta: wire.Get(params, "_meta"), Peer: peer, answer: func(_ *Request, result json.RawMessage, err error) {
		answer(result, err)
	}}
}

// Reply answers the request; an error that is a *wire.Error goes out as it is.
func (r *Request) Reply(result json.RawMessage, err error) {
	if _, first := r.end(); first {
		r.answer(r, result, err)
	}
}

// Cancel ends the request without an answer and tells who works on it. reason,
// raw JSON, may be nil.
func (r *Request) Cancel(reason json.RawMessage) {
	if onCancel, first := r.end(); first && onCancel != nil {
		onCancel(reason)
	}
}

func (r *Request) end() (onCancel func(json.RawMessage), first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = !r.ended
	r.ended = true
	return r.onCancel, first
}

// Live reports whether the request is worth working on: it was not answered or
// cancelled, and we do not end.
func (r *Request) Live() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.ended && !r.hurried
}

// OnCancel has f called if the request is cancelled from now on, in the place
// of a function given before; also where we end while it is in flight, and then
// it can still be answered, and is to be. It reports false, and does not keep f,
// where the request is live no more.
func (r *Request) OnCancel(f func(reason json.RawMessage)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	live := !r.ended && !r.hurried
	if live {
		r.onCancel = f
	}
	return live
}

// hurry tells who works on the request that we end.
func (r *Request) hurry() {
	r.mu.Lock()
	onCancel, ended := r.onCancel, r.ended
	r.hurried = true
	r.mu.Unlock()
	if !ended && onCancel != nil {
		onCancel(nil)
	}
}
