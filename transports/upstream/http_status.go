package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dynmcp/dynmcp/internal/certs"
	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// statusFailure returns the failure for an error status. x is the call's exchange, or nil. If
// the body is a JSON-RPC error with the id of the call, it is returned. If the session is gone,
// the connection takes no new calls; calls in flight may still be answered.
func (l *httpLink) statusFailure(resp *http.Response, x *exchange) error {
	body := l.readExcerpt(resp)
	m, _ := wire.ParseWithin(wire.JoinLines(withoutBOM(body)), maxMessageDepth)
	if !utf8.Valid(m.Raw) {
		m = l.conn.invalid.replace(m)
	}
	says := l.conn.excerpt(bytes.TrimSpace(body), 120)
	if mediaType(resp) == "text/html" {
		says = "a page for browsers; check the url"
	}
	var cause error = &StatusError{resp.StatusCode, "HTTP status " + resp.Status + ": " + says + l.ledTo(resp.Request)}
	code := resp.StatusCode
	id, isID := transports.ParseID(m.ID)
	switch {
	case l.session.Load() != nil && sessionGone(code, m):
		l.conn.retire(ErrSessionLost) // first: a repeated call must not find the connection usable
		outcome := outcomeOf(code)
		if code == http.StatusNotFound {
			outcome = transports.NotSent
		}
		return l.conn.newFailure(transports.CodeUnreachable, outcome, ErrSessionLost)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		f := l.conn.newFailure(transports.CodeAuthRequired, outcomeOf(code), cause)
		f.Hint, f.Login = l.loginHint(resp)
		return f
	case x != nil && m.Error != nil && isID && id == x.id:
		return l.conn.refusal(wire.ParseError(m.Error))
	case code == http.StatusLoopDetected && m.Error != nil:
		f := l.conn.newFailure(transports.CodeStartFailed, transports.NotSent, errors.New(wire.ParseError(m.Error).Message))
		f.Hint = "remove the entry that leads back to this config"
		return f
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		f := l.conn.newFailure(transports.CodeRateLimited, outcomeOf(code), cause)
		f.Hint = "try again later"
		if f.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now()); f.RetryAfter != 0 {
			f.Hint = fmt.Sprintf("try again in %.0f seconds", math.Ceil(f.RetryAfter.Seconds()))
		}
		if f.Outcome != transports.NotSent {
			f.Hint = transports.LookFirst + "; " + f.Hint
		}
		return f
	case code < 300:
		return l.conn.newFailure(transports.CodeProtocol, transports.Unknown, fmt.Errorf("no answer, but %w", cause))
	}
	f := l.conn.newFailure(transports.CodeUnreachable, outcomeOf(code), cause)
	if l.named(resp.Request) && code == http.StatusNotFound {
		f.Hint = "tell the server the path that it is mounted at, or write a url at which it is not behind a prefix"
	}
	return f
}

// named reports whether a request went to the address that the upstream named (SSE).
func (l *httpLink) named(req *http.Request) bool {
	return req.Method == http.MethodPost && l.postURL != l.url
}

// ledTo describes the address of a request and what led to it, "" for the one of the config.
func (l *httpLink) ledTo(req *http.Request) string {
	switch {
	case l.named(req):
		return fmt.Sprintf(" (POST %s, as the endpoint event of its stream says)", place(req.URL))
	case req.Response != nil:
		return fmt.Sprintf(" (%s %s, after a redirect with HTTP status %d)", req.Method, place(req.URL), req.Response.StatusCode)
	}
	return ""
}

// A StatusError is the error status of an answer.
type StatusError struct {
	Code int
	text string
}

func (e *StatusError) Error() string { return e.text }

// MayNeedSSE reports whether err, from Handshake, is that of a server with HTTP with SSE, which
// refuses a POST to the address of its stream (MCP 2025-11-25, "Backwards Compatibility").
func MayNeedSSE(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}, status.Code)
}

// outcomeOf returns the outcome of a call for a status. A server sends a status that rejects the
// request itself before the call runs. Others, including those of a proxy, may come later.
func outcomeOf(code int) transports.Outcome {
	switch code {
	case http.StatusUnauthorized, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusTooManyRequests:
		return transports.NotSent
	}
	return transports.Unknown
}

// sessionGone reports whether an answer means that the session is no longer known. Servers
// modelled on the TypeScript SDK's examples answer 400, with a message to that effect.
func sessionGone(code int, m wire.Message) bool {
	if code != http.StatusBadRequest {
		return code == http.StatusNotFound
	}
	text, _ := wire.Text(wire.Get(m.Error, "message"))
	return string(m.ID) == "null" && bytes.Contains(bytes.ToLower([]byte(text)), []byte("session"))
}

// loginHint returns what to check, with the missing scopes if the upstream names them (RFC 6750,
// 3), and whether a person's login would help.
func (l *httpLink) loginHint(resp *http.Response) (hint string, login bool) {
	if l.conn.opts.Login.Hint != nil {
		if hint, login = l.conn.opts.Login.Hint(resp); hint != "" {
			return hint, login
		}
	}
	hint = fmt.Sprintf("check the headers of %q in the config: the server does not accept them", l.conn.server.Name)
	challenges, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate")) // an unreadable challenge is ignored
	for _, c := range challenges {
		if scopes := c.Params["scope"]; scopes != "" {
			return hint + "; it asks for the scopes " + l.conn.excerpt([]byte(scopes), 200), false
		}
	}
	return hint, false
}

// retryMost limits the wait that a caller is told, whatever the upstream requests.
const retryMost = time.Minute

// retryAfter reads a Retry-After header, which holds seconds or a date (RFC 9110, 10.2.3). It
// returns 0 for any other text.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil {
		return time.Duration(min(max(seconds, 0), int(retryMost/time.Second))) * time.Second
	}
	if date, err := http.ParseTime(header); err == nil {
		return min(max(date.Sub(now), 0), retryMost)
	}
	return 0
}

// readExcerpt returns the beginning of a body for display.
func (l *httpLink) readExcerpt(resp *http.Response) []byte {
	late := time.AfterFunc(l.conn.opts.timing.bestEffort, func() { resp.Body.Close() })
	defer late.Stop()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxExcerpt))
	return text
}

// requestFailure returns the failure of a request without an answer, and whether it may have
// run.
func (l *httpLink) requestFailure(err error) error {
	if err := markDial(err); errors.Is(err, guard.ErrResources) {
		return l.conn.noResources(err)
	}
	if failure, ok := errors.AsType[*transports.Failure](err); ok { // of the login
		failure.Cause = l.conn.redacted(failure.Cause)
		return failure
	}
	outcome := transports.Unknown
	if _, ok := errors.AsType[notSentError](err); ok {
		outcome = transports.NotSent
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok && lookup.IsNotFound {
		err = fmt.Errorf("there is no host %s", lookup.Name) // without the resolver's address
	}
	f := l.conn.newFailure(transports.CodeUnreachable, outcome, err)
	f.Hint = certs.Hint(err)
	if refused, ok := errors.AsType[*redirectError](err); ok {
		f.Cause, f.Hint = l.conn.redacted(refused), "write that address as its url in the config"
		if refused.leaves() {
			f.Hint = "if it has moved there, write its new address as its url in the config"
		}
	}
	return f
}

// markDial marks an error of making a connection that is a lack of our own resources. Go's
// resolver reports its cause only as text.
func markDial(err error) error {
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup) && strings.Contains(lookup.Err, syscall.EMFILE.Error()):
		return guard.MarkResources(fmt.Errorf("look up %s: %w", lookup.Name, syscall.EMFILE))
	case isRefused(err):
		return guard.MarkResources(err)
	}
	return err
}

// isRefused reports whether no connection could be made and nothing of the request was sent. It
// is false after a redirect, or if dialling timed out.
func isRefused(err error) bool {
	var op *net.OpError
	return errors.As(err, &notSentError{}) && errors.As(err, &op) && op.Op == "dial" && !op.Timeout()
}
