package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"dynmcp/internal/guard"
	"dynmcp/internal/wire"
	"dynmcp/transports"
)

// statusFailure turns an error status into a failure; x is the call's exchange,
// nil if there is none. A request that was refused for its session or its
// credentials did not run. If the body is a JSON-RPC error that answers the call,
// that is the answer.
func (l *httpLink) statusFailure(resp *http.Response, x *exchange) error {
	body := l.readExcerpt(resp)
	m, _ := wire.Parse(wire.JoinLines(body))
	cause := fmt.Errorf("HTTP status %s: %s", resp.Status, l.conn.excerpt(bytes.TrimSpace(body), 120))
	switch code := resp.StatusCode; {
	case l.session.Load() != nil && sessionGone(code, m):
		return l.sessionLost(x)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		f := l.conn.newFailure(transports.CodeAuthRequired, transports.NotSent, cause)
		f.Hint = l.loginHint(resp)
		return f
	case x != nil && m.Error != nil && x.isOwn(m.ID):
		return wire.ParseError(m.Error)
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		f := l.conn.newFailure(transports.CodeRateLimited, transports.NotSent, cause)
		f.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
		f.Hint = retryHint(f.RetryAfter)
		return f
	case code < 300:
		return l.conn.newFailure(transports.CodeProtocol, transports.Unknown, fmt.Errorf("no answer, but %w", cause))
	case code < 500:
		return l.conn.newFailure(transports.CodeUnreachable, transports.NotSent, cause)
	}
	return l.conn.newFailure(transports.CodeUnreachable, transports.Unknown, cause)
}

func (x *exchange) isOwn(raw []byte) bool {
	id, ok := transports.ParseID(raw)
	return ok && id == x.id
}

// sessionGone reports whether an answer means that the session is no longer
// known. Servers modelled on the TypeScript SDK's examples answer 400 and say so
// in the message.
func sessionGone(code int, m wire.Message) bool {
	if code != http.StatusBadRequest {
		return code == http.StatusNotFound
	}
	text, _ := wire.Text(wire.Get(m.Error, "message"))
	return string(m.ID) == "null" && bytes.Contains(bytes.ToLower([]byte(text)), []byte("session"))
}

// sessionLost ends the connection. The call that was answered so did not run;
// others in flight may have. It ends last: whoever then repeats it must find the
// connection gone.
func (l *httpLink) sessionLost(x *exchange) error {
	lost := l.conn.newFailure(transports.CodeUnreachable, transports.NotSent, ErrSessionLost)
	var refused *Call
	if x != nil {
		refused = l.conn.calls.take(x.id, nil)
	}
	l.conn.end(ErrSessionLost)
	if refused != nil {
		refused.Done(nil, lost)
	}
	return lost
}

// loginHint says what to look at, and what the login lacks if the upstream says
// so (RFC 6750, 3).
func (l *httpLink) loginHint(resp *http.Response) string {
	hint := fmt.Sprintf("check the headers of %q in the config", l.conn.name)
	challenges, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate")) // a challenge that cannot be read says nothing
	for _, c := range challenges {
		if scopes := c.Params["scope"]; scopes != "" {
			return hint + ": what they hold needs the scopes " + l.conn.excerpt([]byte(scopes), 200)
		}
	}
	return hint
}

// retryMost is how long a caller is told to wait at most, whatever the upstream
// says.
const retryMost = time.Minute

// retryAfter reads a Retry-After header, which holds seconds or a date (RFC
// 9110, 10.2.3); 0 means it says nothing.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil {
		return time.Duration(min(max(seconds, 0), int(retryMost/time.Second))) * time.Second
	}
	if date, err := http.ParseTime(header); err == nil {
		return min(max(date.Sub(now), 0), retryMost)
	}
	return 0
}

func retryHint(after time.Duration) string {
	if after == 0 {
		return "try again later"
	}
	return fmt.Sprintf("try again in %d seconds", int(math.Ceil(after.Seconds())))
}

// readExcerpt returns the beginning of a body that is only to be shown.
func (l *httpLink) readExcerpt(resp *http.Response) []byte {
	late := time.AfterFunc(l.conn.opts.timing.bestEffort, func() { resp.Body.Close() })
	defer late.Stop()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxExcerpt))
	return text
}

// requestFailure describes why a request got no answer, and whether it can have
// run.
func (l *httpLink) requestFailure(err error) error {
	if err := markDial(err); errors.Is(err, guard.ErrResources) {
		return l.conn.noResources(err)
	}
	outcome := transports.Unknown
	if errors.As(err, &notSentError{}) {
		outcome = transports.NotSent
	}
	return l.conn.newFailure(transports.CodeUnreachable, outcome, err)
}

// markDial marks an error of making a connection that is a lack of resources of
// our own. What Go's resolver met with it tells in words only.
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

// isRefused reports whether no connection could be made, and that was known soon
// enough for another attempt.
func isRefused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout()
}
