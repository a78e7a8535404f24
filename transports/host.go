package transports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/internal/wire"
)

// The limits of a host on stdio.
const (
	hostMaxMessage = 64 << 20                // the upstreams' own limits are lower
	hostMaxQueued  = 16 << 20                // what may wait for the host before we stop reading it
	hostMaxUnread  = 4 * hostMaxQueued       // what may wait before upstreams are not read either
	hostStall      = 60 * time.Second        // how long the host may leave its end unread
	lastAnswers    = 1500 * time.Millisecond // for calls in flight when the host is gone
	lastWords      = 450 * time.Millisecond  // for what is said of those that took longer
)

// HostOptions say who answers a host.
type HostOptions struct {
	// Control answers the handshake, the lists and subscriptions.
	Control *mcp.Server
	// Handle takes every other request. It is called in the order of the wire
	// and must not block; Request.Reply may be called from anywhere.
	Handle func(*Request)
	// Notice takes the host's notifications, in the order of the wire.
	Notice func(method string, params json.RawMessage)
	// Busy reports whether requests wait for an upstream to start, so that a
	// host that closed its end early still gets its answers. Nil is never.
	Busy func() bool
	// Cork holds back what is sent to the host and what its messages lead to,
	// while those of one read are handled. Nil is none.
	Cork *wire.Cork
	// Logger may be nil.
	Logger *slog.Logger
}

// A Host is one MCP host on a pair of streams, one message a line. It is the
// Peer of upstreams that talk to this host.
//
// Reading is in this file, what is in flight in inflight.go, writing in
// outgoing.go, what we ask the host in asks.go.
type Host struct {
	id   string
	opts HostOptions
	log  *slog.Logger
	in   *wire.Reader
	out  *wire.Writer
	sdk  *controlConn
	gone chan struct{} // closed when the host says nothing more

	answerer  func(*Request, json.RawMessage, error) // answer, made once
	answering sync.WaitGroup                         // answers that have left the table and are not written

	mu       sync.Mutex
	begun    bool                // initialize or a request of the stateless era was seen
	open     bool                // what is not the answer to initialize may be written
	ending   bool                // nothing more is taken
	version  string              // what initialize settled on
	held     [][][]byte          // until open
	heldSize int                 // its bytes
	early    int                 // what was taken since initialize began and until open, in bytes
	opened   sync.Cond           // on mu: open or ending may have changed
	requests map[string]*Request // in flight, by their id as it was sent
	idle     chan struct{}       // not nil while someone waits for the last answer
	dropped  int                 // notifications
	lastID   int64
	asks     map[int64]chan<- wire.Message // what we asked the host
}

// NewHost returns the host that writes to in and reads out. id names it to
// the SDK.
func NewHost(id string, in io.Reader, out io.Writer, opts HostOptions) *Host {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Host{
		id:       id,
		opts:     opts,
		log:      opts.Logger,
		in:       wire.NewReader(in, hostMaxMessage),
		out:      wire.NewWriter(out, hostStall),
		gone:     make(chan struct{}),
		requests: map[string]*Request{},
		asks:     map[int64]chan<- wire.Message{},
	}
	h.in.Cork, h.out.Cork = opts.Cork, opts.Cork
	h.opened.L = &h.mu
	h.sdk = newControlConn(h)
	h.answerer = h.answer
	return h
}

// ID returns the name given to NewHost.
func (h *Host) ID() string { return h.id }

// Serve answers the host until it closes its end or stops reading ours, or ctx
// ends. What is in flight at the end of the input is answered first, within
// reason. The goroutine that reads the input ends with the input.
func (h *Host) Serve(ctx context.Context) error {
	session, err := h.opts.Control.Connect(ctx, h.sdk, nil)
	if err != nil {
		close(h.gone)
		return errors.Join(err, h.out.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- h.read() }()
	// Who tells us to end does not wait for upstreams that start.
	busy := func() bool { return ctx.Err() == nil && h.opts.Busy != nil && h.opts.Busy() }
	patience := time.Duration(0)
	select {
	case err = <-ended:
	case <-h.out.Done():
		err = fmt.Errorf("the host does not read: %w", h.out.Err())
	case <-ctx.Done():
		patience = lastAnswers
	}
	close(h.gone)
	h.finish(busy)
	h.sdk.Close()
	_ = session.Wait() // ends with the connection we closed
	return errors.Join(err, h.flush(patience))
}

// read handles the host's messages until there are no more.
func (h *Host) read() error {
	early := true
	h.in.Idle = func() {
		early = early && h.awaitRoom()
		h.out.WaitBelow(hostMaxQueued)
	}
	defer h.in.Uncork()
	for {
		m, err := h.in.Next()
		if early {
			h.noteEarly(len(m.Raw))
		}
		if err == nil {
			h.guarded(func() { h.take(m, nil) })
			continue
		}
		var fault *wire.Fault
		switch {
		case errors.As(err, &fault):
			h.refuse(fault, m)
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

// guarded runs f; a panic is logged, and the session goes on.
func (h *Host) guarded(f func()) {
	defer func() {
		if r := recover(); r != nil {
			h.log.Error("panic", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	f()
}

// take handles one message; b is the batch it came in, if it did.
func (h *Host) take(m wire.Message, b *batch) {
	switch {
	case len(m.Raw) > 0 && m.Raw[0] == '[':
		h.takeBatch(m.Raw)
	case m.IsRequest():
		h.request(m, b)
	case m.IsNotification():
		h.notice(m)
	default:
		h.response(m)
	}
}

// refuse answers a line that is no message; the session goes on.
func (h *Host) refuse(fault *wire.Fault, m wire.Message) {
	h.log.Warn("the host sent what is no message", "err", fault.Err, "text", printable(fault.Line, 120))
	id, code := m.ID, int64(wire.CodeParse)
	switch {
	case errors.Is(fault.Err, wire.ErrEnvelope):
		code = wire.CodeInvalidRequest
	case fault.TooBig && fault.Answers() != nil:
		h.answerLost(fault.Answers())
		return
	case fault.TooBig:
		id, code = fault.Asks(), wire.CodeInvalidRequest
	}
	if !wire.ValidID(id) {
		id = nil
	}
	h.reject(nil, id, code, fault.Err.Error())
}

// reject answers what is not taken.
func (h *Host) reject(b *batch, id []byte, code int64, text string) {
	h.respond(b, wire.Failure(id, &wire.Error{Code: code, Message: text}))
}

func (h *Host) request(m wire.Message, b *batch) {
	if !wire.ValidID(m.ID) {
		h.reject(b, nil, wire.CodeInvalidRequest, "a request's id must be a string or an integer")
		return
	}
	r := &Request{ID: m.ID, Method: m.Method, Params: m.Params, Meta: wire.Get(m.Params, "_meta"), Peer: h, batch: b, answer: h.answerer}
	if refusal := h.admit(r); refusal != nil {
		h.respond(b, wire.Failure(m.ID, refusal))
		return
	}
	if isControl(m.Method) {
		h.sdk.request(r)
		return
	}
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("panic", "panic", p, "stack", string(debug.Stack()))
			r.Reply(nil, &wire.Error{Code: wire.CodeInternal, Message: fmt.Sprintf("internal error: %v", p)})
		}
	}()
	h.opts.Handle(r)
	if !r.Live() && h.out.Waiting() > hostMaxUnread { // it was answered at once
		h.in.Uncork()
		h.AwaitReader()
	}
}

func (h *Host) notice(m wire.Message) {
	switch m.Method {
	case "notifications/cancelled":
		h.cancelled(m.Params)
	case "notifications/initialized":
		h.sdk.notify(m.Method, m.Params)
	}
	if !h.isEnding() {
		h.opts.Notice(m.Method, m.Params)
	}
}
