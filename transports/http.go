package transports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"dynmcp/internal/wire"
)

const (
	// headerWait is how long an upstream may take to begin an answer that
	// belongs to no call; calls have their own deadlines.
	headerWait = 15 * time.Second
	// farewell bounds what is sent only out of politeness.
	farewell = 2 * time.Second
	// reopenFirst and reopenMost are the pauses between attempts to reopen the
	// stream of what the upstream sends unasked.
	reopenFirst = 500 * time.Millisecond
	reopenMost  = 30 * time.Second
)

// An httpLink sends messages as POSTs and reads what the answers hold. MCP
// 2025-11-25, "Streamable HTTP".
type httpLink struct {
	conn    *Conn
	url     string
	client  *http.Client
	session atomic.Pointer[string] // Mcp-Session-Id
	version atomic.Pointer[string] // Mcp-Protocol-Version, once negotiated
}

func (c *Conn) openHTTP() {
	link := &httpLink{conn: c, url: c.server.URL, client: newHTTPClient()}
	c.send, c.begin, c.stop = link.send, link.begin, link.stop
}

// newHTTPClient returns a client that never takes headers or a body to another
// origin and keeps connections for many calls at once.
func newHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	transport.MaxResponseHeaderBytes = 64 << 10
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			from, to := via[0].URL, req.URL
			if origin(from) != origin(to) || req.Method != via[0].Method || len(via) > 3 {
				return fmt.Errorf("redirect to %s refused", origin(to))
			}
			return nil
		},
	}
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// send posts a message on a goroutine of its own, so it does not block.
func (l *httpLink) send(call *Call, parts ...[]byte) error {
	body := bytes.Join(parts, nil)
	if call == nil {
		l.conn.spawn(func() {
			if err := l.deliver(body); err != nil {
				l.conn.log.Debug("not delivered", "err", err)
			}
		})
		return nil
	}
	ctx, cancel := context.WithCancel(l.conn.ctx)
	l.conn.mu.Lock()
	call.abort = cancel
	l.conn.mu.Unlock()
	sent := l.conn.spawn(func() {
		defer cancel()
		if err := l.exchange(ctx, cancel, call, body); err != nil && ctx.Err() == nil {
			l.conn.finish(call.id, nil, err)
		}
	})
	if !sent {
		cancel()
		return ErrClosed
	}
	return nil
}

// begin ends the handshake. It waits: what follows must find the session open.
func (l *httpLink) begin(parts ...[]byte) error {
	l.version.Store(&l.conn.hello.ProtocolVersion)
	if err := l.deliver(bytes.Join(parts, nil)); err != nil {
		return err
	}
	l.conn.spawn(l.listen)
	return nil
}

// deliver posts what has no answer.
func (l *httpLink) deliver(body []byte) error {
	ctx, cancel := context.WithTimeout(l.conn.ctx, headerWait)
	defer cancel()
	resp, err := l.do(ctx, http.MethodPost, l.url, body, nil)
	if err != nil {
		return l.unreachable(err)
	}
	defer drain(resp.Body)
	if resp.StatusCode >= 300 {
		return l.status(resp, nil)
	}
	return nil
}

// exchange posts a request and reads messages until its answer was among them.
func (l *httpLink) exchange(ctx context.Context, cancel context.CancelFunc, call *Call, body []byte) error {
	resp, err := l.do(ctx, http.MethodPost, l.url, body, call)
	if err != nil {
		return l.unreachable(err)
	}
	defer drain(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return l.status(resp, call)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" && call.Method == "initialize" {
		l.session.Store(&id)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		err = l.readBody(resp.Body, call)
	case "text/event-stream":
		err = l.readStream(resp.Body, call, func() {
			// The answer is here; a stream that stays open is not waited for.
			if !l.conn.inFlight(call) {
				time.AfterFunc(farewell, cancel)
			}
		})
	default:
		start, _ := io.ReadAll(io.LimitReader(resp.Body, 120))
		return l.conn.fail(CodeProtocol, Unknown, fmt.Errorf("the answer is %q, neither JSON nor an event stream: %s", resp.Header.Get("Content-Type"), printable(start, 120)))
	}
	switch {
	case errors.Is(err, errTooLarge):
		return l.conn.fail(CodeTooLarge, Done, err)
	case err != nil:
		return l.conn.fail(CodeExited, Unknown, fmt.Errorf("reading the answer: %w", err))
	}
	// Where the answer came, this finds nothing to fail.
	return l.conn.fail(CodeExited, Unknown, errors.New("the response ended without the answer"))
}

func (l *httpLink) readBody(body io.Reader, call *Call) error {
	max := l.conn.server.MaxMessageBytes
	text, err := io.ReadAll(io.LimitReader(body, int64(max)+1))
	switch {
	case err != nil:
		return err
	case len(text) > max:
		return fmt.Errorf("an answer of more than %d bytes is %w", max, errTooLarge)
	}
	l.take(text, call)
	return nil
}

func (l *httpLink) readStream(body io.Reader, call *Call, taken func()) error {
	return readEvents(body, l.conn.server.MaxMessageBytes, func(e event) {
		if e.name == "" || e.name == "message" {
			l.take(e.data, call)
			taken()
		}
	})
}

// take handles one message, or a batch of them, in text.
func (l *httpLink) take(text []byte, call *Call) {
	text = wire.Fold(bytes.TrimSpace(text))
	if len(text) == 0 {
		return
	}
	if text[0] == '[' && wire.Valid(text) {
		l.conn.receive(wire.Message{Raw: text}, call)
		return
	}
	m, err := wire.Parse(text)
	if err == nil {
		l.conn.receive(m, call)
		return
	}
	if call == nil || !l.conn.finish(call.id, nil, l.conn.fail(CodeProtocol, Unknown, fmt.Errorf("the answer cannot be read: %w", err))) {
		l.conn.fault(&wire.Fault{Line: text, Err: err})
	}
}

// do sends an HTTP request; call is the one whose request the body is, if any.
func (l *httpLink) do(ctx context.Context, method, address string, body []byte, call *Call) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range l.conn.server.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
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
	if call != nil && (l.conn.stateless.Load() || call.Method == methodDiscover) {
		req.Header.Set("Mcp-Protocol-Version", StatelessVersion)
		l.conn.setCallHeaders(req.Header, call)
	}
	return l.client.Do(req)
}

// status turns an error status into a failure. A request that was refused for
// its session or its credentials did not run. Where the body is a JSON-RPC
// error that answers the call, that is the answer.
func (l *httpLink) status(resp *http.Response, call *Call) error {
	start, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if m, err := wire.Parse(wire.Fold(start)); err == nil && call != nil && m.Error != nil {
		if id, ok := callID(m.ID); ok && id == call.id {
			return wire.ParseError(m.Error)
		}
	}
	cause := fmt.Errorf("HTTP status %s: %s", resp.Status, printable(bytes.TrimSpace(start), 120))
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound && l.session.Load() != nil:
		lost := l.conn.fail(CodeUnreachable, NotSent, ErrSessionLost)
		if call != nil {
			l.conn.finish(call.id, nil, lost) // before the others, which may have run
		}
		l.conn.lose(ErrSessionLost)
		return lost
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		f := l.conn.fail(CodeAuthRequired, NotSent, cause)
		f.Hint = fmt.Sprintf("check the headers of %q in the config", l.conn.name)
		return f
	case code == http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "" && code == http.StatusServiceUnavailable:
		f := l.conn.fail(CodeRateLimited, NotSent, cause)
		f.Hint = "try again later"
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			f.Hint = fmt.Sprintf("try again in %d seconds", min(seconds, 60))
		}
		return f
	case code < 500:
		return l.conn.fail(CodeUnreachable, NotSent, cause)
	}
	return l.conn.fail(CodeUnreachable, Unknown, cause)
}

// unreachable tells whether a request that got no answer can have run: where
// no connection was made it cannot.
func (l *httpLink) unreachable(err error) error {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err // without the URL, which may hold a secret
	}
	outcome := Unknown
	if neverSent(err) {
		outcome = NotSent
	}
	return l.conn.fail(CodeUnreachable, outcome, err)
}

// listen keeps the stream open on which the upstream sends what belongs to no
// call, for as long as it offers one.
func (l *httpLink) listen() {
	pause := reopenFirst
	for {
		opened, offered := l.listenOnce()
		if !offered {
			return
		}
		if opened {
			pause = reopenFirst
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-l.conn.ctx.Done():
			timer.Stop()
			return
		}
		pause = min(2*pause, reopenMost)
	}
}

func (l *httpLink) listenOnce() (opened, offered bool) {
	resp, err := l.do(l.conn.ctx, http.MethodGet, l.url, nil, nil)
	if err != nil {
		return false, l.conn.ctx.Err() == nil
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		// The session is gone; the next use connects anew.
		l.conn.lose(ErrSessionLost)
		return false, false
	case resp.StatusCode >= 500:
		return false, true
	case resp.StatusCode != http.StatusOK:
		return false, false
	}
	if err := l.readStream(resp.Body, nil, func() {}); err != nil {
		l.conn.log.Debug("stream broke", "err", err)
	}
	return true, true
}

// stop ends the session, if the upstream gave one.
func (l *httpLink) stop() {
	defer l.client.CloseIdleConnections()
	if l.session.Load() == nil || errors.Is(l.conn.Err(), ErrSessionLost) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if resp, err := l.do(ctx, http.MethodDelete, l.url, nil, nil); err == nil {
		drain(resp.Body)
	}
}

// drain reads a little of what is left, so that the connection can be used
// again, and closes.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 4<<10)
	body.Close()
}
