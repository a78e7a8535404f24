package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// httpTimeouts limits how long an upstream may stall in the middle of an answer. Before an
// answer begins and between two events it may be silent for any time: it may be working,
// and "timeout" limits that.
type httpTimeouts struct {
	header time.Duration // from the header's first byte to its last; also for the answer to a ping
	body   time.Duration // within a body that is not an event stream, and within an event
	ping   time.Duration // HTTP/2: silence of the whole connection after which it is pinged
}

var defaultHTTPTimeouts = httpTimeouts{header: 15 * time.Second, body: 60 * time.Second, ping: 30 * time.Second}

// errStalled ends a request whose answer stopped in the middle.
var errStalled = errors.New("stalled")

// errNoRoom ends a call whose answer exceeds the memory left for its host.
var errNoRoom = errors.New(`larger than what is left for its host of "max_held_bytes"`)

// countedFrom is the size from which the bytes of an answer are reported.
const countedFrom = 64 << 10

// errSentBefore ends a request that net/http would send a second time although it may have
// run. It does so if the upstream resets an HTTP/2 stream with PROTOCOL_ERROR, or if the
// config has a header Idempotency-Key.
var errSentBefore = errors.New("the connection broke before the answer")

// A notSentError is the error of a request that did not reach the upstream.
type notSentError struct{ error }

func (e notSentError) Unwrap() error { return e.error }

// fetch sends a request, once. Neither the header of the answer nor its body, which is an
// *answerBody, may stall. The error is a notSentError if nothing of the request reached the
// upstream.
func (l *httpLink) fetch(req *http.Request) (*http.Response, error) {
	return fetch(l.conn, l.client, req)
}

func fetch(c *Conn, client *http.Client, req *http.Request) (*http.Response, error) {
	a := newAttempt(req.Context(), c.opts.timing.http, &c.health.activity)
	a.empty = req.GetBody == nil && req.Context().Value(callKey{}) != nil
	req = req.WithContext(httptrace.WithClientTrace(a.ctx, a.trace()))
	req.GetBody = a.once(req.GetBody)
	resp, err := client.Do(req)
	a.timer.Stop()
	if err != nil {
		err = a.failed(a.stallOr(err))
		a.cancel(nil)
		return nil, err
	}
	a.inBody.Store(true)
	resp.Body = newAnswerBody(resp.Body, a)
	return resp, nil
}

// An attempt watches a request until its answer has been read.
type attempt struct {
	ctx      context.Context // the request's
	cancel   context.CancelCauseFunc
	timeouts httpTimeouts
	activity *atomic.Int64 // health.activity of the connection
	timer    *time.Timer   // runs while a header arrives, and while the body must not stall
	written  atomic.Bool   // part of the request was written
	answered atomic.Bool   // a header has begun to arrive
	inBody   atomic.Bool   // it has arrived
	empty    bool          // a request of a call that has no body, whose GetBody could refuse to repeat it
}

func newAttempt(ctx context.Context, timeouts httpTimeouts, activity *atomic.Int64) *attempt {
	a := &attempt{timeouts: timeouts, activity: activity}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.timer = time.AfterFunc(timeouts.header, a.stalled)
	a.timer.Stop()
	return a
}

// stalled ends a request whose answer stopped in the middle.
func (a *attempt) stalled() {
	if a.inBody.Load() {
		a.cancel(fmt.Errorf("the answer %w: nothing more of it came for %s", errStalled, a.timeouts.body))
		return
	}
	a.cancel(fmt.Errorf("the answer %w: the rest of its header did not come for %s", errStalled, a.timeouts.header))
}

// stallOr returns why this attempt itself ended the request, or err if it did not.
func (a *attempt) stallOr(err error) error {
	if cause := context.Cause(a.ctx); errors.Is(cause, errStalled) || errors.Is(cause, errSentBefore) {
		return cause
	}
	return err
}

func (a *attempt) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { // also when a redirect is followed
			if a.empty && a.written.Load() && !a.answered.Load() {
				a.cancel(errSentBefore)
			}
			a.reset()
		},
		GotConn: func(got httptrace.GotConnInfo) {
			if errors.Is(context.Cause(a.ctx), errSentBefore) && !speaksHTTP2(got.Conn) {
				got.Conn.Close() // net/http uses a connection that is ready, also if the context has ended
			}
		},
		WroteHeaders: func() { a.written.Store(true) },
		GotFirstResponseByte: func() {
			a.activity.Add(1)
			a.answered.Store(true)
			a.timer.Reset(a.timeouts.header)
		},
		// After an interim answer, the next may take any time.
		Got1xxResponse: func(int, textproto.MIMEHeader) error { a.reset(); return nil },
	}
}

// speaksHTTP2 reports whether other requests use a connection, too. They look at the context before they write.
func speaksHTTP2(conn net.Conn) bool {
	over, ok := conn.(interface{ ConnectionState() tls.ConnectionState })
	return ok && over.ConnectionState().NegotiatedProtocol == "h2"
}

// reset waits for the first byte of an answer.
func (a *attempt) reset() {
	a.timer.Stop()
	a.answered.Store(false)
}

// once returns a GetBody that returns the body a second time only for a redirect, or if
// nothing of the request was written.
func (a *attempt) once(body func() (io.ReadCloser, error)) func() (io.ReadCloser, error) {
	if body == nil {
		return nil
	}
	return func() (io.ReadCloser, error) {
		if a.written.Load() && !a.answered.Load() {
			return nil, errSentBefore
		}
		return body()
	}
}

// failed returns err without the URL, which may hold a secret; a notSentError if nothing was
// written.
func (a *attempt) failed(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if !a.written.Load() {
		return notSentError{err}
	}
	return err
}

// An answerBody is the body of an HTTP answer, which must not stall.
type answerBody struct {
	io.ReadCloser
	attempt        *attempt
	silenceAllowed bool                // the upstream may be silent now
	mayRead        func(size int) bool // see Call.MayRead
	size           int                 // bytes read and not handled
	closed         atomic.Bool         // set by any goroutine, not only the reader
}

func newAnswerBody(body io.ReadCloser, a *attempt) *answerBody {
	var counted wire.MemoryCounter
	return &answerBody{ReadCloser: body, attempt: a, mayRead: func(size int) bool { counted.Set(size); return true }}
}

// readFor counts further reads with the MayRead of a call, if it has one. call may be nil.
func (b *answerBody) readFor(call *Call) {
	if call != nil && call.MayRead != nil {
		b.mayRead = call.MayRead
	}
}

func (b *answerBody) Read(p []byte) (int, error) {
	if !b.silenceAllowed {
		b.attempt.timer.Reset(b.attempt.timeouts.body)
		defer b.attempt.timer.Stop()
	}
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.attempt.activity.Add(1)
		if b.size += n; b.size > countedFrom && !b.mayRead(b.size) {
			return n, errNoRoom
		}
		if b.closed.Load() {
			b.handled()
		}
	}
	if err != nil && err != io.EOF {
		err = b.attempt.stallOr(err)
	}
	return n, err
}

// handled records that the bytes read so far no longer use memory.
func (b *answerBody) handled() {
	b.size = 0
	b.mayRead(0)
}

func (b *answerBody) Close() error {
	b.closed.Store(true)
	b.mayRead(0)
	defer b.attempt.cancel(nil)
	return b.ReadCloser.Close()
}
