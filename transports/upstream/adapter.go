package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// An Adapter makes a server of something that does not speak MCP, such as an HTTP API. Its HTTP
// requests are those of any entry: see [Web].
type Adapter interface {
	// Open prepares the server of an entry. Nothing is sent before the first request of MCP.
	Open(server schema.Server, web *Web) (Adapted, error)
}

// An Adapted is a server that an Adapter made. Its methods may be called from many goroutines.
type Adapted interface {
	// Handle answers a request. ctx ends when the request is cancelled or timed out. An error is a
	// *transports.Failure, which says whether the call ran, or a *wire.Error; any other means that
	// nothing ran.
	Handle(ctx context.Context, method string, params json.RawMessage) (result json.RawMessage, err error)
	// Close returns when nothing of the server is left. The contexts of its requests have ended.
	Close()
}

// openAdapted opens the connection to the server that an adapter makes of the entry.
func openAdapted(c *Conn) error {
	if c.opts.Adapter == nil {
		f := c.newFailure(transports.CodeStartFailed, transports.NotSent, errors.New("this build of dynmcp reads no OpenAPI documents"))
		f.Hint = "use a build with the module openapi"
		return f
	}
	if err := configureTLS(c); err != nil {
		return err
	}
	at, err := url.Parse(c.server.Address())
	if err != nil {
		return c.newFailure(transports.CodeStartFailed, transports.NotSent, errors.New("its address is not valid"))
	}
	web := &Web{link: newHTTPLink(c), own: origin(at)}
	web.link.header.Del("Accept")
	for name, value := range c.server.Headers {
		web.link.header.Set(name, value)
	}
	strange, open := c.opts, web.link.open
	strange.Login, strange.tls = Login{}, withoutCertificate(c.opts.tls)
	web.strange = newHTTPClient(open, strange)
	adapted, err := c.opts.Adapter.Open(c.server, web)
	if err != nil {
		web.link.release()
		f := c.newFailure(transports.CodeStartFailed, transports.NotSent, err)
		return f
	}
	c.link = &adaptedLink{httpLink: web.link, adapted: adapted}
	return nil
}

// withoutCertificate returns a config without the certificate of the client.
func withoutCertificate(of *tls.Config) *tls.Config {
	if of == nil {
		return nil
	}
	of = of.Clone()
	of.Certificates, of.GetClientCertificate = nil, nil
	return of
}

// An adaptedLink passes requests to an Adapted.
type adaptedLink struct {
	*httpLink
	adapted Adapted
}

func (l *adaptedLink) sendRequest(call *Call, id int64) error {
	parts, n := call.pieces(id)
	params := bytes.Join(parts[:n], nil)
	method := call.Method
	ctx, cancel := context.WithCancel(context.WithValue(l.conn.ctx, callKey{}, call))
	if l.conn.calls.with(id, call, func(call *Call) { call.abort = cancel }) && l.conn.spawn(func() {
		defer cancel()
		l.answer(ctx, call, id, method, params)
	}) {
		return nil
	}
	cancel()
	return errClosed
}

// callKey is the key of the call that a request of HTTP belongs to.
type callKey struct{}

func (l *adaptedLink) answer(ctx context.Context, call *Call, id int64, method string, params json.RawMessage) {
	c := l.conn
	result, err := l.adapted.Handle(ctx, method, params)
	number := strconv.AppendInt(nil, id, 10)
	message := wire.Result(number, result)
	if refused, ok := errors.AsType[*wire.Error](err); ok {
		message, err = wire.Failure(number, refused), nil
	}
	if failure, ok := errors.AsType[*transports.Failure](err); ok {
		c.calls.fail(id, failure)
		return
	}
	if err != nil {
		c.calls.fail(id, c.newFailure(transports.CodeStartFailed, transports.NotSent, err))
		return
	}
	text := bytes.Join(message, nil)
	if len(text) > c.server.MaxMessageBytes {
		c.calls.fail(id, c.newFailure(transports.CodeTooLarge, transports.Executed, fmt.Errorf("an answer of %d bytes is %w", len(text), errTooLarge)))
		return
	}
	m, err := wire.ParseWithin(text, maxMessageDepth)
	if err != nil {
		c.calls.fail(id, c.newFailure(transports.CodeProtocol, transports.Executed, unreadable(err)))
		return
	}
	c.receive(m, call)
}

// send drops notifications and answers: an Adapted asks nothing. A cancelled request has ended.
func (l *adaptedLink) send(...[]byte) error { return nil }

func (l *adaptedLink) sendInitialized(...[]byte) error { return nil }

func (l *adaptedLink) close() {
	l.adapted.Close()
	l.httpLink.close()
}

// A Web sends the HTTP requests of an Adapted with what its entry says: headers, login,
// certificates. All of that goes to the origin of the entry only, and no redirect leads out of
// an origin.
type Web struct {
	link    *httpLink
	own     string // the origin of the entry
	strange *http.Client
}

// Do sends a request, once; a second time only if no connection could be made. The error is a
// *transports.Failure. The body of the answer must be closed. It must not stall, and counts for the
// host of the call that req's context belongs to.
func (w *Web) Do(req *http.Request) (*http.Response, error) {
	client := w.strange
	if origin(req.URL) == w.own {
		client = w.link.client
		for name, values := range w.link.header {
			req.Header[name] = values
		}
		if mark := w.link.conn.opts.Mark; mark != nil {
			mark(req.Header)
		}
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "dynmcp/"+w.link.conn.opts.Info.Version)
	}
	resp, err := fetch(w.link.conn, client, req)
	if isRefused(err) && !waitAtMost(req.Context().Done(), redialPause) {
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, w.link.requestFailure(notSentError{err})
			}
		}
		resp, err = fetch(w.link.conn, client, req)
	}
	if err != nil {
		return nil, w.link.requestFailure(err)
	}
	if call, ok := req.Context().Value(callKey{}).(*Call); ok {
		resp.Body.(*answerBody).readFor(call)
	}
	return resp, nil
}

// A Rooted is the peer of a call whose host can be asked for its roots.
type Rooted interface {
	// HostRoots returns the roots of a host whose files this process can read; the error says why there are none.
	HostRoots(context.Context) (result json.RawMessage, err error)
}

// HostRoots returns the roots of the host that made the call which ctx belongs to.
func (w *Web) HostRoots(ctx context.Context) (json.RawMessage, error) {
	call, _ := ctx.Value(callKey{}).(*Call)
	if call != nil {
		if host, ok := call.Peer.(Rooted); ok {
			return host.HostRoots(ctx)
		}
	}
	return nil, errors.New("no host made this call that could be asked for its roots")
}

// Own reports whether requests to an address get what the entry says.
func (w *Web) Own(u *url.URL) bool { return origin(u) == w.own }

// Refusal returns the failure for an error status that is about the access of dynmcp rather than
// about the call: a missing login, or too many requests. It is nil for any other status.
func (w *Web) Refusal(resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusTooManyRequests,
		resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		return w.link.statusFailure(resp, nil)
	}
	return nil
}

// StatusFailure returns the failure for an error status.
func (w *Web) StatusFailure(resp *http.Response) error { return w.link.statusFailure(resp, nil) }

// ReadFailure returns the failure of an answer that could not be read.
func (w *Web) ReadFailure(err error) error { return (&exchange{link: w.link}).readFailure(err) }

// TooLarge returns the failure of an answer over the limit of a message.
func (w *Web) TooLarge() error {
	return w.ReadFailure(fmt.Errorf("an answer of more than %d bytes is %w", w.MaxBytes(), errTooLarge))
}

// MaxBytes is the largest answer.
func (w *Web) MaxBytes() int { return w.link.conn.server.MaxMessageBytes }

// Log returns the log of the server.
func (w *Web) Log() *slog.Logger { return w.link.conn.log }

// Notify passes a notification without params to those that use the server.
func (w *Web) Notify(method string) {
	if m, err := wire.Parse(bytes.Join(wire.Notification(wire.Quote(method)), nil)); err == nil {
		w.link.conn.receive(m, nil)
	}
}
