package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"dynmcp/internal/wire"
	"dynmcp/transports"
)

// A Call is one request to an upstream. It may be started again, on another
// connection, when it has ended in any way but by Cancel.
type Call struct {
	Method string
	Params json.RawMessage // as the host sent them; may be nil
	// NoToken says that Params are known to hold no progress token.
	NoToken bool

	// Done takes the result or the error, exactly once. It is called in the
	// order of the wire and must not block.
	Done func(result json.RawMessage, err error)

	// Peer takes the call's progress, under the token that Params carried, and
	// what the upstream sends on the call's own stream, where the transport
	// has one a call (HTTP). Nil wants no progress and leaves the rest to the
	// connection's peer.
	Peer transports.Peer

	unlimited bool      // the server's timeout does not hold
	token     wire.Span // of the host, where Params have one

	// Guarded by the mutex of the connection while the call is in flight on it.
	id    int64
	sent  bool // it went out
	kept  bool // it certainly did not
	timer *time.Timer
	abort context.CancelFunc // ends the call's own stream

	withdrawn atomic.Bool     // by Cancel, or by the timeout
	reason    json.RawMessage // set before withdrawn is
}

// Start sends a request. Done is called whatever happens, also where Start
// cannot send; Cancel is for whoever no longer wants the answer.
func (c *Conn) Start(call *Call) {
	if c.stateless.Load() {
		call.Params = c.dressed(call.Params)
	}
	if call.Peer != nil && !call.NoToken {
		call.token = wire.Find(call.Params, "_meta", "progressToken")
	}
	id, err := c.register(call)
	if err != nil {
		call.Done(nil, err)
		return
	}
	if err := c.sendCall(call, id); err != nil {
		c.notSent(id, err)
		return
	}
	if !c.setSent(id, call) && call.withdrawn.Load() {
		// The cancel overtook the request; now there is something to cancel.
		c.tellCancelled(id, call)
	}
}

func (c *Conn) register(call *Call) (id int64, err error) {
	if size := len(call.Params); size > c.server.MaxMessageBytes {
		return 0, c.fail(transports.CodeTooLarge, transports.NotSent, fmt.Errorf("a request of %d bytes is %w", size, errTooLarge))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.failure(c.err, transports.NotSent)
	}
	c.lastID++
	c.calls[c.lastID] = call
	call.id, call.sent, call.kept, call.timer, call.abort = c.lastID, false, false, nil, nil
	if t := c.server.Timeout; t > 0 && !call.unlimited {
		// Where there is no goroutine any more, the connection has ended the call.
		call.timer = time.AfterFunc(t, func() { c.spawn(func() { c.expire(call, t) }) })
	}
	return call.id, nil
}

// setSent notes that a call is on its way; false is that it has ended.
func (c *Conn) setSent(id int64, call *Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[id] != call {
		return false
	}
	call.sent = true
	return true
}

// sendCall sends the request of a call.
func (c *Conn) sendCall(call *Call, id int64) error {
	params, n := call.pieces(id)
	if c.lines != nil {
		return c.lines.SendRequest(maxQueued, id, call.Method, params[:n]...)
	}
	return c.send(call, wire.Request(id, call.Method, params[:n]...)...)
}

// pieces returns the call's params with our id in the place of the host's
// progress token: tokens of several hosts would collide, and the call's id is
// unique already.
func (call *Call) pieces(id int64) (params [3][]byte, n int) {
	switch {
	case len(call.Params) == 0:
		return params, 0
	case call.token.Len == 0:
		params[0] = call.Params
		return params, 1
	}
	at, end := call.token.Off, call.token.Off+call.token.Len
	return [3][]byte{call.Params[:at], strconv.AppendInt(nil, id, 10), call.Params[end:]}, 3
}

// notSent ends a call that could not be sent. That a child has ended is first
// seen as a pipe that broke; why it has is known a moment later, and says more.
func (c *Conn) notSent(id int64, err error) {
	var failure *transports.Failure
	switch {
	case errors.As(err, &failure):
		c.finish(id, nil, failure)
	case errors.Is(err, wire.ErrFull):
		c.finish(id, nil, c.fail(transports.CodeOverloaded, transports.NotSent, err))
	default:
		c.mu.Lock()
		if call := c.calls[id]; call != nil {
			call.kept = true
		}
		c.mu.Unlock()
		c.spawn(func() { // where it cannot, the connection and its calls have ended
			await(c.done, exitGrace)
			c.finish(id, nil, c.failure(err, transports.NotSent))
		})
	}
}

// Cancel withdraws a call: the upstream is told, Done is not called any more.
// reason, raw JSON, may be nil. It reports whether the call was in flight.
func (c *Conn) Cancel(call *Call, reason json.RawMessage) bool {
	c.mu.Lock()
	id, sent, abort := call.id, call.sent, call.abort
	if c.calls[id] != call {
		c.mu.Unlock()
		return false
	}
	c.takeLocked(id)
	call.reason = reason
	call.withdrawn.Store(true)
	c.mu.Unlock()

	if abort != nil {
		defer abort()
	}
	if sent { // otherwise Start sees to it
		c.tellCancelled(id, call)
	}
	return true
}

// tellCancelled tells the upstream that a call was withdrawn, unless it is one
// that opens the session or the end of the call's own stream says it.
func (c *Conn) tellCancelled(id int64, call *Call) {
	if call.Method == "initialize" || call.Method == methodDiscover || c.stateless.Load() && call.abort != nil {
		return
	}
	params := fmt.Appendf(nil, `{"requestId":%d`, id)
	if call.reason != nil {
		params = append(append(params, `,"reason":`...), call.reason...)
	}
	if err := c.Notify("notifications/cancelled", append(params, '}')); err != nil {
		c.log.Debug("cancel not sent", "err", err)
	}
}

func (c *Conn) expire(call *Call, after time.Duration) {
	if c.Cancel(call, json.RawMessage(`"timeout"`)) {
		call.Done(nil, c.fail(transports.CodeTimeout, transports.Unknown, fmt.Errorf("no answer to %s within %s", call.Method, after)))
		if call.Method != "initialize" && call.Method != methodDiscover { // before those are over there is no ping
			c.checkHealth()
		}
	}
}

// Call sends a request and waits for its result. When ctx ends, the call is
// cancelled and ctx's error returned.
func (c *Conn) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	type answer struct {
		result json.RawMessage
		err    error
	}
	answered := make(chan answer, 1)
	call := &Call{Method: method, Params: params}
	call.Done = func(result json.RawMessage, err error) { answered <- answer{result, err} }
	c.Start(call)
	select {
	case a := <-answered:
		return a.result, a.err
	case <-ctx.Done():
		if c.Cancel(call, nil) {
			return nil, ctx.Err()
		}
		a := <-answered
		return a.result, a.err
	}
}

// finish ends the call with this id, and no other.
func (c *Conn) finish(id int64, result json.RawMessage, err error) bool {
	return c.finishOwn(id, nil, result, err)
}

// finishOwn is finish for an answer that may only be that of own, where own is
// not nil. It reports whether the call was in flight.
func (c *Conn) finishOwn(id int64, own *Call, result json.RawMessage, err error) bool {
	c.mu.Lock()
	call := c.calls[id]
	if call == nil || own != nil && call != own {
		c.mu.Unlock()
		return false
	}
	c.takeLocked(id)
	c.mu.Unlock()
	call.Done(result, err)
	return true
}

// take removes a call that is in flight, to be ended by the caller; nil if it is
// not.
func (c *Conn) take(id int64) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[id]
	if call != nil {
		c.takeLocked(id)
	}
	return call
}

func (c *Conn) takeLocked(id int64) {
	if call := c.calls[id]; call.timer != nil {
		call.timer.Stop()
	}
	delete(c.calls, id)
}

// inFlight reports whether the call with this id still waits for its answer.
func (c *Conn) inFlight(id int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[id] != nil
}
