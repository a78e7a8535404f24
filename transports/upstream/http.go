package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream/callheader"
)

const (
	// headerWait is how long an upstream may take to begin an answer that belongs to no call;
	// calls have their own deadlines.
	headerWait = 15 * time.Second
	// bestEffort limits requests that need not succeed, such as the end of a session.
	bestEffort = 2 * time.Second
	// redialPause comes before the second attempt to make a connection.
	redialPause = 300 * time.Millisecond
)

// An httpLink sends messages as POSTs and reads messages from the answers. MCP 2025-11-25,
// "Streamable HTTP".
type httpLink struct {
	noProcess
	conn    *Conn
	url     string
	postURL string // for POSTs; url, unless the upstream names another one (SSE)
	client  *http.Client
	open    context.Context        // until release
	release context.CancelFunc     // closes the sockets
	header  http.Header            // of every request
	idle    chan *exchange         // received by goroutines that wait for another exchange
	session atomic.Pointer[string] // Mcp-Session-Id
	version atomic.Pointer[string] // Mcp-Protocol-Version, once negotiated

	posting  goroutines   // POSTs of messages without an answer
	bindings atomic.Value // callheader.Bindings of the last list of tools
}

func newHTTPLink(c *Conn) *httpLink {
	open, release := context.WithCancel(context.Background())
	header := http.Header{}
	for name, value := range c.server.Headers {
		header.Set(name, value)
	}
	header.Set("Accept", "application/json, text/event-stream")
	return &httpLink{
		conn: c, url: c.server.URL, postURL: c.server.URL, client: newHTTPClient(open, c.opts), open: open, release: release, header: header,
		idle: make(chan *exchange), posting: goroutines{panicked: c.panicked},
	}
}

// newHTTPClient returns a client that never sends headers or a body to another origin and
// keeps connections for many concurrent calls. The keep-alive probes of TCP and HTTP/2 detect
// a vanished peer. Its connections are closed when open ends.
func newHTTPClient(open context.Context, opts ConnOptions) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &socket{conn, context.AfterFunc(open, func() { conn.Close() })}, nil
	}
	// As many as there were concurrent calls: with a limit, each call beyond it would need a new
	// connection. Idle ones are closed after a while.
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, maxPending
	transport.MaxResponseHeaderBytes = 64 << 10
	transport.ReadBufferSize, transport.WriteBufferSize = 16<<10, 16<<10 // a call of usual size in one write, its answer in one read
	transport.TLSClientConfig = opts.tls
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: opts.timing.http.ping, PingTimeout: opts.timing.http.header}
	var authorized http.RoundTripper = transport
	if opts.Login.Transport != nil {
		authorized = opts.Login.Transport(transport)
	}
	return &http.Client{
		Transport:     authorized,
		CheckRedirect: checkRedirect,
	}
}

// checkRedirect refuses a redirect that leaves the origin or changes the method.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from, to := via[0].URL, req.URL
	if origin(from) != origin(to) || req.Method != via[0].Method || len(via) > 3 {
		return &redirectError{status: req.Response.StatusCode, from: from, to: to}
	}
	return nil
}

// A redirectError is a redirect that was refused: it leads to another origin, changes the method,
// or is one of many.
type redirectError struct {
	status   int
	from, to *url.URL
}

func (e *redirectError) Error() string {
	to := place(e.to)
	if e.leaves() { // the rest is for the other server
		to = origin(e.to)
	}
	return fmt.Sprintf("refused a redirect to %s (HTTP status %d of %s)", to, e.status, origin(e.from))
}

func (e *redirectError) leaves() bool { return origin(e.from) != origin(e.to) }

// place returns an address without what may be secret in it.
func place(u *url.URL) string { return origin(u) + u.EscapedPath() }

// A socket is closed with its link. net/http closes only idle connections, and an HTTP/2
// connection is not idle for a while after a request on it was cancelled.
type socket struct {
	net.Conn
	forget func() bool
}

func (s *socket) Close() error {
	s.forget()
	return s.Conn.Close()
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// idleMost is how long a goroutine waits for another exchange.
const idleMost = time.Second

// sendRequest posts a request on a goroutine of its own, which reads the answer.
func (l *httpLink) sendRequest(call *Call, id int64) error {
	ctx, cancel := context.WithCancel(l.conn.ctx)
	x := &exchange{link: l, call: call, id: id, body: call.body(id), ctx: ctx, cancel: cancel}
	if l.conn.calls.with(id, call, func(call *Call) { call.abort = cancel }) && l.start(x) {
		return nil
	}
	cancel()
	return errClosed
}

// start runs an exchange on an idle goroutine, whose stack has already grown, or on a new one.
// It reports false if the connection is closed.
func (l *httpLink) start(x *exchange) bool {
	select {
	case l.idle <- x:
		return true
	default:
		return l.conn.spawn(func() { l.exchangeAll(x) })
	}
}

func (l *httpLink) exchangeAll(x *exchange) {
	timer := time.NewTimer(idleMost)
	defer timer.Stop()
	for {
		l.conn.calls.fail(x.id, x.post()) // after the answer, the call has ended and this does nothing
		x.cancel()
		timer.Reset(idleMost)
		select {
		case x = <-l.idle:
		case <-timer.C:
			return
		case <-l.conn.ctx.Done():
			return
		}
	}
}

// body returns the request of a call as one text.
func (call *Call) body(id int64) []byte {
	params, n := call.pieces(id)
	return bytes.Join(wire.Request(id, call.Method, params[:n]...), nil)
}

// send posts a message on a goroutine of its own, which close waits for.
func (l *httpLink) send(message ...[]byte) error {
	body := bytes.Join(message, nil)
	sent := l.posting.spawn(func() {
		if err := l.deliver(body); err != nil {
			l.conn.log.Debug("not delivered", "err", err)
		}
	})
	if !sent {
		return errClosed
	}
	return nil
}

// sendInitialized waits: the next message needs an open session.
func (l *httpLink) sendInitialized(message ...[]byte) error {
	l.version.Store(&l.conn.info.ProtocolVersion)
	if err := l.deliver(bytes.Join(message, nil)); err != nil {
		return err
	}
	l.conn.spawn(l.listen)
	return nil
}

// deliver posts a message without an answer. When the connection ends, a delivery in progress,
// such as a cancellation, may continue for bestEffort.
func (l *httpLink) deliver(body []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.conn.ctx), headerWait)
	defer cancel()
	defer context.AfterFunc(l.conn.ctx, func() { time.AfterFunc(l.conn.opts.timing.bestEffort, cancel) })()
	return l.post(ctx, body)
}

// post posts a message and checks only the status of the answer.
func (l *httpLink) post(ctx context.Context, body []byte) error {
	resp, err := l.do(ctx, http.MethodPost, l.postURL, body, nil)
	if err != nil {
		return l.requestFailure(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return l.statusFailure(resp, nil)
	}
	return nil
}

// do sends an HTTP request, and tries once more after redialPause if no connection could be
// made. call is the call whose request the body is, or nil.
func (l *httpLink) do(ctx context.Context, method, address string, body []byte, call *Call) (*http.Response, error) {
	resp, err := l.try(ctx, method, address, body, call)
	if !isRefused(err) {
		return resp, err
	}
	l.conn.log.Debug("no connection, one more try", "err", err)
	if waitAtMost(ctx.Done(), redialPause) {
		return nil, err
	}
	return l.try(ctx, method, address, body, call)
}

func (l *httpLink) try(ctx context.Context, method, address string, body []byte, call *Call) (*http.Response, error) {
	req, err := l.request(ctx, method, address, body)
	if err != nil {
		return nil, notSentError{err}
	}
	if call != nil && (l.conn.stateless.Load() || call.Method == methodDiscover) {
		req.Header.Set("Mcp-Protocol-Version", transports.StatelessVersion)
		bindings, _ := l.bindings.Load().(callheader.Bindings)
		bindings.Set(req.Header, call.Method, wire.ObjectOf(call.Params, call.Arguments))
	}
	return l.fetch(req)
}

// request returns an HTTP request with the headers of the config and of the
// session.
func (l *httpLink) request(ctx context.Context, method, address string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = maps.Clone(l.header)
	if l.conn.opts.Mark != nil {
		l.conn.opts.Mark(req.Header)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodGet {
		req.Header.Set("Accept", "text/event-stream")
	}
	if id := l.session.Load(); id != nil {
		req.Header.Set("Mcp-Session-Id", *id)
	}
	if version := l.version.Load(); version != nil {
		req.Header.Set("Mcp-Protocol-Version", *version)
	}
	return req, nil
}

// close ends the session, if the upstream has one, after pending messages.
func (l *httpLink) close() {
	defer l.release()
	l.posting.close()
	if l.session.Load() == nil || errors.Is(l.conn.Err(), ErrSessionLost) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.conn.opts.timing.bestEffort)
	defer cancel()
	if resp, err := l.try(ctx, http.MethodDelete, l.url, nil, nil); err == nil {
		resp.Body.Close()
	}
}
