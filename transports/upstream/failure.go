package upstream

import (
	"errors"
	"runtime"
	"syscall"

	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/transports"
)

// errClosed is the Err of a connection on which Close was called.
var errClosed = errors.New("connection closed")

// ErrSessionLost is the Err of a connection whose session the upstream no longer knows
// (HTTP): a new connection is needed. A call that failed with it did not run if its outcome
// is NotSent.
var ErrSessionLost = errors.New("the server forgot the session")

// errVersionGone is the Err of a connection whose upstream no longer supports the negotiated
// version: a new connection is needed.
var errVersionGone = errors.New("the server no longer supports the protocol version of this connection")

// A reporter creates the failures of a connection.
type reporter struct {
	server string
	remote bool // not a child of ours
	redact *redact.Redactor
	stderr func() string // returns the last lines of a child
}

// Name returns the upstream's name in the config.
func (r *reporter) Name() string { return r.server }

// Stderr returns the last lines the child wrote to stderr, "" if there is no child.
func (r *reporter) Stderr() string { return r.stderr() }

// newFailure returns a failure of this connection.
func (r *reporter) newFailure(code int64, outcome transports.Outcome, cause error) *transports.Failure {
	f := &transports.Failure{Upstream: r.server, Code: code, Outcome: outcome, Cause: r.redacted(cause), Stderr: r.stderr()}
	f.Hint = packages.InstallHint(f.Stderr)
	return f
}

// noResources returns the failure for a lack of our own resources, which is not the upstream's
// fault.
func (r *reporter) noResources(cause error) *transports.Failure {
	f := r.newFailure(transports.CodeNoResources, transports.NotSent, cause)
	remedy := "raise the limits on open files and processes (ulimit -n, ulimit -u, the pids limit of a container)"
	switch {
	case errors.Is(cause, syscall.EMFILE), errors.Is(cause, syscall.ENFILE):
		remedy = "raise the limit on open files (ulimit -n)"
	case errors.Is(cause, syscall.EAGAIN):
		remedy = "raise the limit on processes (ulimit -u, or the pids limit of a container)"
	case errors.Is(cause, syscall.ENOMEM):
		remedy = "free some memory"
	case runtime.GOOS == "windows": // its error numbers differ
		remedy = "close other programs"
	}
	f.Hint = remedy + ", or have fewer servers loaded; the server is not at fault"
	return f
}

// endFailure returns the failure of a call on a connection that has ended because of cause.
func (r *reporter) endFailure(cause error, outcome transports.Outcome) *transports.Failure {
	if failure, ok := errors.AsType[*transports.Failure](cause); ok {
		copied := *failure
		copied.Outcome = outcome
		return &copied
	}
	code := int64(transports.CodeExited)
	switch {
	case errors.Is(cause, errClosed):
		code = transports.CodeShuttingDown
	case r.remote:
		code = transports.CodeUnreachable
	}
	return r.newFailure(code, outcome, cause)
}

// redacted returns err with secrets removed from its text: an upstream's message may repeat
// its input.
func (r *reporter) redacted(err error) error {
	text := err.Error()
	safe := r.redact.String(text)
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

// excerpt returns the first max bytes of text, printable and without secrets. Secrets are
// removed before the text is cut, because a truncated one is not recognised.
func (r *reporter) excerpt(text []byte, max int) string {
	safe := r.redact.String(string(text[:min(len(text), max+maxExcerpt)]))
	return transports.Printable([]byte(safe), max)
}

// maxExcerpt is how much of a text excerpt examines.
const maxExcerpt = 64 << 10
