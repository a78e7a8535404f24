package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// Start sends a request. Done is always called, even if the request cannot be sent, unless
// Cancel is called before.
func (c *Conn) Start(call *Call) {
	params := wire.ObjectOf(call.Params, call.Arguments)
	if c.stateless.Load() {
		params = declareExtension(c.eraMeta.addTo(params), c.server)
		call.Params, call.Arguments = params.Text, params.Known.In(params.Text)
	}
	if call.Peer != nil && !call.NoToken {
		call.token = params.Find("_meta", "progressToken")
		call.hostToken = bytes.Clone(call.token.In(call.Params))
	}
	id, err := c.register(call)
	if err != nil {
		call.Done(nil, err)
		return
	}
	if c.opts.Tap.Watched() {
		params, n := call.pieces(id)
		c.opts.Tap.Show(c.peer, false, wire.Request(id, call.Method, params[:n]...)...)
	}
	if err := c.link.sendRequest(call, id); err != nil {
		c.notSent(id, err)
		return
	}
	if !c.calls.with(id, call, func(call *Call) { call.sent = true }) && call.withdrawn.Load() {
		// It was cancelled while it was being sent: the upstream is told now, so that the
		// cancellation does not overtake the request.
		c.tellCancelled(id, call)
	}
}

func (c *Conn) register(call *Call) (id int64, err error) {
	if size := len(call.Params); size > c.server.MaxMessageBytes {
		return 0, c.newFailure(transports.CodeTooLarge, transports.NotSent, fmt.Errorf("a request of %d bytes is %w", size, errTooLarge))
	}
	timeout := call.within(c.server.Timeout)
	var expired func()
	if timeout > 0 && !call.unlimited {
		// If no goroutine can be started, the connection has already ended the call.
		expired = func() { c.spawn(func() { c.expire(call, timeout) }) }
	}
	id, err = c.calls.add(call, timeout, expired)
	switch {
	case errors.Is(err, errPendingClosed):
		return 0, c.endFailure(c.Err(), transports.NotSent)
	case err != nil:
		return 0, c.newFailure(transports.CodeOverloaded, transports.NotSent, err)
	}
	return id, nil
}

// notSent ends a call that could not be sent. The end of a child appears first as a broken
// pipe; its exit status, which is more specific, is known a moment later.
func (c *Conn) notSent(id int64, err error) {
	failure, isFailure := errors.AsType[*transports.Failure](err)
	switch {
	case isFailure:
		c.calls.fail(id, failure)
	case errors.Is(err, wire.ErrFull):
		full := fmt.Errorf("%w, and %d MB wait for it", err, maxQueuedRequests>>20)
		c.calls.fail(id, c.newFailure(transports.CodeOverloaded, transports.NotSent, full))
	default:
		c.calls.with(id, nil, func(call *Call) {
			call.Params, call.unsent = bytes.Clone(call.Params), true // it may be sent again, when the caller's params are no longer valid
		})
		c.spawn(func() { // if this is refused, the connection has ended its calls
			waitAtMost(c.done, exitGrace)
			c.calls.fail(id, c.endFailure(withoutPath(err), transports.NotSent))
		})
	}
}

// Cancel withdraws a call and tells the upstream. reason, raw JSON, may be nil.
// It reports whether the call was in flight; if so, Done will not be called.
func (c *Conn) Cancel(call *Call, reason json.RawMessage) bool {
	id, sent, abort, ok := c.calls.withdraw(call, reason)
	if !ok {
		return false
	}
	if abort != nil {
		defer abort()
		c.requests.cancelOf(call, &transports.Cancelled{Reason: reason})
	}
	if sent { // otherwise Start tells it
		c.tellCancelled(id, call)
	}
	return true
}

// tellCancelled tells the upstream that a call was withdrawn, unless the call opens the
// session, or the end of its own stream already tells it.
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

// PauseTimeout pauses the server's timeout for a call in flight, while the upstream waits for a
// host; held false continues it.
func (c *Conn) PauseTimeout(call *Call, held bool) {
	c.calls.pause(call, held, call.within(c.server.Timeout))
}

func (c *Conn) expire(call *Call, after time.Duration) {
	if c.Cancel(call, json.RawMessage(`"timeout"`)) {
		failure := c.newFailure(transports.CodeTimeout, transports.Unknown, fmt.Errorf("no answer to %s within %s", call.Method, after))
		if call.Timeout != nil && failure.Hint == "" {
			failure.Hint = transports.LookFirst + `; if it needs longer, raise the tool's "timeout" in "tool_overrides"`
		}
		call.Done(nil, failure)
		c.health.check()
	}
}

// Call sends a request and waits for its result. When ctx ends, the call is cancelled and
// ctx's error returned. Its deadline, if any, replaces the server's timeout: a start may take longer.
func (c *Conn) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	type answer struct {
		result json.RawMessage
		err    error
	}
	answered := make(chan answer, 1)
	call := &Call{Method: method, Params: params}
	if _, limited := ctx.Deadline(); limited {
		call.Timeout = new(time.Duration)
	}
	call.Done = func(result json.RawMessage, err error) { answered <- answer{bytes.Clone(result), err} }
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
