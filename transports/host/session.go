package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// SessionOptions configure a Session.
type SessionOptions struct {
	// Control answers the handshake, the lists and subscriptions. It is nil if the host is
	// another replica: then HandleRequest gets those requests too, results are sent without the
	// members that an era adds, and failures with all their details.
	Control *mcp.Server
	// HandleRequest takes every other request. It is called in the order of the
	// wire and must not block; Request.Reply may be called from anywhere.
	HandleRequest func(*Request)
	// Introduce is called for initialize before any message that follows it is handled: Control
	// answers it later, on a goroutine. It must not block; may be nil.
	Introduce func(*Request)
	// HandleNotification takes the host's notifications, in the order of the wire.
	HandleNotification func(method string, params json.RawMessage)
	// Busy reports whether requests wait for an upstream to start, so that a host that closed
	// its input early still gets its answers. Nil means never.
	Busy func() bool
	// Memory is of the account that notifications which wait for the host count for. Nil counts nothing.
	Memory *membudget.Reservation
	// Tap shows the messages of the session, under the name Peer; may be nil.
	Tap  *event.Tap
	Peer event.Connection
	// Dropped is called for each dropped notification; may be nil.
	Dropped func()
	// Logger may be nil.
	Logger *slog.Logger
}

// A Session is the connection of one host, over an [Edge]. It is the Peer of upstreams
// that talk to this host.
//
// Messages of the host are received in this file; requests in flight are in inflight.go,
// sent messages in outgoing.go, our own requests to the host in serverrequest.go, the end
// in end.go.
type Session struct {
	id      string
	edge    Edge
	opts    SessionOptions
	log     *slog.Logger
	control *controlConn
	over    chan struct{} // closed when the host sends nothing more

	respond func(*Request, json.RawMessage, error) // answer, made once
	writing sync.WaitGroup                         // answers that have left the table and are not yet written
	opening atomic.Bool                            // initialize is being answered

	endedByHost atomic.Bool // set before ending
	latest      latest      // merged notifications
	others      latest      // notifications that MCP does not know

	mu       sync.Mutex
	begun    bool                // initialize or a request of the stateless era was seen
	open     bool                // messages other than the answer to initialize may be written
	ending   bool                // no more requests are accepted
	version  string              // what initialize negotiated
	held     []heldMessage       // messages held until open
	heldSize int                 // its bytes
	early    int                 // bytes received while opening
	room     sync.Cond           // on mu: signals a change that AwaitReceive waits for
	requests map[string]*Request // in flight, by their id as it was sent
	idle     chan struct{}       // not nil while someone waits for the last answer
	dropped  int                 // notifications
	lastID   int64
	pending  map[int64]pendingRequest // our requests to the host
}

// NewSession returns the session of the host behind edge. id is for the SDK. End must be called.
func NewSession(id string, edge Edge, opts SessionOptions) *Session {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Session{
		id:       id,
		edge:     edge,
		opts:     opts,
		log:      opts.Logger,
		over:     make(chan struct{}),
		requests: map[string]*Request{},
		pending:  map[int64]pendingRequest{},
	}
	s.room.L = &s.mu
	s.control = newControlConn(s)
	s.respond = s.answer
	s.latest.send, s.others.send = s.sendMerged, s.sendMerged
	s.latest.merges = true
	s.latest.charged, s.others.charged = opts.Memory.Sibling(nil), opts.Memory.Sibling(nil)
	return s
}

// Receive handles one message of the host. It is called in the order of the wire, by
// one goroutine at a time, and does not block. A panic is logged, and answered if a request
// caused it; the session continues. The bytes of a tools/call are valid only during the
// call; those of any other message belong to the session. via is an opaque value of the
// edge: Request.Via of the requests in the message.
func (s *Session) Receive(m wire.Message, via any) {
	s.countEarly(len(m.Raw))
	if s.opts.Tap.Watched() {
		s.opts.Tap.Show(s.opts.Peer, true, m.Raw)
	}
	switch {
	case len(m.Raw) > 0 && m.Raw[0] == '[':
		s.handleBatch(m.Raw, via)
	case m.IsRequest():
		s.handleRequest(m, nil, via)
	case m.IsNotification():
		s.handleNotification(m)
	default:
		s.handleResponse(m)
	}
}

// logPanic logs a panic that the session survives, and returns the answer to the
// request that caused it, if one did.
func (s *Session) logPanic(p any) *wire.Error {
	s.log.Error("panic", "panic", p, "stack", string(debug.Stack()))
	return &wire.Error{Code: wire.CodeInternal, Message: fmt.Sprintf("internal error: %v", p)}
}

// ReceiveFault answers a line that is not a message; the session continues. m holds the
// members that could be read.
func (s *Session) ReceiveFault(fault *wire.Fault, m wire.Message) {
	s.countEarly(len(m.Raw))
	s.log.Warn("the host sent a line that is no message", "err", fault.Err, "text", transports.Printable(fault.Line, 120))
	id, code := m.ID, int64(wire.CodeParse)
	switch {
	case errors.Is(fault.Err, wire.ErrEnvelope):
		code = wire.CodeInvalidRequest
	case fault.TooBig && len(fault.Answers()) > 0:
		e := &wire.Error{Code: transports.CodeTooLarge, Message: "the host's answer is too large"}
		s.handleResponse(wire.Message{ID: fault.Answers()[0], Error: e.JSON()})
		return
	case fault.TooBig:
		id, code = fault.Asks(), wire.CodeInvalidRequest
	}
	s.reject(nil, nil, id, code, fault.Err.Error())
}

// reject answers a request that is not accepted; an invalid id becomes null.
func (s *Session) reject(b *batch, via any, id []byte, code int64, text string) {
	if !wire.ValidID(id) {
		id = nil
	}
	s.writeAnswer(&Request{Via: via}, b, wire.Failure(id, transports.OutcomeError(code, text, transports.NotSent)))
}

func (s *Session) handleRequest(m wire.Message, b *batch, via any) {
	if !wire.ValidID(m.ID) {
		s.reject(b, via, nil, wire.CodeInvalidRequest, "a request's id must be a string or an integer")
		return
	}
	r := &Request{Method: m.Method, Params: m.Params, Outline: m.Outline, Meta: bytes.Clone(m.Outline.Get(m.Params, "_meta")), Via: via, Respond: s.respond, session: s, batch: b}
	r.ID = append(r.shortID[:0], m.ID...)
	r.Peer = r
	admitted := false
	defer func() {
		if p := recover(); p != nil {
			if failure := s.logPanic(p); admitted {
				r.Reply(nil, failure)
			} else {
				s.writeAnswer(r, b, wire.Failure(r.ID, failure))
			}
		}
	}()
	problem := s.admit(r)
	if admitted = problem == nil; !admitted {
		s.writeAnswer(r, b, wire.Failure(r.ID, problem))
		return
	}
	if s.opts.Control != nil && isControl(r.Method) {
		if r.Method == "initialize" && s.opts.Introduce != nil {
			s.opts.Introduce(r)
		}
		s.control.request(r)
	} else {
		s.opts.HandleRequest(r)
	}
}

func (s *Session) handleNotification(m wire.Message) {
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(p)
		}
	}()
	switch {
	case m.Method == "notifications/cancelled":
		s.cancelled(m.Params)
	case m.Method == "notifications/initialized" && s.opts.Control != nil:
		s.control.notify(m.Method, nil) // the SDK keeps the params
	}
	s.mu.Lock()
	ending := s.ending
	s.mu.Unlock()
	if !ending {
		s.opts.HandleNotification(m.Method, m.Params)
	}
}

// maxEarly limits the bytes accepted before initialize is answered, because the messages,
// or their answers, are kept until then. earlyCost is added for each message; it is mostly a
// goroutine. maxControl is how many messages may wait for the control plane.
const (
	maxEarly   = 16 << 20
	earlyCost  = 4 << 10
	maxControl = 256
)

// countEarly counts a message of size bytes that came before the answer to initialize.
func (s *Session) countEarly(size int) {
	if s.opening.Load() {
		s.mu.Lock()
		s.early += size + earlyCost
		s.mu.Unlock()
	}
}

// AwaitReceive returns when Receive may be called with another message, or the session ends. It
// limits the messages that come before the answer to initialize, and those that wait for the
// control plane. An edge calls it before each read.
func (s *Session) AwaitReceive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ending && (s.opening.Load() && s.early+s.heldSize > maxEarly || s.control.waiting.Load() > maxControl) {
		s.room.Wait()
	}
}

// AwaitReader blocks while the queue for the host is too long to add to it. Otherwise the
// results of all calls in flight would be kept in memory once the host stopped reading.
func (s *Session) AwaitReader() { s.edge.AwaitRoom() }

// batchVersion is the only protocol version that has JSON-RPC batches.
const batchVersion = "2025-03-26"

// handleBatch handles the messages of a batch like single messages.
func (s *Session) handleBatch(raw []byte, via any) {
	s.mu.Lock()
	version := s.version
	s.mu.Unlock()
	if version != batchVersion {
		s.reject(nil, via, nil, wire.CodeInvalidRequest, "a batch is part of protocol version "+batchVersion+" only")
		return
	}
	b, empty := &batch{left: 1}, true
	for element := range wire.Elements(raw) {
		empty = false
		m, err := wire.Parse(element)
		if err != nil || m.IsRequest() {
			s.mu.Lock()
			b.left++
			s.mu.Unlock()
		}
		if err != nil {
			s.reject(b, via, m.ID, wire.CodeInvalidRequest, err.Error())
			continue
		}
		switch {
		case m.IsRequest():
			s.handleRequest(m, b, via)
		case m.IsNotification():
			s.handleNotification(m)
		default:
			s.handleResponse(m)
		}
	}
	if empty {
		s.reject(nil, via, nil, wire.CodeInvalidRequest, "the batch is empty")
		return
	}
	s.writeAnswer(&Request{Via: via}, b, nil)
}
