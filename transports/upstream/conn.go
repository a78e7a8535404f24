package upstream

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// defaultMaxMessage is the max_message_bytes of an entry that has none.
const defaultMaxMessage = 16 << 20

// Options are what a Conn needs beside the entry of its server.
type Options struct {
	Peer   transports.Peer // takes what the upstream sends; nil refuses requests
	Info   Info            // how we introduce ourselves
	Logger *slog.Logger    // nil is silent

	// Redact hides secrets in what failures say and in a child's stderr. Nil
	// hides nothing.
	Redact *redact.Redactor

	// HandshakeOnly says that the upstream is known to want the initialize
	// handshake: it is not asked whether it speaks the stateless era.
	HandshakeOnly bool

	// HostEra returns the era of the host, false if no host is known. In the
	// handshake era the upstream is asked for that handshake first, as the host
	// itself would: one that speaks both eras can ask the host something in the
	// middle of a call only there, and may refuse the handshake after
	// server/discover. Nil is no host.
	HostEra func() (transports.Era, bool)

	// Login gives HTTP requests their authorization. Zero is what the headers of
	// the config say, and no more.
	Login Login

	// Mark adds what each HTTP request says of who makes it to its headers. Nil is
	// nothing.
	Mark func(http.Header)

	// Env are variables that a child gets whatever its entry says, as NAME=value.
	Env []string

	// Fence has a child killed when its deadline passes, also while this process is
	// stopped. Nil is none.
	Fence *guard.Fence

	// Cork holds back what is sent to the upstream and what its messages lead
	// to, while those of one read are handled. Nil is none.
	Cork *wire.Cork

	// Throttle is called by what reads the upstream before it reads on, outside
	// of any hold of Cork. It may block while hosts do not read. Nil is none.
	Throttle func()

	roots  *x509.CertPool // who signs the certificates of upstreams; nil is whom the system trusts
	timing timing
}

// A Login is how requests to an HTTP upstream are authorized.
type Login struct {
	// Transport returns a transport that authorizes the requests it passes on. Its
	// own errors are *transports.Failure; nothing was sent then. Nil is none.
	Transport func(http.RoundTripper) http.RoundTripper
	// Hint says what to do about an answer with status 401 or 403, empty is not
	// known, and whether a person's login would mend it. It is not nil where Transport
	// is not.
	Hint func(*http.Response) (text string, login bool)
}

// timing are the waits that tests shorten. Zero is the usual one.
type timing struct {
	stopGrace  time.Duration
	bestEffort time.Duration
	ping       time.Duration
	reopen     time.Duration
	http       httpPatience
}

// Info is an implementation's name and version as the handshake carries them.
type Info struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ServerInfo is what an upstream said of itself in the handshake.
type ServerInfo struct {
	ProtocolVersion string
	Capabilities    json.RawMessage
	Implementation  json.RawMessage // its name and version: "serverInfo"
	Instructions    string
	Extra           json.RawMessage // an object of all other members
}

// Has reports whether the upstream advertised a capability, such as "tools".
func (i *ServerInfo) Has(capability string) bool { return wire.Get(i.Capabilities, capability) != nil }

// announces reports whether it said that it tells of changes in a list.
func (i *ServerInfo) announces(capability string) bool {
	return string(wire.Get(wire.Get(i.Capabilities, capability), "listChanged")) == "true"
}

// A Conn is a connection to one upstream. Its methods may be called from many
// goroutines.
type Conn struct {
	reporter
	goroutines

	copies bool        // the params of a call are not used any more when Start returns
	passed bool        // another replica runs the upstream
	killed atomic.Bool // by Kill
	server schema.Server
	opts   Options
	log    *slog.Logger
	info   ServerInfo
	link   link

	agreed    atomic.Pointer[string] // the protocol version, once the upstream has said it
	stateless atomic.Bool            // the upstream is of the stateless era
	eraMeta   eraMeta                // what every request to it says in _meta then

	calls    pending        // what we ask the upstream
	tasks    taskProgress   // of calls that it made tasks of
	requests serverRequests // what the upstream asks us
	health   *health
	junk     atomic.Int64 // lines that were no message
	invalid  invalidText

	subscriptions *subscriptions // of the stateless era

	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	done    chan struct{} // closed when nothing more will be received
	closing atomic.Bool
	gone    chan struct{} // closed when Close is over

	mu    sync.Mutex
	err   error // why the connection takes no new calls
	ended bool  // nor answers those it has
}

// Open reaches an upstream: it starts the child, or prepares an HTTP connection.
// Nothing is sent before Handshake. Close must be called.
func Open(server schema.Server, opts Options) (*Conn, error) {
	c := newConn(server, opts)
	var err error
	switch server.Transport {
	case schema.Stdio:
		err = openChild(c)
	case schema.StreamableHTTP:
		c.link = newHTTPLink(c)
	case schema.SSE:
		c.link = &sseLink{httpLink: newHTTPLink(c), ready: make(chan struct{})}
	default:
		err = c.newFailure(transports.CodeStartFailed, transports.NotSent, fmt.Errorf("transport %q is not supported", server.Transport))
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
	if opts.HostEra == nil {
		opts.HostEra = func() (transports.Era, bool) { return 0, false }
	}
	opts.timing = timing{
		stopGrace:  cmp.Or(opts.timing.stopGrace, stopGrace),
		bestEffort: cmp.Or(opts.timing.bestEffort, bestEffort),
		ping:       cmp.Or(opts.timing.ping, pingWait),
		reopen:     cmp.Or(opts.timing.reopen, reopenFirst),
		http:       cmp.Or(opts.timing.http, usualPatience),
	}
	if server.MaxMessageBytes == 0 {
		server.MaxMessageBytes = defaultMaxMessage
	}
	c := &Conn{
		server: server,
		opts:   opts,
		log:    opts.Logger.With("upstream", server.Name),
		done:   make(chan struct{}),
		gone:   make(chan struct{}),
	}
	c.reporter = reporter{server: server.Name, remote: server.Transport != schema.Stdio, redact: opts.Redact, stderr: func() string {
		if c.link == nil { // it could not be opened
			return ""
		}
		return c.link.stderr()
	}}
	c.goroutines.panicked = func(p any) {
		c.log.Error("panic", "panic", p, "stack", string(debug.Stack()))
		c.end(fmt.Errorf("internal error: %v", p))
	}
	c.invalid.log, c.health, c.requests.conn = c.log, &health{conn: c}, c
	c.subscriptions = &subscriptions{conn: c, wake: make(chan struct{}, 1), topics: map[topic]bool{}, pause: reopenFirst}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// ServerInfo returns what the upstream said in the handshake.
func (c *Conn) ServerInfo() *ServerInfo { return &c.info }

// Era returns the era in which the upstream is spoken to, once Handshake is
// over.
func (c *Conn) Era() transports.Era {
	if c.stateless.Load() {
		return transports.Stateless
	}
	return transports.Handshake
}

// Copies reports whether the params of a call may be lent: they are not used any more
// when Start has returned. Where that could not send them, the call has a copy.
func (c *Conn) Copies() bool { return c.copies }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection takes no new calls, nil if it does. Until Done
// is closed, calls in flight may still be answered.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Loss describes why the connection takes no new calls, with a child's last
// words, for a call that was not sent. Err must not be nil.
func (c *Conn) Loss() *transports.Failure { return c.endFailure(c.Err(), transports.NotSent) }

// Notify sends a notification. A nil error does not mean delivery.
func (c *Conn) Notify(method string, params json.RawMessage) error {
	return c.link.send(wire.Notification(wire.Quote(method), params)...)
}

// Close ends the connection: what is in flight fails, the child and its group
// are stopped. It returns when nothing of the connection is left.
func (c *Conn) Close() {
	if !c.closing.CompareAndSwap(false, true) {
		<-c.gone
		return
	}
	defer close(c.gone)
	c.end(errClosed)
	c.link.close()
	c.goroutines.close()
}

// drainMost is how long calls in flight may go on when the connection takes no
// new ones: some are never answered, because what they need of us cannot reach
// the upstream any more.
const drainMost = 10 * time.Minute

// retire has the connection take no new calls because of err. It ends when those
// in flight have, or after drainMost.
func (c *Conn) retire(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	c.mu.Unlock()

	drained := c.calls.refuse()
	c.spawn(func() { // if this is refused, the connection has ended
		waitAtMost(drained, drainMost)
		c.end(err)
	})
}

// end ends every call and every server request with err, once; from here on
// nothing can be sent.
func (c *Conn) end(err error) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended = true
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()

	if n := c.invalid.count.Load(); n > 1 {
		c.log.Info("messages were not UTF-8", "count", n)
	}
	calls := c.calls.close()
	c.cancel()
	close(c.done)
	for _, call := range calls {
		outcome := transports.Unknown // also if it is being sent at this moment
		if call.unsent {
			outcome = transports.NotSent
		}
		c.guarded(func() { call.Done(nil, c.endFailure(err, outcome)) })
	}
}

// goroutines are those that a connection waits for.
type goroutines struct {
	panicked func(p any) // ends the connection

	starting sync.Mutex
	closed   bool // no more may be started
	wg       sync.WaitGroup
}

// spawn runs f on a goroutine that close waits for; it reports false after that.
func (g *goroutines) spawn(f func()) bool {
	g.starting.Lock()
	defer g.starting.Unlock()
	if g.closed {
		return false
	}
	g.wg.Go(func() { g.guarded(f) })
	return true
}

// guarded runs f; a panic ends the connection, not the process.
func (g *goroutines) guarded(f func()) {
	defer func() {
		if p := recover(); p != nil {
			g.panicked(p)
		}
	}()
	f()
}

func (g *goroutines) close() {
	g.starting.Lock()
	g.closed = true
	g.starting.Unlock()
	g.wg.Wait()
}
