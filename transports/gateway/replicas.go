package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// Replicas configure a gateway that is one of several behind one address. Any replica accepts
// any request. A request of a session, or one that continues a call, is passed on to the
// replica that has the session or the call.
type Replicas struct {
	ID   string     // of this replica, contained in the ids of its sessions
	Name string     // of this replica, shown in /health
	Keys *seal.Keys // seal the ids of sessions; the same on all replicas
	// Pass returns a transport to another replica for requests of a principal; false if the
	// ID is unknown. The transport fails with a *transports.Failure with outcome NotSent if
	// the request did not reach the replica.
	Pass func(id, principal string) (http.RoundTripper, bool)
	// Other returns a transport to any replica that takes new sessions during our shutdown;
	// false if there is none.
	Other func(principal string) (http.RoundTripper, bool)
	// OwnerOf returns the replica with the call that a requestState continues (MCP 2026-07-28,
	// "Multi Round-Trip Requests"); false if the cluster did not issue the state.
	OwnerOf func(requestState string) (id string, ok bool)
	// DrainDelay is how long the gateway continues to serve when a shutdown begins. It must be
	// longer than the interval of the load balancer's requests to /health.
	DrainDelay time.Duration
	// Degraded reports whether the shared state of the replicas is unreachable.
	Degraded func() bool
}

// purposeSession is the purpose under which the ids of sessions are sealed.
const purposeSession = "session"

// sessionRandom is the number of random bytes in the id of a session.
const sessionRandom = 16

// A forwarder passes requests on to other replicas.
type forwarder struct {
	Replicas
	several bool // the gateway is one of several replicas
	running *counter
	leaving <-chan struct{}
	log     *slog.Logger

	// The passed requests end with these contexts: event streams that last until the host
	// closes them with lasting, all others with finishing.
	lasting, finishing       context.Context
	endLasting, endFinishing context.CancelFunc
}

func newForwarder(replicas *Replicas, running *counter, leaving <-chan struct{}, log *slog.Logger) *forwarder {
	f := &forwarder{Replicas: Replicas{Keys: seal.Random()}, several: replicas != nil, running: running, leaving: leaving, log: log}
	if replicas != nil {
		f.Replicas = *replicas
	}
	f.lasting, f.endLasting = context.WithCancel(context.Background())
	f.finishing, f.endFinishing = context.WithCancel(context.Background())
	return f
}

// newSessionID returns the id of a new session. Hosts can neither read nor forge it.
func (f *forwarder) newSessionID() string {
	plain := make([]byte, sessionRandom, sessionRandom+len(f.ID))
	_, _ = rand.Read(plain) // never fails
	return f.Keys.SealText(purposeSession, append(plain, f.ID...))
}

// ownerOf returns the replica that created a session, "" if the id is invalid.
func (f *forwarder) ownerOf(id string) string {
	plain, err := f.Keys.OpenText(purposeSession, id)
	if err != nil || len(plain) < sessionRandom {
		return ""
	}
	return string(plain[sessionRandom:])
}

// passedKey marks the context of a request that another replica has passed on. It is not
// passed on again.
type passedKey struct{}

// ServePassed serves a request that another replica has passed on. That replica has checked
// Host, Origin and token.
func (g *Gateway) ServePassed(w http.ResponseWriter, r *http.Request, principal string) {
	defer g.answerPanic(w, nil)
	g.access.noteCaller(r, principal, r.Header.Get(callerHeader))
	g.serve(w, r.WithContext(context.WithValue(r.Context(), passedKey{}, true)), principal)
}

// otherReplica returns the transport to the replica that a request is for, nil if that is this
// one. It decides by the header, before the body is read.
func (f *forwarder) otherReplica(r *http.Request, principal string) http.RoundTripper {
	if !f.several || r.Context().Value(passedKey{}) != nil {
		return nil
	}
	id := r.Header.Get("Mcp-Session-Id")
	if strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), "/message") {
		id = r.URL.Query().Get("sessionId")
	}
	if id != "" {
		return f.transportTo(f.ownerOf(id), principal)
	}
	select {
	case <-f.leaving:
		if to, ok := f.Other(principal); ok {
			return to
		}
	default:
	}
	return nil
}

// transportTo returns the transport to a replica, nil if that is this one or gone.
func (f *forwarder) transportTo(id, principal string) http.RoundTripper {
	if id == "" || id == f.ID {
		return nil
	}
	if to, ok := f.Pass(id, principal); ok {
		return to
	}
	return nil
}

// callReplica returns the transport to the replica with the call that a request continues, nil
// if that is this one.
func (f *forwarder) callReplica(r *http.Request, principal string, m wire.Message) http.RoundTripper {
	if !f.several || r.Context().Value(passedKey{}) != nil || f.OwnerOf == nil {
		return nil
	}
	state, ok := wire.Text(m.Outline.Get(m.Params, "requestState"))
	if !ok {
		return nil
	}
	owner, ok := f.OwnerOf(state)
	if !ok {
		return nil
	}
	return f.transportTo(owner, principal)
}

// pass passes a request on, and copies the response to the host as it comes. It returns false
// if the request reached no replica and the host got no response.
func (f *forwarder) pass(w http.ResponseWriter, r *http.Request, to http.RoundTripper) bool {
	// An event stream ends when our shutdown begins. The host reopens it on another replica.
	until := f.lasting
	if r.Method != http.MethodGet && r.Header.Get("Mcp-Method") != "subscriptions/listen" {
		f.running.add(1)
		defer f.running.add(-1)
		until = f.finishing
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(until, cancel)()

	body := &passedBody{ReadCloser: r.Body, whole: func() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // which serve has set
	}}
	defer body.end()
	out := r.WithContext(ctx)
	if out.Body != http.NoBody {
		out.Body = body
	}
	if 0 < r.ContentLength && r.ContentLength <= heldBody {
		// If the connection ends before the replica takes the request, the transport sends it
		// again, or this replica serves it.
		text, err := io.ReadAll(body)
		if err == nil {
			again := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
			out.Body, _ = again()
			out.GetBody = again
			r.Body, _ = again()
			body.begun.Store(false)
		} else {
			out.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text), failing{err}))
		}
	}
	unsent := false
	proxy := httputil.ReverseProxy{
		Transport:  to,
		BufferPool: passBuffers,
		ErrorLog:   slog.NewLogLogger(f.log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.RawQuery = p.In.URL.RawQuery // ReverseProxy removes what net/url cannot parse
			for _, name := range []string{"Authorization", "Cookie", "Expect"} {
				p.Out.Header.Del(name) // concern this hop only
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			over := until
			if until == f.finishing && r.Header.Get("Mcp-Session-Id") == "" {
				over = context.Background() // the host cannot resume the stream
			}
			resp.Body = &passedAnswer{ReadCloser: resp.Body, control: http.NewResponseController(w), over: over, host: r.Context(), lost: func(err error) []byte {
				id := body.id()
				if id == nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
					return nil
				}
				return append(append([]byte("event: message\ndata: "), f.cutOff(id, err)...), "\n\n"...)
			}}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			failure, ok := errors.AsType[*transports.Failure](err)
			if unsent = ok && failure.Outcome == transports.NotSent && !body.begun.Load(); !unsent && r.Context().Err() == nil {
				f.passFailed(w, r, body.id(), err)
			}
		},
	}
	proxy.ServeHTTP(w, out)
	return !unsent
}

// passFailed answers a passed request whose replica is gone, or that our shutdown interrupts.
// id is the id of its message, nil if unknown.
func (f *forwarder) passFailed(w http.ResponseWriter, r *http.Request, id []byte, err error) {
	switch {
	case isMeta(strings.TrimSuffix(r.URL.Path, "/")):
		metaError(w, http.StatusBadGateway, f.lost(err))
	case id != nil: // not a status that allows a retry, because the request may have run
		writeJSON(w, http.StatusOK, f.cutOff(id, err))
	case errors.Is(err, context.Canceled):
		deny(w, denial{status: http.StatusServiceUnavailable, code: transports.CodeShuttingDown, text: "dynmcp is shutting down", outcome: transports.Unknown})
	default:
		deny(w, denial{status: http.StatusNotFound, text: noSuchSession, outcome: transports.Unknown})
	}
}

// heldBody is the largest size of a body that is buffered before it is passed on, in bytes.
const heldBody = 1 << 20

// failing is an io.Reader that returns err.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// passMessage is pass for a request whose body was already read, as the message m.
func (f *forwarder) passMessage(w http.ResponseWriter, r *http.Request, to http.RoundTripper, m wire.Message) bool {
	out := *r
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(m.Raw)), int64(len(m.Raw))
	return f.pass(w, &out, to)
}

// lost returns the error for a passed request whose replica is gone before the answer, or that
// our shutdown interrupts.
func (f *forwarder) lost(err error) *wire.Error {
	outcome := transports.Unknown
	if failure, ok := errors.AsType[*transports.Failure](err); ok {
		outcome = failure.Outcome
	}
	if errors.Is(err, context.Canceled) {
		return transports.ShuttingDown(outcome)
	}
	f.log.Debug("a request was lost on its way to another replica", "err", err) // it has the address of the replica
	cause := errors.New("the replica that had the request has ended, or cannot be reached")
	return (&transports.Failure{Upstream: "dynmcp", Code: transports.CodeExited, Outcome: outcome, Cause: cause}).Wire()
}

// cutOff returns lost as the answer to the request with an id.
func (f *forwarder) cutOff(id []byte, err error) (answer []byte) {
	return bytes.Join(wire.Failure(id, f.lost(err)), nil)
}

// passBuffers are the buffers that answers are copied with.
var passBuffers = &bufferPool{sync.Pool{New: func() any { return new([32 << 10]byte) }}}

type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte  { return p.pool.Get().(*[32 << 10]byte)[:] }
func (p *bufferPool) Put(b []byte) { p.pool.Put((*[32 << 10]byte)(b)) }

// A passedBody is the body of a request that is passed on. It keeps the beginning and the end
// of the body, which have the id needed for an answer if the replica gives none.
type passedBody struct {
	io.ReadCloser
	whole func() // called when all of it was read, unless the request is over
	begun atomic.Bool

	mu         sync.Mutex
	ended      bool // the request is over
	head, tail []byte
}

func (b *passedBody) Read(p []byte) (int, error) {
	b.begun.Store(true)
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	read := p[:n]
	b.head = append(b.head, read[:min(n, excerptBytes-len(b.head))]...)
	if n >= excerptBytes {
		b.tail = append(b.tail[:0], read[n-excerptBytes:]...)
	} else {
		b.tail = append(b.tail[max(0, len(b.tail)+n-excerptBytes):], read...)
	}
	if err == io.EOF && !b.ended {
		b.whole()
	}
	return n, err
}

// Close does nothing: the body may still be read here if the request was not passed on.
func (b *passedBody) Close() error { return nil }

// end marks the request as over. From then on its connection serves the next request.
func (b *passedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// id returns the id of the request in the body, nil if the body is not a request.
func (b *passedBody) id() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return askedBy(b.head, b.tail)
}

// passFor is how long a host may leave a passed answer unread. It is longer than stall, so
// that the replica with the session is the one to detect a slow host.
const passFor = stall + 15*time.Second

// A passedAnswer is the answer to a request that was passed on.
type passedAnswer struct {
	io.ReadCloser
	control *http.ResponseController
	over    context.Context        // ends when the answer must end without an error, for the host to resume it
	host    context.Context        // ends when the host is gone
	lost    func(err error) []byte // returns the last event if the replica is gone; nil for none
	end     [2]byte                // the last bytes that were read
	rest    []byte                 // unread part of the last event
	ending  bool                   // the last event was begun
}

func (a *passedAnswer) Read(p []byte) (int, error) {
	if a.ending {
		n := copy(p, a.rest)
		if a.rest = a.rest[n:]; n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}
	n, err := a.ReadCloser.Read(p)
	_ = a.control.SetWriteDeadline(time.Now().Add(passFor))
	for _, c := range p[max(0, n-2):n] {
		a.end = [2]byte{a.end[1], c}
	}
	if err == nil || err == io.EOF || a.host.Err() != nil {
		return n, err
	}
	if a.over.Err() != nil {
		return n, io.EOF // a regular end, so that the host resumes the stream
	}
	if a.end == [2]byte{'\n', '\n'} || a.end == [2]byte{} {
		if a.rest = a.lost(err); a.rest != nil {
			a.ending = true
			return n, nil
		}
	}
	return n, err
}
