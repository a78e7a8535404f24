package upstream

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"dynmcp/internal/redact"
	"dynmcp/internal/wire"
	"dynmcp/schema"
	"dynmcp/transports"
)

// defaultMaxMessage is the max_message_bytes of an entry that does not say.
const defaultMaxMessage = 16 << 20

// Options are what a Conn needs beside the entry of its server.
type Options struct {
	Peer   transports.Peer // takes what the upstream sends; nil refuses requests
	Info   Info            // how we introduce ourselves
	Legacy bool            // it is known that the upstream wants the initialize handshake
	Logger *slog.Logger    // nil is silent

	// Redact hides secrets in what failures say and in a child's stderr. Nil
	// hides nothing.
	Redact *redact.Redactor

	// OldHost reports whether the host is of the handshake era. The upstream is
	// then asked for that handshake first, as the host itself would: one that
	// knows both eras can ask the host something in the middle of a call only
	// there, and may refuse the handshake after server/discover. Nil is no.
	OldHost func() bool

	// Env are variables that a child gets whatever its entry says, as NAME=value.
	Env []string

	// Cork holds back what is sent to the upstream and what its messages lead
	// to, while those of one read are handled. Nil is none.
	Cork *wire.Cork

	// Throttle is called by what reads the upstream before it reads on, outside
	// of any hold of Cork. It may block while hosts do not read. Nil is none.
	Throttle func()

	stall time.Duration  // how long an upstream may leave its end unread; 0 is writeStall
	http  httpPatience   // zero is usualPatience
	roots *x509.CertPool // who signs the certificates of upstreams; nil is whom the system trusts
	ping  time.Duration  // how long a ping waits for a sign of life; 0 is pingWait
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
	Rest            json.RawMessage // an object of all else it said
}

// Has reports whether the upstream advertised a capability, such as "tools".
func (h *Hello) Has(capability string) bool { return wire.Get(h.Capabilities, capability) != nil }

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
	// lines is where requests go, each a line; nil where there are none.
	lines *wire.Writer
	// send sends a message; call is not nil where it is the request of one.
	send func(call *Call, parts ...[]byte) error
	// begin sends the notification that ends the handshake.
	begin func(parts ...[]byte) error
	// stop ends the transport and returns when it is over.
	stop func()
	// kill ends a child and all it started at once.
	kill func()
	// stderr returns the last lines of a child's stderr.
	stderr func() string

	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	done    chan struct{} // closed when nothing more will be received
	wg      sync.WaitGroup
	closing sync.Once

	heard    atomic.Int64 // grows with whatever the upstream sends
	checking atomic.Bool  // whether it lives is being found out

	mu     sync.Mutex
	lastID int64
	calls  map[int64]*Call
	asked  map[string]context.CancelCauseFunc // what the upstream asks, by its id
	junk   int                                // lines that were no message
	err    error                              // why the connection ended
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
		err = c.fail(transports.CodeStartFailed, transports.NotSent, fmt.Errorf("transport %q is not supported", server.Transport))
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
	if opts.Throttle == nil {
		opts.Throttle = func() {}
	}
	if opts.stall == 0 {
		opts.stall = writeStall
	}
	if opts.http == (httpPatience{}) {
		opts.http = usualPatience
	}
	if opts.ping == 0 {
		opts.ping = pingWait
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
		kill:   func() {},
		done:   make(chan struct{}),
		calls:  map[int64]*Call{},
		asked:  map[string]context.CancelCauseFunc{},
		uris:   map[string]bool{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
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

// Loss describes why the connection ended, with a child's last words, for a call
// that was not sent. It must have ended.
func (c *Conn) Loss() *transports.Failure { return c.failure(c.Err(), transports.NotSent) }

// Stderr returns the last lines the child wrote to stderr, "" where there is
// no child.
func (c *Conn) Stderr() string { return c.stderr() }

// Notify sends a notification. The error says that it was not sent; that it
// was does not mean that it arrived.
func (c *Conn) Notify(method string, params json.RawMessage) error {
	return c.send(nil, wire.Notification(wire.Quote(method), params)...)
}

// Close ends the connection: what is in flight fails, the child and its group
// are stopped. It returns when nothing of the connection is left.
func (c *Conn) Close() {
	c.closing.Do(func() {
		c.lose(errClosed)
		c.stop()
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		c.wg.Wait()
	})
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
		outcome := transports.Unknown // also where it is being sent at this moment
		if call.kept {
			outcome = transports.NotSent
		}
		call.Done(nil, c.failure(err, outcome))
	}
}

// spawn runs f on a goroutine that Close waits for; it reports false where the
// connection is closed already.
func (c *Conn) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wg.Go(func() { c.guarded(f) })
	return true
}

// guarded runs f; a panic ends the connection, not the process.
func (c *Conn) guarded(f func()) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("panic", "panic", r, "stack", string(debug.Stack()))
			c.lose(fmt.Errorf("internal error: %v", r))
		}
	}()
	f()
}
