package host

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/internal/wire"
	"dynmcp/transports"
)

// The private headers under which a handler of the control plane finds what
// the SDK does not keep.
const (
	idHeader     = "Dynmcp-Request-Id"
	paramsHeader = "Dynmcp-Request-Params"
)

// RawID returns the id, as raw JSON, that the host gave a request of the
// control plane.
func RawID(req mcp.Request) json.RawMessage { return fromHeader(req, idHeader) }

// RawParams returns the params of a request of the control plane as the host
// sent them, nil where there are none.
func RawParams(req mcp.Request) json.RawMessage { return fromHeader(req, paramsHeader) }

func fromHeader(req mcp.Request, name string) json.RawMessage {
	extra := req.GetExtra()
	if extra == nil || extra.Header.Get(name) == "" {
		return nil
	}
	return json.RawMessage(extra.Header.Get(name))
}

// Answer answers a request of the control plane, by the id that the host gave it,
// with these very bytes: the SDK would write them anew. What it answers
// afterwards has no effect.
func (h *Host) Answer(id, result json.RawMessage, err error) {
	h.mu.Lock()
	r := h.requests[string(id)]
	h.mu.Unlock()
	if r != nil && r.sdkID != 0 {
		h.AwaitReader()
		r.Reply(result, err)
	}
}

// isControl reports whether the SDK's server answers a method. All it can do
// with the others is lose data.
func isControl(method string) bool {
	switch method {
	case "initialize", "server/discover", "ping",
		"tools/list", "resources/list", "resources/templates/list", "prompts/list",
		"resources/subscribe", "resources/unsubscribe", "subscriptions/listen",
		"logging/setLevel":
		return true
	}
	return false
}

// A controlConn is the part of a host's traffic that the SDK's server sees.
// Requests get ids of our own, because the SDK cannot keep every id a host may
// use; the host's bytes are put back on the way out.
type controlConn struct {
	host   *Host
	in     chan jsonrpc.Message
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex
	lastID   int64
	requests map[int64]*Request
}

func newControlConn(h *Host) *controlConn {
	return &controlConn{
		host:     h,
		in:       make(chan jsonrpc.Message),
		closed:   make(chan struct{}),
		requests: map[int64]*Request{},
	}
}

// Connect implements mcp.Transport.
func (c *controlConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection.
func (c *controlConn) SessionID() string { return c.host.id }

// Close implements mcp.Connection.
func (c *controlConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// Read implements mcp.Connection.
func (c *controlConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements mcp.Connection.
func (c *controlConn) Write(_ context.Context, message jsonrpc.Message) error {
	switch m := message.(type) {
	case *jsonrpc.Response:
		c.answer(m)
	case *jsonrpc.Request:
		c.host.Notify(m.Method, m.Params)
	}
	return nil
}

func (c *controlConn) request(r *Request) {
	c.mu.Lock()
	c.lastID++
	r.sdkID = c.lastID
	c.requests[r.sdkID] = r
	c.mu.Unlock()
	id, err := jsonrpc.MakeID(float64(r.sdkID))
	if err != nil {
		r.Reply(nil, err)
		return
	}
	taken := c.pass(&jsonrpc.Request{ID: id, Method: r.Method, Params: r.Params, Extra: &mcp.RequestExtra{
		Header: http.Header{idHeader: {string(r.ID)}, paramsHeader: {string(r.Params)}},
	}})
	if !taken {
		r.Reply(nil, transports.ShuttingDown(transports.NotSent))
	}
}

func (c *controlConn) notify(method string, params json.RawMessage) {
	c.pass(&jsonrpc.Request{Method: method, Params: params})
}

// pass reports whether the server takes messages still. It is called on the
// goroutine that reads the host and waits for the server.
func (c *controlConn) pass(m jsonrpc.Message) bool {
	c.host.in.Uncork()
	select {
	case c.in <- m:
		return true
	case <-c.closed:
		return false
	}
}

func (c *controlConn) answer(m *jsonrpc.Response) {
	id, _ := m.ID.Raw().(int64)
	c.mu.Lock()
	r := c.requests[id]
	delete(c.requests, id)
	c.mu.Unlock()
	if r != nil {
		c.host.AwaitReader()
		r.Reply(m.Result, controlError(m.Error))
	}
}

// controlError gives the SDK's errors that carry no code the one they mean. It
// wraps those that do, such as that of a method the stateless era took away.
func controlError(err error) error {
	var e *jsonrpc.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e) || e.Code == 0:
		return &wire.Error{Code: wire.CodeInvalidRequest, Message: err.Error()}
	}
	return &wire.Error{Code: e.Code, Message: err.Error(), Data: e.Data}
}
