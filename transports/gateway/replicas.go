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

// Replicas say how a gateway is one of several behind one address, of which any takes
// any request: those of a session, or about a call that waits for its host, are passed
// on to the replica that has it.
type Replicas struct {
	ID   string     // of this one; the ids of its sessions hold it
	Name string     // of this one, for people: /health says it
	Keys *seal.Keys // the ids of sessions are sealed with them; all replicas have the same
	// Pass returns what brings requests of a principal to another replica; false is
	// that the ID is unknown. A request that did not reach it has to fail with a
	// *transports.Failure which says NotSent.
	Pass func(id, principal string) (http.RoundTripper, bool)
	// Other returns the same for a replica that begins what we, which are about to end,
	// should not; false if absent.
	Other func(principal string) (http.RoundTripper, bool)
	// OwnerOf returns the replica that has the call which a requestState continues (MCP
	// 2026-07-28, "Multi Round-Trip Requests"); false if it is not ours.
	OwnerOf func(requestState string) (id string, ok bool)
	// DrainDelay is how long we serve on when we are about to end: in which a balancer has
	// to have asked for /health.
	DrainDelay time.Duration
	// Degraded reports whether what replicas share cannot be reached now.
	Degraded func() bool
}

// purposeSession is what the ids of sessions are sealed for.
const purposeSession = "session"

// sessionRandom is how many bytes of the id of a session nobody guesses.
const sessionRandom = 16

// A forwarder passes requests on to the replicas that they are for.
type forwarder struct {
	Replicas
	several bool // there are others
	running *counter
	leaving <-chan struct{}
	log     *slog.Logger

	// What was passed on ends with these: answers that last until the host ends them, and
	// all others.
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

// newSessionID returns the id of a new session of ours. Hosts cannot read it, nor make one.
func (f *forwarder) newSessionID() string {
	plain := make([]byte, sessionRandom, sessionRandom+len(f.ID))
	_, _ = rand.Read(plain) // never fails
	return f.Keys.SealText(purposeSession, append(plain, f.ID...))
}

// ownerOf returns the replica that made the id of a session, "" where none of ours did.
func (f *forwarder) ownerOf(id string) string {
	plain, err := f.Keys.OpenText(purposeSession, id)
	if err != nil || len(plain) < sessionRandom {
		return ""
	}
	return string(plain[sessionRandom:])
}

// passedKey marks the context of a request that another replica has passed on to us: it
// is answered here, whatever the answer is.
type passedKey struct{}

// ServePassed serves a request that another replica, which has checked where it came
// from and who made it, has passed on.
func (g *Gateway) ServePassed(w http.ResponseWriter, r *http.Request, principal string) {
	defer g.answerPanic(w, nil)
	g.serve(w, r.WithContext(context.WithValue(r.Context(), passedKey{}, true)), principal)
}

// elsewhere returns what brings a request to the replica that it is for, by its header
// and before its body is read; nil is that it is for us.
func (f *forwarder) elsewhere(r *http.Request, who string) http.RoundTripper {
	if !f.several || r.Context().Value(passedKey{}) != nil {
		return nil
	}
	id := r.Header.Get("Mcp-Session-Id")
	if strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), "/message") {
		id = r.URL.Query().Get("sessionId")
	}
	if id != "" {
		return f.toOwner(f.ownerOf(id), who)
	}
	select {
	case <-f.leaving:
		if to, ok := f.Other(who); ok {
			return to
		}
	default:
	}
	return nil
}

// toOwner returns what brings a request to a replica, nil where that is us or gone.
func (f *forwarder) toOwner(id, who string) http.RoundTripper {
	if id == "" || id == f.ID {
		return nil
	}
	if to, ok := f.Pass(id, who); ok {
		return to
	}
	return nil
}

// continues returns what brings a request to the replica that has the call which it
// continues; nil is that it is for us.
func (f *forwarder) continues(r *http.Request, who string, m wire.Message) http.RoundTripper {
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
	return f.toOwner(owner, who)
}

// pass passes a request on, and what it is answered with back, as it comes. It reports
// false where nothing of it has reached anybody, nor any answer the host.
func (f *forwarder) pass(w http.ResponseWriter, r *http.Request, to http.RoundTripper) bool {
	// What lasts ends when we begin to: the host opens it again elsewhere.
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
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // of serve
	}}
	defer body.end()
	out := r.WithContext(ctx)
	if out.Body != http.NoBody {
		out.Body = body
	}
	if 0 < r.ContentLength && r.ContentLength <= heldBody {
		// A connection may end on which it was sent, but not taken: then it is sent again,
		// or served by us.
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
			p.Out.URL.RawQuery = p.In.URL.RawQuery // also what net/url would not take
			for _, name := range []string{"Authorization", "Cookie", "Expect"} {
				p.Out.Header.Del(name) // were for us
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			over := until
			if until == f.finishing && r.Header.Get("Mcp-Session-Id") == "" {
				over = context.Background() // the host cannot come back for the answer
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

// passFailed answers a request, of the message with that id, that was passed on to a
// replica which is gone, or given up at our end.
func (f *forwarder) passFailed(w http.ResponseWriter, r *http.Request, id []byte, err error) {
	switch {
	case isMeta(strings.TrimSuffix(r.URL.Path, "/")):
		metaError(w, http.StatusBadGateway, f.lost(err))
	case id != nil: // no status that says to try again: it may have run
		writeJSON(w, http.StatusOK, f.cutOff(id, err))
	case errors.Is(err, context.Canceled):
		deny(w, denial{status: http.StatusServiceUnavailable, code: transports.CodeShuttingDown, text: "dynmcp is shutting down", outcome: transports.Unknown})
	default:
		deny(w, denial{status: http.StatusNotFound, text: noSuchSession, outcome: transports.Unknown})
	}
}

// heldBody is how long a body may be that is read whole before it is passed on.
const heldBody = 1 << 20

// failing is the end of a body that breaks off.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// passMessage is pass for a request whose body was read: a message.
func (f *forwarder) passMessage(w http.ResponseWriter, r *http.Request, to http.RoundTripper, m wire.Message) bool {
	out := *r
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(m.Raw)), int64(len(m.Raw))
	return f.pass(w, &out, to)
}

// lost is the error for a request whose replica is gone before it has answered, or which
// we give up at our end.
func (f *forwarder) lost(err error) *wire.Error {
	outcome := transports.Unknown
	if failure, ok := errors.AsType[*transports.Failure](err); ok {
		outcome = failure.Outcome
	}
	if errors.Is(err, context.Canceled) {
		return transports.ShuttingDown(outcome)
	}
	f.log.Debug("a request was lost on its way to another replica", "err", err) // which has its address
	cause := errors.New("the replica that had the request has ended, or cannot be reached")
	return (&transports.Failure{Upstream: "dynmcp", Code: transports.CodeExited, Outcome: outcome, Cause: cause}).Wire()
}

func (f *forwarder) cutOff(id []byte, err error) (answer []byte) {
	return bytes.Join(wire.Failure(id, f.lost(err)), nil)
}

// passBuffers are what answers are copied with.
var passBuffers = &bufferPool{sync.Pool{New: func() any { return new([32 << 10]byte) }}}

type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte  { return p.pool.Get().(*[32 << 10]byte)[:] }
func (p *bufferPool) Put(b []byte) { p.pool.Put((*[32 << 10]byte)(b)) }

// A passedBody is the body of a request that is passed on. It keeps its two ends, by
// which the request can be answered if its replica cannot.
type passedBody struct {
	io.ReadCloser
	whole func() // called when all of it was read, unless that is too late
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

// Close leaves the body to the one that serves the request: it may be read yet.
func (b *passedBody) Close() error { return nil }

// end says that the request is over: the connection is for the next one.
func (b *passedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// id returns that of the request that the body is, nil otherwise.
func (b *passedBody) id() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return askedBy(b.head, b.tail)
}

// passFor is how long a host may leave unread what was passed on for it: longer than
// stall, so that the replica which has its session finds it to be slow.
const passFor = stall + 15*time.Second

// A passedAnswer is the answer to a request that was passed on.
type passedAnswer struct {
	io.ReadCloser
	control *http.ResponseController
	over    context.Context        // ends when the answer is to end as it is, for the host to come back
	host    context.Context        // ends when the host is gone
	lost    func(err error) []byte // what to say last when the replica is gone; nil is nothing
	end     [2]byte                // what was read last
	rest    []byte                 // of what is said last
	said    bool
}

func (a *passedAnswer) Read(p []byte) (int, error) {
	if a.said {
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
		return n, io.EOF // properly, so that the host comes back for the rest
	}
	if a.end == [2]byte{'\n', '\n'} || a.end == [2]byte{} {
		if a.rest = a.lost(err); a.rest != nil {
			a.said = true
			return n, nil
		}
	}
	return n, err
}
