package transports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/internal/wire"
)

// The limits of a host on stdio.
const (
	hostMaxMessage = 64 << 20                // the upstreams' own limits are lower
	hostMaxQueued  = 16 << 20                // what may wait for the host before we stop reading it
	hostStall      = 60 * time.Second        // how long the host may leave its end unread
	lastAnswers    = 1500 * time.Millisecond // for calls in flight when the host is gone
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
	// Logger may be nil.
	Logger *slog.Logger
}

// A Host is one MCP host on a pair of streams, one message a line. It is the
// Peer of upstreams that talk to this host.
type Host struct {
	id   string
	opts HostOptions
	log  *slog.Logger
	in   *wire.Reader
	out  *wire.Writer
	sdk  *controlConn

	answerer func(*Request, json.RawMessage, error) // answer, made once

	mu       sync.Mutex
	begun    bool                // initialize or a request of the stateless era was seen
	open     bool                // what is not the answer to initialize may be written
	held     [][][]byte          // until open
	requests map[string]*Request // in flight, by their id as it was sent
	idle     chan struct{}       // not nil while someone waits for the last answer
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
		requests: map[string]*Request{},
		asks:     map[int64]chan<- wire.Message{},
	}
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
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- h.read() }()
	busy := h.opts.Busy
	select {
	case err = <-ended:
	case <-h.out.Done():
		err = fmt.Errorf("the host does not read: %w", h.out.Err())
	case <-ctx.Done():
		busy = nil
	}
	h.awaitAnswers(busy)
	h.abandon()
	h.sdk.Close()
	_ = session.Wait() // ends with the connection we closed
	return errors.Join(err, h.out.Close())
}

// read handles the host's messages until there are no more.
func (h *Host) read() (err error) {
	defer func() {
		if r := recover(); r != nil {
			h.log.Error("panic", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", r)
		}
	}()
	for {
		h.out.WaitBelow(hostMaxQueued)
		m, err := h.in.Next()
		if err == nil {
			h.take(m)
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

func (h *Host) take(m wire.Message) {
	switch {
	case len(m.Raw) > 0 && m.Raw[0] == '[':
		h.failed(nil, wire.CodeInvalidRequest, "batches are not part of this protocol version")
	case m.IsRequest():
		h.request(m)
	case m.IsNotification():
		h.notice(m)
	default:
		h.response(m)
	}
}

// refuse answers a line that is no message; the session goes on.
func (h *Host) refuse(fault *wire.Fault, m wire.Message) {
	id, code := m.ID, int64(wire.CodeParse)
	switch {
	case errors.Is(fault.Err, wire.ErrEnvelope):
		code = wire.CodeInvalidRequest
	case fault.TooBig:
		id = fault.Asks()
		code = wire.CodeInvalidRequest
	}
	if !wire.ValidID(id) {
		id = nil
	}
	h.log.Warn("the host sent what is no message", "err", fault.Err, "text", printable(fault.Line, 120))
	h.failed(id, code, fault.Err.Error())
}

func (h *Host) failed(id []byte, code int64, text string) {
	h.write(wire.Failure(id, &wire.Error{Code: code, Message: text}))
}

func (h *Host) request(m wire.Message) {
	if !wire.ValidID(m.ID) {
		h.failed(nil, wire.CodeInvalidRequest, "a request's id must be a string or an integer")
		return
	}
	r := &Request{ID: m.ID, Method: m.Method, Params: m.Params, Peer: h, answer: h.answerer}
	if refusal := h.admit(r); refusal != nil {
		h.write(wire.Failure(m.ID, refusal))
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
}

// admit makes the checks that hold for both planes and takes the request into
// the table of those in flight.
func (h *Host) admit(r *Request) *wire.Error {
	version, refusal := requestVersion(r)
	if refusal != nil {
		return refusal
	}
	r.Modern = version != ""
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case r.Method == "initialize" && !r.Modern && h.begun:
		return &wire.Error{Code: wire.CodeInvalidRequest, Message: "initialize came already"}
	case r.Method == "initialize" && !r.Modern:
		h.begun = true
	case r.Modern:
		h.begun = true
		h.releaseLocked()
	case !h.begun && r.Method == "server/discover":
		// the SDK says in which version it exists
	case !h.begun && r.Method != "ping":
		return &wire.Error{Code: wire.CodeInvalidRequest, Message: fmt.Sprintf("%s came before initialize", r.Method)}
	}
	key := string(r.ID)
	if h.requests[key] != nil {
		return &wire.Error{Code: wire.CodeInvalidRequest, Message: fmt.Sprintf("id %s is in flight already", key)}
	}
	h.requests[key] = r
	return nil
}

func (h *Host) notice(m wire.Message) {
	switch m.Method {
	case "notifications/cancelled":
		h.cancelled(m.Params)
	case "notifications/initialized":
		h.sdk.notify(m.Method, m.Params)
	}
	h.opts.Notice(m.Method, m.Params)
}

// cancelled ends a request without an answer. What is unknown or finished
// already is no error (MCP, "Cancellation").
func (h *Host) cancelled(params json.RawMessage) {
	h.mu.Lock()
	r := h.requests[string(wire.Get(params, "requestId"))]
	h.mu.Unlock()
	if r == nil || r.Method == "initialize" {
		return
	}
	h.forget(r)
	r.Cancel(wire.Get(params, "reason"))
	if r.sdkID != 0 {
		h.sdk.notify("notifications/cancelled", fmt.Appendf(nil, `{"requestId":%d}`, r.sdkID))
	}
}

// answer writes what a request is answered with.
func (h *Host) answer(r *Request, result json.RawMessage, err error) {
	h.forget(r)
	if err == nil && r.Modern {
		result = modernResult(r.Method, result)
	}
	switch {
	case r.Method == "initialize":
		h.writeFirst(answerParts(r.ID, result, err), err == nil)
	case err == nil && h.isOpen():
		h.sent(h.out.Send(wire.Result(r.ID, result)...))
	default:
		h.write(answerParts(r.ID, result, err))
	}
}

func answerParts(id, result json.RawMessage, err error) [][]byte {
	if err != nil {
		return wire.Failure(id, AsWire(err))
	}
	return wire.Result(id, result)
}

func (h *Host) isOpen() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// writeFirst writes the answer to initialize and lets out what had to wait for
// it. After a failure the host may try again.
func (h *Host) writeFirst(parts [][]byte, ok bool) {
	h.send(parts)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = ok
	h.releaseLocked()
	h.open = ok
}

// forget takes a request out of the table of those in flight.
func (h *Host) forget(r *Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.requests, string(r.ID))
	if h.idle != nil && !h.waitingLocked() {
		close(h.idle)
		h.idle = nil
	}
}

// waitingLocked reports whether a request is in flight that will be answered
// by itself; a subscription only ends with the host.
func (h *Host) waitingLocked() bool {
	for _, r := range h.requests {
		if r.Method != "subscriptions/listen" {
			return true
		}
	}
	return false
}

// write sends a message, or keeps it until the answer to initialize is out.
// Before the host has begun there is nothing to wait for.
func (h *Host) write(parts [][]byte) {
	h.mu.Lock()
	if h.begun && !h.open {
		h.held = append(h.held, parts)
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	h.send(parts)
}

func (h *Host) releaseLocked() {
	h.open = true
	for _, parts := range h.held {
		h.send(parts)
	}
	h.held = nil
}

func (h *Host) send(parts [][]byte) { h.sent(h.out.Send(parts...)) }

// sent takes note that a message could not be queued: the host is gone, which
// Serve sees by itself.
func (h *Host) sent(err error) {
	if err != nil {
		h.log.Debug("not sent to the host", "err", err)
	}
}

// Notify sends the host a notification. Progress and log messages are dropped
// while the host is far behind; MCP calls them best effort.
func (h *Host) Notify(method string, params json.RawMessage) {
	h.mu.Lock()
	begun := h.begun
	h.mu.Unlock()
	if begun {
		h.write(wire.Notification(wire.Quote(method), params))
	}
}

// Request asks the host and waits for its answer.
func (h *Host) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	answered := make(chan wire.Message, 1)
	h.mu.Lock()
	h.lastID++
	id := h.lastID
	h.asks[id] = answered
	h.mu.Unlock()
	parts := [][]byte{wire.AppendRequest(nil, id, method, len(params) > 0)}
	if len(params) > 0 {
		parts = append(parts, params, wire.Close)
	}
	h.write(parts)
	select {
	case m := <-answered:
		if m.Error != nil {
			return nil, wire.ParseError(m.Error)
		}
		return m.Result, nil
	case <-ctx.Done():
		h.mu.Lock()
		delete(h.asks, id)
		h.mu.Unlock()
		h.Notify("notifications/cancelled", fmt.Appendf(nil, `{"requestId":%d}`, id))
		return nil, ctx.Err()
	case <-h.out.Done():
		return nil, errors.New("the host is gone")
	}
}

func (h *Host) response(m wire.Message) {
	id, _ := callID(m.ID)
	h.mu.Lock()
	answered := h.asks[id]
	delete(h.asks, id)
	h.mu.Unlock()
	if answered == nil {
		h.log.Debug("the host answered what nobody asked", "id", string(m.ID))
		return
	}
	answered <- m
}

// awaitAnswers returns when nothing is in flight any more, nobody reads the
// answers, or it took too long; time in which busy reports true does not
// count.
func (h *Host) awaitAnswers(busy func() bool) {
	h.mu.Lock()
	idle := make(chan struct{})
	if h.waitingLocked() {
		h.idle = idle
	} else {
		close(idle)
	}
	h.mu.Unlock()
	ticker := time.NewTicker(lastAnswers / 10)
	defer ticker.Stop()
	for left := lastAnswers; left > 0; {
		select {
		case <-idle:
			return
		case <-h.out.Done():
			return
		case <-ticker.C:
			if busy == nil || !busy() {
				left -= lastAnswers / 10
			}
		}
	}
}

// abandon withdraws what is still in flight and says so, for a host that may
// still read.
func (h *Host) abandon() {
	h.mu.Lock()
	left := slices.Collect(maps.Values(h.requests))
	clear(h.requests)
	h.mu.Unlock()
	for _, r := range left {
		r.Cancel(nil)
		if r.Method != "subscriptions/listen" {
			h.write(wire.Failure(r.ID, &wire.Error{
				Code:    CodeShuttingDown,
				Message: "dynmcp is shutting down",
				Data:    json.RawMessage(`{"source":"dynmcp","outcome":"unknown"}`),
			}))
		}
	}
}
