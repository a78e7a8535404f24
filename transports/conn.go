package transports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"dynmcp/internal/wire"
	"dynmcp/schema"
)

// A Peer is who an upstream talks to: it takes what the upstream sends unasked.
type Peer interface {
	// Notify takes a notification. It is called in the order of the wire and
	// must not block.
	Notify(method string, params json.RawMessage)
	// Request answers a request; an error that is a *wire.Error reaches the
	// asker as it is. ctx ends when the asker cancels or is gone.
	Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// defaultMaxMessage is the max_message_bytes of an entry that does not say.
const defaultMaxMessage = 16 << 20

// Options are what a Conn needs beside the entry of its server.
type Options struct {
	Peer   Peer         // takes what the upstream sends; nil refuses requests
	Info   Info         // how we introduce ourselves
	Legacy bool         // it is known that the upstream wants the initialize handshake
	Logger *slog.Logger // nil is silent

	// OldHost reports whether the host is of the handshake era. The upstream is
	// then asked for that handshake first, as the host itself would: one that
	// knows both eras can ask the host something in the middle of a call only
	// there, and may refuse the handshake after server/discover. Nil is no.
	OldHost func() bool
}

// Info is an implementation's name and version as the handshake carries them.
type Info struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Hello is what an upstream said of itself in the handshake.
type Hello struct {
	ProtocolVersion string
	Capabilities    json.RawMessage
	ServerInfo      json.RawMessage
	Instructions    string
}

// Has reports whether the upstream advertised a capability, such as "tools".
func (h *Hello) Has(capability string) bool { return wire.Get(h.Capabilities, capability) != nil }

// A Call is one request to an upstream.
type Call struct {
	Method string
	Params json.RawMessage // as the host sent them; may be nil

	// Done takes the result or the error, exactly once. It is called in the
	// order of the wire and must not block.
	Done func(result json.RawMessage, err error)

	// Peer takes the call's progress, under the token that Params carried, and
	// what the upstream sends on the call's own stream, where the transport
	// has one a call (HTTP). Nil wants no progress and leaves the rest to the
	// connection's peer.
	Peer Peer

	id        int64
	unlimited bool   // the server's timeout does not hold
	token     []byte // the host's progress token
	timer     *time.Timer
	abort     context.CancelFunc // ends the call's own stream
}

// A Conn is a connection to one upstream. Its methods may be called from many
// goroutines.
type Conn struct {
	name   string
	server schema.Server
	opts   Options
	log    *slog.Logger
	hello  Hello

	stateless atomic.Bool // the upstream is of the stateless era
	introduce [][2]string // what every request to it says in _meta

	// connect is what has to be done before the first message; may be nil.
	connect func(ctx context.Context) error
	// send sends a message; call is not nil where it is the request of one.
	send func(call *Call, parts ...[]byte) error
	// begin sends the notification that ends the handshake.
	begin func(parts ...[]byte) error
	// stop ends the transport and returns when it is over.
	stop func()
	// stderr returns the last lines of a child's stderr.
	stderr func() string

	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	done    chan struct{} // closed when nothing more will be received
	wg      sync.WaitGroup
	closing sync.Once

	mu     sync.Mutex
	lastID int64
	calls  map[int64]*Call
	asked  map[string]context.CancelFunc // what the upstream asks, by its id
	err    error                         // why the connection ended
	closed bool

	listening *Call                // the stream of a stateless upstream's notifications
	uris      map[string]bool      // resources subscribed to on it
	bindings  map[string][]binding // arguments that go into headers, by tool
}

// Open reaches an upstream: it starts the child, or makes an HTTP connection
// ready. Nothing is sent before Handshake. Close must be called.
func Open(server schema.Server, opts Options) (*Conn, error) {
	c := newConn(server, opts)
	var err error
	switch server.Transport {
	case schema.Stdio:
		err = c.openChild()
	case schema.StreamableHTTP:
		c.openHTTP()
	case schema.SSE:
		c.openSSE()
	default:
		err = c.fail(CodeStartFailed, NotSent, fmt.Errorf("transport %q is not supported", server.Transport))
	}
	if err != nil {
		c.cancel()
		return nil, err
	}
	return c, nil
}

func newConn(server schema.Server, opts Options) *Conn {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if server.MaxMessageBytes == 0 {
		server.MaxMessageBytes = defaultMaxMessage
	}
	c := &Conn{
		name:   server.Name,
		server: server,
		opts:   opts,
		log:    opts.Logger.With("upstream", server.Name),
		stderr: func() string { return "" },
		done:   make(chan struct{}),
		calls:  map[int64]*Call{},
		asked:  map[string]context.CancelFunc{},
		uris:   map[string]bool{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Dial opens an upstream and makes the handshake, declaring capabilities.
func Dial(ctx context.Context, server schema.Server, capabilities json.RawMessage, opts Options) (*Conn, error) {
	c, err := Open(server, opts)
	if err != nil {
		return nil, err
	}
	if err := c.Handshake(ctx, capabilities); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Name returns the upstream's name in the config.
func (c *Conn) Name() string { return c.name }

// Hello returns what the upstream said in the handshake.
func (c *Conn) Hello() *Hello { return &c.hello }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err says why the connection ended, nil while it has not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Stderr returns the last lines the child wrote to stderr, "" where there is
// no child.
func (c *Conn) Stderr() string { return c.stderr() }

// Start sends a request. Done is called whatever happens, also where Start
// cannot send; cancel is for whoever no longer wants the answer.
func (c *Conn) Start(call *Call) {
	if c.stateless.Load() {
		call.Params = c.dressed(call.Params)
	}
	if call.Peer != nil {
		call.token = wire.Get(wire.Get(call.Params, "_meta"), "progressToken")
	}
	if err := c.register(call); err != nil {
		call.Done(nil, err)
		return
	}
	id := strconv.AppendInt(nil, call.id, 10)
	if err := c.send(call, wire.Request(id, wire.Quote(call.Method), call.params(id)...)...); err != nil {
		c.finish(call.id, nil, c.sendFailure(err))
	}
}

func (c *Conn) register(call *Call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.failure(c.err, NotSent)
	}
	c.lastID++
	call.id = c.lastID
	c.calls[call.id] = call
	if t := c.server.Timeout; t > 0 && !call.unlimited {
		call.timer = time.AfterFunc(t, func() { c.expire(call, t) })
	}
	return nil
}

// params returns the pieces of the call's params, with our id in the place of
// the host's progress token: tokens of several hosts would collide, and the
// call's id is unique already.
func (call *Call) params(id []byte) [][]byte {
	switch {
	case len(call.Params) == 0:
		return nil
	case call.token == nil:
		return [][]byte{call.Params}
	}
	at := wire.Offset(call.Params, call.token)
	return [][]byte{call.Params[:at], id, call.Params[at+len(call.token):]}
}

// Cancel withdraws a call: the upstream is told, Done is not called any more.
// reason, raw JSON, may be nil. It reports whether the call was in flight.
func (c *Conn) Cancel(call *Call, reason json.RawMessage) bool {
	if !c.takeCall(call) {
		return false
	}
	c.withdraw(call, reason)
	return true
}

func (c *Conn) withdraw(call *Call, reason json.RawMessage) {
	c.mu.Lock()
	abort := call.abort
	c.mu.Unlock()
	if abort != nil {
		defer abort()
	}
	switch {
	case call.Method == "initialize" || call.Method == methodDiscover:
		return // before a session there is nothing to be told
	case c.stateless.Load() && abort != nil:
		return // the end of the call's stream says it
	}
	params := fmt.Appendf(nil, `{"requestId":%d`, call.id)
	if reason != nil {
		params = append(append(params, `,"reason":`...), reason...)
	}
	if err := c.Notify("notifications/cancelled", append(params, '}')); err != nil {
		c.log.Debug("cancel not sent", "err", err)
	}
}

func (c *Conn) expire(call *Call, after time.Duration) {
	if !c.takeCall(call) {
		return
	}
	c.withdraw(call, json.RawMessage(`"timeout"`))
	call.Done(nil, c.fail(CodeTimeout, Unknown, fmt.Errorf("no answer to %s within %s", call.Method, after)))
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

// Notify sends a notification. The error says that it was not sent; that it
// was does not mean that it arrived.
func (c *Conn) Notify(method string, params json.RawMessage) error {
	return c.send(nil, wire.Notification(wire.Quote(method), params)...)
}

// Close ends the connection: what is in flight fails, the child and its group
// are stopped. It returns when nothing of the connection is left.
func (c *Conn) Close() {
	c.closing.Do(func() {
		c.lose(ErrClosed)
		c.stop()
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		c.wg.Wait()
	})
}

// take removes the call that is to be ended; nil where it has ended already.
func (c *Conn) take(id int64) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.takeLocked(id)
}

// takeCall is take for a call that may not have been sent yet.
func (c *Conn) takeCall(call *Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.takeLocked(call.id) != nil
}

func (c *Conn) takeLocked(id int64) *Call {
	call := c.calls[id]
	if call != nil {
		delete(c.calls, id)
		if call.timer != nil {
			call.timer.Stop()
		}
	}
	return call
}

func (c *Conn) finish(id int64, result json.RawMessage, err error) bool {
	call := c.take(id)
	if call == nil {
		return false
	}
	call.Done(result, err)
	return true
}

// lose ends every call and every question with err, once; the connection is
// dead from here.
func (c *Conn) lose(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	calls := c.calls
	c.calls = map[int64]*Call{}
	c.mu.Unlock()

	c.cancel()
	close(c.done)
	for _, call := range calls {
		if call.timer != nil {
			call.timer.Stop()
		}
		call.Done(nil, c.failure(err, Unknown))
	}
}

// spawn runs f on a goroutine that Close waits for; it reports false where the
// connection is closed already. A panic ends the connection, not the process.
func (c *Conn) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		defer func() {
			if r := recover(); r != nil {
				c.log.Error("panic", "panic", r, "stack", string(debug.Stack()))
				c.lose(fmt.Errorf("internal error: %v", r))
			}
		}()
		f()
	}()
	return true
}

// inFlight reports whether a call still waits for its answer.
func (c *Conn) inFlight(call *Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[call.id] != nil
}

func (c *Conn) sendFailure(err error) error {
	var failure *Failure
	switch {
	case errors.As(err, &failure):
		return failure
	case errors.Is(err, wire.ErrFull):
		return c.fail(CodeOverloaded, NotSent, err)
	}
	return c.failure(err, NotSent)
}
