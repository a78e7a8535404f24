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

// GatewayOptions configure a Gateway.
type GatewayOptions struct {
	// Open begins a session of principal with the host behind edge. namespace is the server
	// that the session is limited to, or "" for all. lasts is false if the session is for one
	// request. end ends the session; requests in flight are answered first, unless the edge
	// reports that the host is gone.
	Open func(edge Edge, principal, namespace string, lasts bool) (s *host.Session, end func(context.Context))
	// OpenTree is Open for the API of the tree of tools; nil serves none. TreeKind returns what a path of the
	// tree leads to for a principal: "node", "tool", or "" for nothing.
	OpenTree func(edge Edge, principal string) (s *host.Session, end func(context.Context))
	TreeKind func(principal, path string) string
	// InputSchema returns the input schema of a tool for a principal, nil if unknown. It determines which
	// arguments must be repeated in headers.
	InputSchema func(principal, namespace, tool string) json.RawMessage
	// Health returns the health of a server; false if the name is unknown.
	Health func(namespace string) (Health, bool)
	// Unknown returns the error text for a name without Health. Nil means a default text.
	Unknown func(namespace string) string
	// Named returns the name of the server with a key in the config. The key is not empty.
	// Nil means that keys and names are equal.
	Named func(key string) string

	// Enter returns an error for a request that loops: it came through a server that it would
	// lead to. namespace is that server, or "" for all. Nil accepts every request.
	Enter func(namespace string, h http.Header) error

	// Logins serves /login/ to the browsers of users, which have no token; nil disables the route.
	Logins http.Handler
	// Own are routes for each user, which he calls with his token.
	Own []OwnRoute

	// Metrics serves /metrics; nil disables the route.
	Metrics http.Handler

	// Replicas is nil for a single gateway.
	Replicas *Replicas

	Token            string   // accepted bearer token; "" if there is none
	OAuth            *OAuth   // accepts tokens of identity providers; may be nil
	AllowedHosts     []string // names and addresses accepted in Host, with or without a port
	AllowedOrigins   []string // accepted values of Origin
	MaxRequestBytes  int
	MaxResponseBytes int
	Memory           *membudget.Budget // for the messages of all hosts; nil is 512 MB
	MaxConnections   int               // listening event streams of one namespace at once
	SessionIdle      time.Duration     // idle time after which a session ends; 0 means never
	Logger           *slog.Logger
}

// An Edge is the edge of a session, with the account that its memory is charged to.
type Edge interface {
	host.Edge
	Account() string
}

// An OwnRoute serves what belongs to a principal.
type OwnRoute interface {
	// Path is the first element of the paths that it serves.
	Path() string
	ServeOwn(w http.ResponseWriter, r *http.Request, principal string)
}

// A PageRoute is an OwnRoute with a page for browsers, which send no token. The page holds nothing of a
// principal: it asks for the token.
type PageRoute interface {
	OwnRoute
	ServePage(w http.ResponseWriter, r *http.Request)
}

// Health is the health of a server.
type Health struct {
	Status string // "running", "connected" for a remote server, or "no subprocess"
	PID    int    // of its process; 0 if there is none
}

// A Gateway serves hosts over HTTP.
type Gateway struct {
	opts      GatewayOptions
	log       *slog.Logger
	access    *access
	forwarder *forwarder
	sessions  sessions
	exchanges sync.Map // the sessions for one request; keys are *exchange
	listening listening
	memory    *membudget.Budget
	running   counter             // requests in progress that will be answered
	leaving   chan struct{}       // closed when the shutdown begins and other replicas take new sessions
	ending    chan struct{}       // closed when no more requests are accepted
	evicted   chan *session       // sessions of hosts that do not read
	maxUnread int64               // bytes that may wait for one host
	sleep     func(time.Duration) // waits for Replicas.DrainDelay

	streamAfter   time.Duration // how long an answer may take before an event stream begins
	headerTimeout time.Duration // for the header of a request
	bodyTimeout   time.Duration // for the body of a request
	drainTimeout  time.Duration // for the requests in progress at the shutdown
}

// New returns a gateway.
func New(opts GatewayOptions) *Gateway {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Named == nil {
		opts.Named = func(key string) string { return key }
	}
	if opts.Unknown == nil {
		opts.Unknown = func(namespace string) string { return "unknown server: " + namespace }
	}
	g := &Gateway{
		opts: opts, log: opts.Logger, access: newAccess(opts),
		leaving: make(chan struct{}), ending: make(chan struct{}), evicted: make(chan *session, maxSessions), maxUnread: maxUnread,
		sleep: time.Sleep, streamAfter: streamAfter, headerTimeout: headerTimeout, bodyTimeout: bodyTimeout, drainTimeout: drainTimeout,
	}
	g.forwarder = newForwarder(opts.Replicas, &g.running, g.leaving, g.log)
	g.sessions = sessions{most: maxSessions, byID: map[string]*session{}, of: map[string]*sessionsOf{}}
	g.listening.of = map[string][]*place{}
	g.memory = cmp.Or(opts.Memory, membudget.New(0, nil))
	return g
}

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer g.answerPanic(w, nil)
	select {
	case <-g.leaving:
		w.Header().Set("Connection", "close") // the host's next request goes to another replica
	default:
	}
	if g.opts.Logins != nil && strings.HasPrefix(r.URL.Path, loginPath) {
		if g.access.allowHost(w, r) { // a browser comes from the page of another site
			g.opts.Logins.ServeHTTP(w, r)
		}
		return
	}
	if page := g.pageOf(r); page != nil {
		if g.access.allowHost(w, r) { // a browser comes from the page of another site
			page.ServePage(w, r)
		}
		return
	}
	principal, ok := g.access.allow(w, r)
	if !ok {
		return
	}
	if c := connFrom(r.Context()); c != nil && !asksHealth(r) && !c.authenticate(accountOf(r, principal)) {
		w.Header().Set("Connection", "close")
		denyAndClose(w, r, g.access.linger, overload(nil, "this user or address has too many connections open"))
		return
	}
	g.serve(w, r, principal)
}

// pageOf returns the route whose page a browser asks for, nil if it does not.
func (g *Gateway) pageOf(r *http.Request) PageRoute {
	if r.Method != http.MethodGet || r.Header.Get("Authorization") != "" || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return nil
	}
	page, _ := g.ownRoute(strings.TrimPrefix(r.URL.Path, "/")).(PageRoute)
	return page
}

// loginPath begins the paths of Logins.
const loginPath = "/login/"

// answerPanic answers a request whose handler panicked. It is deferred; id is the id of the
// request, nil if unknown.
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
func (g *Gateway) route(w http.ResponseWriter, r *http.Request, principal string) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	meta := isMeta(path) && g.opts.OpenTree != nil
	if first == "mcp" || meta {
		if to := g.forwarder.otherReplica(r, principal); to != nil && g.forwarder.pass(w, r, to) {
			return
		}
	}
	switch {
	case first == "mcp":
		namespace, below, _ := strings.Cut(rest, "/")
		if namespace != "" {
			namespace = g.opts.Named(namespace)
			if _, known := g.opts.Health(namespace); !known {
				g.readAndDeny(w, r, g.unknown(namespace))
				return
			}
		}
		if g.circular(w, r, namespace) {
			return
		}
		if below == "message" && r.Method == http.MethodPost {
			g.message(w, r, principal, namespace)
			return
		}
		g.serveMCP(w, r, principal, namespace) // the rest of the path is ignored
	case meta:
		g.meta(w, r, principal, first)
	case g.ownRoute(first) != nil:
		g.ownRoute(first).ServeOwn(w, r, principal)
	case path == "/metrics" && g.opts.Metrics != nil:
		g.opts.Metrics.ServeHTTP(w, r)
	case first == "health":
		g.health(w, r, rest)
	default:
		g.readAndDeny(w, r, denial{status: http.StatusNotFound, text: "no such route: there are /mcp, /mcp/{server}, /meta_tree, /meta_desc, /meta_call and /health"})
	}
}

// ownRoute returns the route for the first element of a path, nil if there is none.
func (g *Gateway) ownRoute(first string) OwnRoute {
	for _, own := range g.opts.Own {
		if own.Path() == first {
			return own
		}
	}
	return nil
}

// circular denies a request that loops, and reports whether it did.
func (g *Gateway) circular(w http.ResponseWriter, r *http.Request, namespace string) bool {
	if g.opts.Enter == nil {
		return false
	}
	err := g.opts.Enter(namespace, r.Header)
	if err != nil {
		g.log.Warn("a request was denied", "err", err)
		g.readAndDeny(w, r, denial{status: http.StatusLoopDetected, text: err.Error()})
	}
	return err != nil
}

// Limits of connections.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second
	lingerFor     = time.Second
	idleTimeout   = 2 * time.Minute // between two requests
	maxHeader     = 64 << 10
	drainTimeout  = 10 * time.Second
	closeFor      = 3 * time.Second // for hosts to read the last answers
)

// Serve serves hosts until ctx ends, and closes ln. Then requests in progress are finished,
// new ones are denied, and every session is ended. That takes up to 15 seconds after
// Replicas.DrainDelay.
func (g *Gateway) Serve(ctx context.Context, ln net.Listener) error {
	server := &http.Server{
		Handler:           g,
		ReadHeaderTimeout: g.headerTimeout,
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
	_ = server.Close() // connections that Shutdown has left
	stop()
	work.Wait()
	return err
}

// recovered is deferred by a goroutine. It logs a panic.
func (g *Gateway) recovered() {
	if p := recover(); p != nil {
		g.log.Error("panic", "panic", p, "stack", string(debug.Stack()))
	}
}

// readAndDeny reads the body of a request for the id of its message, and denies the request.
func (g *Gateway) readAndDeny(w http.ResponseWriter, r *http.Request, d denial) {
	body, _ := g.readBody(w, r)
	d.id = askedBy(body, body)
	deny(w, d)
}

// A counter counts requests in progress.
type counter struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n becomes 0; nil while nobody waits
}

func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += n; c.n == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// wait waits until the count is 0 or ctx ends.
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
