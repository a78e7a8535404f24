package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// Options say what a gateway serves, and to whom.
type Options struct {
	// Open begins the session of a host that edge reaches: of that user, on all
	// servers or on one. lasts is false where it is for one request alone. end ends it;
	// what is in flight is answered first unless the edge says that the host is gone.
	Open func(edge Edge, principal, namespace string, lasts bool) (s *host.Session, end func(context.Context))
	// OpenTree is Open for the API of the tree of tools, and TreeKind says what is at a
	// path of it: a "node", a "tool" or "", nothing.
	OpenTree func(edge Edge, principal string) (s *host.Session, end func(context.Context))
	TreeKind func(path string) string
	// InputSchema returns that of a tool by the name that it is called by, or
	// nil; some arguments have to be in headers, too.
	InputSchema func(namespace, tool string) json.RawMessage
	// Health says how a server is; false if the name is unknown.
	Health func(namespace string) (Health, bool)
	// Unknown says what is wrong with a name for which there is no Health; nil is that no
	// server has it.
	Unknown func(namespace string) string
	// Named returns the name of the server that the config calls key; nil is that all
	// are called by their names.
	Named func(key string) string

	// Enter says why a request for a server, "" for all, is refused: it comes of what it
	// leads to. Nil refuses none.
	Enter func(namespace string, h http.Header) error

	// Metrics serves /metrics; nil disables the route.
	Metrics http.Handler

	// Replicas is nil where there is but this one.
	Replicas *Replicas

	Token            string   // that requests have to carry, "" for none
	OAuth            *OAuth   // the tokens of an identity provider count, too; nil if unset
	AllowedHosts     []string // names and addresses, some with a port, in a request's Host
	AllowedOrigins   []string // as browsers send them
	MaxRequestBytes  int
	MaxResponseBytes int
	Memory           *membudget.Budget // of bytes, of all hosts; nil is 512 MB
	MaxConnections   int               // event streams of one namespace at once that only listen
	SessionIdle      time.Duration     // after which a session ends; 0 is never
	Logger           *slog.Logger
}

// An Edge reaches a host. Account is the name under which what the host has is accounted.
type Edge interface {
	host.Edge
	Account() string
}

// Health is how a server is.
type Health struct {
	Status string // "running", "connected" where it is remote, else "no subprocess"
	PID    int    // 0 if absent
}

// A Gateway serves hosts over HTTP.
type Gateway struct {
	opts      Options
	log       *slog.Logger
	access    *access
	redirect  *forwarder
	sessions  sessions
	exchanges sync.Map // *exchange to nothing: the sessions for one request
	listening listening
	memory    *membudget.Budget
	running   counter             // requests that are worked on and will be answered
	leaving   chan struct{}       // closed when we are about to end, and others begin what comes to us
	ending    chan struct{}       // closed when no more is taken
	evicted   chan *session       // whose hosts do not read
	unread    int64               // bytes that may wait for a host
	late      time.Duration       // for an answer, before it comes on an event stream
	header    time.Duration       // for the header of a request, or until a connection's first
	body      time.Duration       // for all of a request's body
	sleep     func(time.Duration) // as a lame duck
	drain     time.Duration       // what runs may take at the end
}

// New returns a gateway.
func New(opts Options) *Gateway {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Named == nil {
		opts.Named = func(key string) string { return key }
	}
	if opts.Unknown == nil {
		opts.Unknown = func(namespace string) string { return "unknown MCP server: " + namespace }
	}
	g := &Gateway{opts: opts, log: opts.Logger, access: newAccess(opts), leaving: make(chan struct{}), ending: make(chan struct{}), evicted: make(chan *session, maxSessions), unread: maxUnread, late: streamAfter, header: headerTimeout, body: bodyTimeout, sleep: time.Sleep, drain: drainFor}
	g.redirect = newForwarder(opts.Replicas, &g.running, g.leaving, g.log)
	g.sessions = sessions{most: maxSessions, byID: map[string]*session{}, of: map[string]*sessionsOf{}}
	g.listening.of = map[string][]*place{}
	g.memory = cmp.Or(opts.Memory, membudget.New(0, nil))
	return g
}

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer g.answerPanic(w, nil)
	select {
	case <-g.leaving:
		w.Header().Set("Connection", "close") // the host's next request comes to another replica
	default:
	}
	who, ok := g.access.allow(w, r)
	if !ok {
		return
	}
	if c := connFrom(r.Context()); c != nil && !asksHealth(r) && !c.prove(accountOf(r, who)) {
		w.Header().Set("Connection", "close")
		refuse(w, r, g.access.linger, overload(nil, "this user or address has too many connections open"))
		return
	}
	g.serve(w, r, who)
}

// answerPanic is deferred by what serves a request, whose id may be known.
func (g *Gateway) answerPanic(w http.ResponseWriter, id []byte) {
	p := recover()
	switch {
	case p == http.ErrAbortHandler:
		panic(p)
	case p != nil:
		g.log.Error("panic", "panic", p, "stack", string(debug.Stack()))
		deny(w, denial{status: http.StatusInternalServerError, code: wire.CodeInternal, text: fmt.Sprintf("internal error: %v", p), id: id, outcome: transports.Unknown})
	}
}

// route serves a request of a principal.
func (g *Gateway) route(w http.ResponseWriter, r *http.Request, who string) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if first == "mcp" || isMeta(path) {
		if to := g.redirect.elsewhere(r, who); to != nil && g.redirect.pass(w, r, to) {
			return
		}
	}
	switch {
	case path == "/mcp":
		if !g.circular(w, r, "") {
			g.serveMCP(w, r, who, "")
		}
	case first == "mcp":
		namespace, below, _ := strings.Cut(rest, "/")
		namespace = g.opts.Named(namespace)
		if _, known := g.opts.Health(namespace); !known {
			g.denyUnread(w, r, g.unknown(namespace))
			return
		}
		if g.circular(w, r, namespace) {
			return
		}
		if below == "message" && r.Method == http.MethodPost {
			g.message(w, r, who, namespace)
			return
		}
		g.serveMCP(w, r, who, namespace) // what follows is ignored
	case isMeta(path):
		g.meta(w, r, who, first)
	case path == "/metrics" && g.opts.Metrics != nil:
		g.opts.Metrics.ServeHTTP(w, r)
	case first == "health":
		g.health(w, r, rest)
	default:
		g.denyUnread(w, r, denial{status: http.StatusNotFound, text: "there is nothing here: /mcp, /mcp/{server}, /meta_tree, /meta_desc, /meta_call and /health are"})
	}
}

// circular refuses a request that comes of what it leads to, and reports whether it did.
func (g *Gateway) circular(w http.ResponseWriter, r *http.Request, namespace string) bool {
	if g.opts.Enter == nil {
		return false
	}
	err := g.opts.Enter(namespace, r.Header)
	if err != nil {
		g.log.Warn("a request is refused", "err", err)
		g.denyUnread(w, r, denial{status: http.StatusLoopDetected, text: err.Error()})
	}
	return err != nil
}

// Limits of connections (faults.md, C12).
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second
	lingerFor     = time.Second
	idleTimeout   = 2 * time.Minute // between two requests
	maxHeader     = 64 << 10
	drainFor      = 10 * time.Second
	closeFor      = 3 * time.Second // what was answered may take to be read
)

// Serve serves hosts until ctx ends, then what runs is finished, the rest answered
// and every session ended, which takes 15 seconds at most, and Replicas.DrainDelay before
// that. ln is closed.
func (g *Gateway) Serve(ctx context.Context, ln net.Listener) error {
	server := &http.Server{
		Handler:           g,
		ReadHeaderTimeout: g.header,
		IdleTimeout:       idleTimeout,
		ConnContext:       withConn,
		ConnState:         changed,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	reaping, stop := context.WithCancel(ctx)
	defer stop()
	var work sync.WaitGroup
	work.Go(func() {
		defer g.recovered()
		g.reap(reaping)
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	var err error
	select {
	case err = <-served:
		err = fmt.Errorf("http: %w", err)
	case <-ctx.Done():
	}
	g.end(context.WithoutCancel(ctx), ln)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeFor)
	defer cancel()
	_ = server.Shutdown(closing)
	_ = server.Close() // what that has left
	stop()
	work.Wait()
	return err
}

func (g *Gateway) recovered() {
	if p := recover(); p != nil {
		g.log.Error("panic", "panic", p, "stack", string(debug.Stack()))
	}
}

// denyUnread is deny for a request whose body was not read, which may be a message.
func (g *Gateway) denyUnread(w http.ResponseWriter, r *http.Request, d denial) {
	body, _ := g.readBody(w, r)
	d.id = askedBy(body, body)
	deny(w, d)
}

// A counter counts what goes on.
type counter struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is 0; nil while nobody waits
}

func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += n; c.n == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// wait waits until nothing goes on, or ctx ends.
func (c *counter) wait(ctx context.Context) {
	c.mu.Lock()
	if c.n == 0 {
		c.mu.Unlock()
		return
	}
	if c.none == nil {
		c.none = make(chan struct{})
	}
	none := c.none
	c.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	}
}
