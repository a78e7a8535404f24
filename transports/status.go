package transports

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"dynmcp/internal/wire"
)

// status turns an error status into a failure; x is the call's exchange, nil
// where there is none. A request that was refused for its session or its
// credentials did not run. Where the body is a JSON-RPC error that answers the
// call, that is the answer.
func (l *httpLink) status(resp *http.Response, x *exchange) error {
	patience := time.AfterFunc(farewell, func() { resp.Body.Close() })
	defer patience.Stop()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // as much as there is
	m, _ := wire.Parse(wire.Fold(body))
	cause := fmt.Errorf("HTTP status %s: %s", resp.Status, l.conn.excerpt(bytes.TrimSpace(body), 120))
	switch code := resp.StatusCode; {
	case l.session.Load() != nil && sessionGone(code, m):
		return l.sessionLost(x)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		f := l.conn.fail(CodeAuthRequired, NotSent, cause)
		f.Hint = fmt.Sprintf("check the headers of %q in the config", l.conn.name)
		return f
	case x != nil && m.Error != nil && x.isOwn(m.ID):
		return wire.ParseError(m.Error)
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		f := l.conn.fail(CodeRateLimited, NotSent, cause)
		f.Hint = retryHint(resp.Header.Get("Retry-After"))
		return f
	case code < 300:
		return l.conn.fail(CodeProtocol, Unknown, fmt.Errorf("no answer, but %w", cause))
	case code < 500:
		return l.conn.fail(CodeUnreachable, NotSent, cause)
	}
	return l.conn.fail(CodeUnreachable, Unknown, cause)
}

func (x *exchange) isOwn(raw []byte) bool {
	id, ok := callID(raw)
	return ok && id == x.id
}

// sessionGone reports whether an answer means that the session is not known
// any more. Servers made after the TypeScript SDK's examples say it with 400,
// in words.
func sessionGone(code int, m wire.Message) bool {
	if code != http.StatusBadRequest {
		return code == http.StatusNotFound
	}
	text, _ := wire.Text(wire.Get(m.Error, "message"))
	return string(m.ID) == "null" && bytes.Contains(bytes.ToLower([]byte(text)), []byte("session"))
}

// sessionLost ends the connection. The call that was told did not run; what
// else is in flight may have. Its end is told last: whoever then makes it again
// must find the connection gone.
func (l *httpLink) sessionLost(x *exchange) error {
	lost := l.conn.fail(CodeUnreachable, NotSent, ErrSessionLost)
	var told *Call
	if x != nil {
		told = l.conn.take(x.id)
	}
	l.conn.lose(ErrSessionLost)
	if told != nil {
		told.Done(nil, lost)
	}
	return lost
}

func retryHint(after string) string {
	if seconds, err := strconv.Atoi(after); err == nil {
		return fmt.Sprintf("try again in %d seconds", min(max(seconds, 0), 60))
	}
	return "try again later"
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

// neverSent reports whether an HTTP error means that nothing ran: the name, the
// connection or the TLS handshake failed, or the answer was to go elsewhere.
func neverSent(err error) bool {
	if errors.Is(err, errRedirect) {
		return true
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	return errors.As(err, &dns) || errors.As(err, &cert)
}
