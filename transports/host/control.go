package host

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// isControl reports whether the SDK's server answers a method. For any other method it
// could only lose data.
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

// requestKey is the key under which a request of the control plane carries its *Request, in the
// SDK's token information. Hosts cannot set that.
const requestKey = "dynmcp"

// RequestOf returns the request for which a handler of the control plane was called, as
// the host sent it, nil for a notification. The SDK keeps neither every id nor every member.
// After Reply, which sends the given bytes unchanged, the answer of the SDK has no effect.
func RequestOf(req mcp.Request) *Request {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	r, _ := extra.TokenInfo.Extra[requestKey].(*Request)
	return r
}

// A controlConn is the part of a host's traffic that the SDK's server sees. Requests get
// ids of our own, because the SDK cannot represent every id that a host may use; the
// original bytes are restored on the way out.
type controlConn struct {
	session *Session
	closed  chan struct{}
	once    sync.Once
	more    chan struct{} // holds one token while the queue may hold messages
	waiting atomic.Int64  // number of messages in queue

	connecting sync.Once          // with the first message, which many sessions over HTTP never have
	sdk        *mcp.ServerSession // set by connecting

	mu       sync.Mutex
	queue    []jsonrpc.Message // messages that the SDK has not read yet
	lastID   int64
	requests map[int64]sentRequest
}

// A sentRequest is a request of the host, and the message in which the SDK got it. The SDK may hold a
// message until the next one.
type sentRequest struct {
	*Request
	message *jsonrpc.Request
}

func newControlConn(s *Session) *controlConn {
	return &controlConn{
		session:  s,
		closed:   make(chan struct{}),
		more:     make(chan struct{}, 1),
		requests: map[int64]sentRequest{},
	}
}

func (c *controlConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

func (c *controlConn) SessionID() string { return c.session.id }

func (c *controlConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (c *controlConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		c.mu.Lock()
		if len(c.queue) > 0 {
			m := c.queue[0]
			c.queue[0] = nil // else the array holds it
			c.queue = c.queue[1:]
			c.mu.Unlock()
			if c.waiting.Add(-1) == maxControl { // from here on there is room again
				c.session.mu.Lock()
				c.session.room.Broadcast()
				c.session.mu.Unlock()
			}
			return m, nil
		}
		c.mu.Unlock()
		select {
		case <-c.more:
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *controlConn) Write(_ context.Context, message jsonrpc.Message) error {
	switch m := message.(type) {
	case *jsonrpc.Response:
		id, _ := m.ID.Raw().(int64)
		c.mu.Lock()
		r := c.requests[id]
		delete(c.requests, id)
		c.mu.Unlock()
		if r.Request != nil {
			r.message.Params, r.message.Extra = nil, nil
			r.Reply(m.Result, controlError(m.Error))
		}
	case *jsonrpc.Request:
		c.session.Notify(m.Method, m.Params)
	}
	return nil
}

// end closes the connection and waits for the server, if it was ever started.
func (c *controlConn) end() {
	c.Close()
	c.connecting.Do(func() {})
	if c.sdk != nil {
		_ = c.sdk.Wait() // ends because the connection is closed
	}
}

func (c *controlConn) request(r *Request) {
	m := &jsonrpc.Request{Method: r.Method, Params: withoutLooks(r), Extra: &mcp.RequestExtra{
		TokenInfo: &auth.TokenInfo{Extra: map[string]any{requestKey: r}},
	}}
	c.mu.Lock()
	c.lastID++
	r.sdkID = c.lastID
	c.requests[r.sdkID] = sentRequest{r, m}
	c.mu.Unlock()
	var err error
	if m.ID, err = jsonrpc.MakeID(float64(r.sdkID)); err != nil {
		r.Reply(nil, err)
		return
	}
	if !c.enqueue(m) {
		r.Reply(nil, c.session.cutOff(transports.NotSent))
	}
}

func (c *controlConn) notify(method string, params json.RawMessage) {
	c.enqueue(&jsonrpc.Request{Method: method, Params: params})
}

// enqueue queues a message for the server. It returns false if the connection is closed.
func (c *controlConn) enqueue(m jsonrpc.Message) bool {
	select {
	case <-c.closed:
		return false
	default:
	}
	c.connecting.Do(func() {
		var err error
		if c.sdk, err = c.session.opts.Control.Connect(context.Background(), c, nil); err != nil {
			c.session.log.Error("the control plane does not start", "err", err)
		}
	})
	if c.sdk == nil {
		return false
	}
	c.mu.Lock()
	c.queue = append(c.queue, m)
	c.mu.Unlock()
	c.waiting.Add(1)
	select {
	case c.more <- struct{}{}:
	default:
	}
	return true
}

// controlError adds the missing code to errors of the SDK. An error with a code may be wrapped.
func controlError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code != 0 {
		return &wire.Error{Code: e.Code, Message: err.Error(), Data: e.Data}
	}
	return &wire.Error{Code: wire.CodeInvalidRequest, Message: err.Error()}
}
