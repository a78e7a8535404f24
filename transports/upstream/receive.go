package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"dynmcp/internal/wire"
	"dynmcp/transports"
)

// receive handles one message of the upstream, in the order of the wire. own
// is the call on whose stream it came, nil where the stream is shared.
func (c *Conn) receive(m wire.Message, own *Call) {
	if len(m.Raw) > 0 && m.Raw[0] == '[' {
		for element := range wire.Elements(m.Raw) {
			if part, err := wire.Parse(element); err != nil {
				c.fault(&wire.Fault{Line: element, Err: err})
			} else {
				c.receive(part, own)
			}
		}
		return
	}
	switch {
	case m.IsRequest():
		c.answer(m, own)
	case m.IsNotification():
		c.notice(m, own)
	default:
		c.answered(m, own)
	}
}

// answered ends the call that a response belongs to; on the stream of a call
// that is this call. Of an answer with both a result and an error the error
// counts.
func (c *Conn) answered(m wire.Message, own *Call) {
	id, ok := transports.ParseID(m.ID)
	var found bool
	switch {
	case !ok:
	case m.Error != nil && string(m.Error) != "null":
		found = c.finishOwn(id, own, nil, wire.ParseError(m.Error))
	case m.Result != nil:
		found = c.finishOwn(id, own, m.Result, nil)
	default:
		found = c.finishOwn(id, own, nil, c.fail(transports.CodeProtocol, transports.Unknown, errors.New("the answer holds neither a result nor an error")))
	}
	if !found {
		c.log.Debug("answer to nothing in flight", "id", string(m.ID))
	}
}

func (c *Conn) notice(m wire.Message, own *Call) {
	switch m.Method {
	case "notifications/progress":
		c.progress(m.Params)
	case "notifications/cancelled":
		c.mu.Lock()
		cancel := c.asked[string(wire.Get(m.Params, "requestId"))]
		c.mu.Unlock()
		if cancel != nil {
			cancel(&transports.Cancelled{Reason: wire.Get(m.Params, "reason")})
		}
	case "notifications/subscriptions/acknowledged":
	default:
		params := m.Params
		if c.stateless.Load() {
			params = withoutSubscription(params)
		}
		if peer := c.peerOf(own); peer != nil {
			peer.Notify(m.Method, params)
		}
	}
}

// progress gives a call its progress, under the token the host chose.
func (c *Conn) progress(params json.RawMessage) {
	token := wire.Get(params, "progressToken")
	id, ok := transports.ParseID(token)
	if !ok {
		return
	}
	c.mu.Lock()
	call := c.calls[id]
	if call != nil && call.timer != nil {
		call.timer.Reset(c.server.Timeout)
	}
	c.mu.Unlock()
	if call == nil || call.token.Len == 0 {
		c.log.Debug("progress of nothing in flight", "token", string(token))
		return
	}
	call.Peer.Notify("notifications/progress", wire.Set(params, "progressToken", call.token.In(call.Params)))
}

func (c *Conn) peerOf(own *Call) transports.Peer {
	if own != nil && own.Peer != nil {
		return own.Peer
	}
	return c.opts.Peer
}

// answer lets the peer answer what the upstream asks. ping never leaves here.
func (c *Conn) answer(m wire.Message, own *Call) {
	peer := c.peerOf(own)
	switch {
	case m.Method == "ping":
		c.reply(m.ID, json.RawMessage(`{}`), nil)
		return
	case peer == nil:
		c.reply(m.ID, nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("no host takes %q", m.Method)})
		return
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	key := string(m.ID)
	if !c.admit(key, cancel) {
		cancel(nil)
		c.reply(m.ID, nil, &wire.Error{Code: wire.CodeInvalidRequest, Message: fmt.Sprintf("id %s is in flight already, or %d others are", key, maxAsked)})
		return
	}
	answer := peer.Request(ctx, m.Method, m.Params)
	waits := c.spawn(func() {
		defer cancel(nil)
		result, err := answer()
		c.mu.Lock()
		delete(c.asked, key)
		c.mu.Unlock()
		if ctx.Err() == nil {
			c.reply(m.ID, result, err)
		}
	})
	if !waits {
		cancel(nil)
		_, _ = answer() // nobody is left to be told
	}
}

// maxAsked is how many questions of one upstream a host may have to answer at
// the same time.
const maxAsked = 256

func (c *Conn) admit(key string, cancel context.CancelCauseFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked[key] != nil || len(c.asked) >= maxAsked {
		return false
	}
	c.asked[key] = cancel
	return true
}

func (c *Conn) reply(id []byte, result json.RawMessage, err error) {
	parts := wire.Result(id, result)
	if err != nil {
		parts = wire.Failure(id, transports.WireError(err))
	}
	if err := c.send(nil, parts...); err != nil {
		c.log.Debug("answer not sent", "err", err)
	}
}

// fault reports a line that is no message. One that was cut off fails the call
// it would have answered.
func (c *Conn) fault(f *wire.Fault) {
	if n, ok := transports.ParseID(f.Answers()); ok && !f.Cut { // a stream that ended says more itself
		code := int64(transports.CodeProtocol)
		if f.TooBig {
			code = transports.CodeTooLarge
		}
		if c.finish(n, nil, c.fail(code, transports.Executed, fmt.Errorf("the answer cannot be read: %w", f.Err))) {
			return
		}
	}
	c.mu.Lock()
	c.junk++
	n := c.junk
	c.mu.Unlock()
	if isPowerOfTen(n) { // who prints one such line often prints many
		c.log.Warn("not a message", "count", n, "err", f.Err, "text", c.excerpt(f.Line, 120))
	}
}

func isPowerOfTen(n int) bool {
	for n > 1 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}
