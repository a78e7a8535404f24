package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// maxNesting is how many levels a result may nest: recursive readers give up at 1,000 or so,
// and would lose the connection to all servers. A message has one level more.
const (
	maxNesting      = 512
	maxMessageDepth = 1 + maxNesting
)

// receive handles one message of the upstream, in the order of the wire. own is the call on
// whose stream it came, nil if the stream is shared. Bytes that are not UTF-8 are replaced:
// a host that decodes strictly would otherwise lose all servers.
func (c *Conn) receive(m wire.Message, own *Call) {
	if c.opts.Tap.Watched() {
		c.opts.Tap.Show(c.peer, true, m.Raw)
	}
	if !utf8.Valid(m.Raw) {
		m = c.invalid.replace(m)
	}
	switch {
	case len(m.Raw) > 0 && m.Raw[0] == '[':
		c.receiveBatch(m.Raw, own)
	case m.IsRequest():
		c.requests.handle(m, own)
	case m.IsNotification():
		c.handleNotification(m, own)
	default:
		c.handleResponse(m, own)
	}
}

func (c *Conn) receiveBatch(raw []byte, own *Call) {
	for element := range wire.Elements(raw) {
		if part, err := wire.ParseWithin(element, maxMessageDepth); err != nil {
			c.handleFault(wire.NewFault(bytes.TrimLeft(element, "[ \t"), err)) // of a nested batch, only the first message is considered
		} else {
			c.receive(part, own)
		}
	}
}

// invalidText counts messages with bytes that are not UTF-8.
type invalidText struct {
	log   *slog.Logger
	count atomic.Int64
}

// replace returns a message or batch with U+FFFD in place of each run of bytes that is not
// UTF-8. They are in strings: JSON allows them nowhere else.
func (t *invalidText) replace(m wire.Message) wire.Message {
	if t.count.Add(1) == 1 { // end logs the final count
		t.log.Warn("a message is not UTF-8: its invalid bytes are replaced", "method", m.Method, "id", string(m.ID))
	}
	text := bytes.ToValidUTF8(m.Raw, []byte("\uFFFD"))
	if m, err := wire.Parse(text); err == nil {
		return m
	}
	return wire.Message{Raw: text} // a batch
}

// handleResponse ends the call that a response answers. On a call's own stream only that call
// can be answered. If a response has both a result and an error, the error counts.
func (c *Conn) handleResponse(m wire.Message, own *Call) {
	id, ok := transports.ParseID(m.ID)
	var err error
	switch {
	case !ok:
	case m.Error != nil && string(m.Error) != "null":
		if c.onReplica && wire.Get(m.Raw, transports.MemberReplica) != nil {
			err = transports.ReadFailure(c.server.Name, wire.Get(m.Raw, transports.MemberReplica))
		} else {
			err = c.refusal(wire.ParseError(bytes.Clone(m.Error)))
		}
	case m.Result == nil:
		err = c.newFailure(transports.CodeProtocol, transports.Unknown, errors.New("the answer has neither a result nor an error"))
	}
	var call *Call
	if ok {
		call = c.calls.take(id, own)
	}
	if call == nil {
		c.log.Debug("answer without a call in flight", "id", string(m.ID))
		return
	}
	if err != nil {
		m.Outline, m.Result = nil, nil
	}
	if !c.isDynmcp {
		unmarkResult(&m)
	}
	call.Outline = m.Outline
	call.Done(m.Result, err)
}

func (c *Conn) handleNotification(m wire.Message, own *Call) {
	if c.onReplica && c.handleReplica(m) {
		return
	}
	switch m.Method {
	case "notifications/progress":
		c.handleProgress(m.Params)
	case "notifications/cancelled":
		c.requests.cancel(wire.Get(m.Params, "requestId"), &transports.Cancelled{Reason: wire.Get(m.Params, "reason")})
	case "notifications/subscriptions/acknowledged":
		c.subscriptions.acknowledge(m, own)
	default:
		params := m.Params
		if c.stateless.Load() {
			c.subscriptions.acknowledge(m, own)
			params = transports.DeleteMeta(params, transports.MetaSubscriptionID) // the id of our own subscription
		}
		if peer := c.peerOf(own); peer != nil {
			peer.Notify(m.Method, params)
		}
	}
}

// handleProgress delivers progress to a call, under the host's token, and restarts its timeout.
func (c *Conn) handleProgress(params json.RawMessage) {
	token := wire.Get(params, "progressToken")
	id, ok := transports.ParseID(token)
	if !ok {
		return
	}
	var call *Call
	c.calls.with(id, nil, func(found *Call) {
		if call = found; call.timer != nil && !call.held {
			call.timer.Reset(call.within(c.server.Timeout))
		}
	})
	if task, ok := c.tasks.of(id); call == nil && ok {
		task.notify(wire.Set(params, "progressToken", task.token))
		return
	}
	if call == nil || call.token.Len == 0 {
		c.log.Debug("progress without a call in flight", "token", string(token))
		return
	}
	call.Peer.Notify("notifications/progress", wire.Set(params, "progressToken", call.hostToken))
}

func (c *Conn) peerOf(own *Call) transports.Peer {
	if own != nil && own.Peer != nil {
		return own.Peer
	}
	return c.opts.Peer
}

// handleFault reports a line that is not a message, and fails the call it would
// have answered.
func (c *Conn) handleFault(f *wire.Fault) {
	code := int64(transports.CodeProtocol)
	if f.TooBig {
		code = transports.CodeTooLarge
	}
	for _, id := range f.Answers() {
		n, ok := transports.ParseID(id)
		if ok && !f.Cut && c.calls.fail(n, c.newFailure(code, transports.Executed, unreadable(f.Err))) { // if cut, the end of the stream is more specific
			return
		}
	}
	noteStray(c, f.Line)
	if n := c.junk.Add(1); isPowerOfTen(n) { // a server that prints one such line often prints many
		c.log.Warn("not a message", "count", n, "err", f.Err, "text", c.excerpt(f.Line, 120))
	}
}

// noteStray keeps the first line of a program that may not be a server, to show why its start failed.
func noteStray(c *Conn, line []byte) {
	if c.agreed.Load() == nil && c.stray.Load() == nil {
		text := c.excerpt(line, 120)
		c.stray.CompareAndSwap(nil, &text)
	}
}

// unreadable explains why an answer cannot be forwarded.
func unreadable(err error) error {
	if errors.Is(err, wire.ErrTooDeep) {
		return fmt.Errorf("the answer is nested deeper than %d levels", maxNesting)
	}
	return fmt.Errorf("the answer cannot be read: %w", err)
}

// isPowerOfTen reports whether n, which is positive, is a power of ten.
func isPowerOfTen(n int64) bool {
	for n%10 == 0 {
		n /= 10
	}
	return n == 1
}

// unmarkResult removes members of _meta that only dynmcp writes from a result.
func unmarkResult(m *wire.Message) {
	if meta := m.Outline.Get(m.Result, "_meta"); meta != nil {
		if result, changed := transports.UnmarkResult(m.Result, meta); changed {
			m.Outline, m.Result = nil, result
		}
	}
}

// refusal returns the error with which an upstream answers a call, without the mark of dynmcp. If the error refuses the
// version of the connection, and names another one that we support, the upstream was replaced
// by another release: the connection takes no more calls, and the failure is one of not_sent.
func (c *Conn) refusal(err *wire.Error) error {
	agreed := c.agreed.Load()
	if agreed == nil || namedVersion(err, func(version string) bool { return version != *agreed }) == "" ||
		namedVersion(err, func(version string) bool { return version == *agreed }) != "" {
		if c.isDynmcp {
			return err
		}
		return transports.Unmark(err)
	}
	c.retire(errVersionGone) // first: a repeated call must not find the connection usable
	return c.newFailure(transports.CodeProtocol, transports.NotSent, errVersionGone)
}
