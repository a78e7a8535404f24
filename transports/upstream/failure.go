package upstream

import (
	"errors"
	"syscall"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// errClosed ends the calls of a connection that we closed.
var errClosed = errors.New("connection closed")

// ErrSessionLost is the Err of a connection whose session the upstream no longer
// knows (HTTP): a new connection is due. A call that failed with it did not run
// if its outcome is NotSent.
var ErrSessionLost = errors.New("the upstream forgot the session")

// errVersionGone is the Err of a connection whose upstream no longer speaks the
// version that the two agreed on: a new connection is due.
var errVersionGone = errors.New("the upstream no longer speaks the protocol version of this connection")

// refusal returns the error with which an upstream answers a call. One which says
// that the version of the connection is not spoken any more, and names another that
// we speak, is the connection's: the upstream was replaced by another release.
func (c *Conn) refusal(err *wire.Error) error {
	agreed := c.agreed.Load()
	if agreed == nil || namedVersion(err, func(version string) bool { return version != *agreed }) == "" ||
		namedVersion(err, func(version string) bool { return version == *agreed }) != "" {
		return err
	}
	c.retire(errVersionGone) // first: whoever repeats the call must not find the connection usable
	return c.newFailure(transports.CodeProtocol, transports.NotSent, errVersionGone)
}

// newFailure returns a failure of this connection.
func (c *Conn) newFailure(code int64, outcome transports.Outcome, cause error) *transports.Failure {
	f := &transports.Failure{Upstream: c.server.Name, Code: code, Outcome: outcome, Cause: c.redacted(cause), Stderr: c.Stderr()}
	f.Hint = installHint(f.Stderr)
	return f
}

// noResources returns the failure of what the system denies us the means for,
// which the upstream has no part in.
func (c *Conn) noResources(cause error) *transports.Failure {
	f := c.newFailure(transports.CodeNoResources, transports.NotSent, cause)
	remedy := "raise the limits on open files and processes (ulimit -n, ulimit -u, the pids limit of a container)"
	switch {
	case errors.Is(cause, syscall.EMFILE), errors.Is(cause, syscall.ENFILE):
		remedy = "raise the limit on open files (ulimit -n)"
	case errors.Is(cause, syscall.EAGAIN):
		remedy = "raise the limit on processes (ulimit -u, or the pids limit of a container)"
	case errors.Is(cause, syscall.ENOMEM):
		remedy = "free some memory"
	}
	f.Hint = remedy + ", or have fewer servers loaded; the server is not at fault"
	return f
}

// endFailure describes why a call on a connection that has ended because of
// cause cannot be answered.
func (c *Conn) endFailure(cause error, outcome transports.Outcome) *transports.Failure {
	if failure, ok := errors.AsType[*transports.Failure](cause); ok {
		copied := *failure
		copied.Outcome = outcome
		return &copied
	}
	code := int64(transports.CodeExited)
	switch {
	case errors.Is(cause, errClosed):
		code = transports.CodeShuttingDown
	case c.server.Transport != schema.Stdio:
		code = transports.CodeUnreachable
	}
	return c.newFailure(code, outcome, cause)
}

// redacted returns err with a text that holds no secrets: what an upstream says
// may repeat what it was given.
func (c *Conn) redacted(err error) error {
	text := err.Error()
	safe := c.opts.Redact.String(text)
	if safe == text {
		return err
	}
	return &redactedError{safe, err}
}

type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

// excerpt returns the first max bytes of text, printable and without secrets.
// Those are looked for before the text is cut, so that none loses the end by
// which it is known.
func (c *Conn) excerpt(text []byte, max int) string {
	safe := c.opts.Redact.String(string(text[:min(len(text), max+maxExcerpt)]))
	return transports.Printable([]byte(safe), max)
}

// maxExcerpt is how much of a text excerpt looks at.
const maxExcerpt = 64 << 10
