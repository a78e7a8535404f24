package gateway

import (
	"container/list"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A session is a session of the handshake era, over many HTTP requests or one HTTP+SSE
// stream. It is the edge of its host.Session: messages about a request go to the stream of
// that request, all others to the standalone stream.
type session struct {
	edge
	id        string // see newSessionID
	principal string
	namespace string
	host      *host.Session
	end       func(context.Context) // ends host
	unread    *unread               // of all its streams
	memory    *membudget.Budget
	called    func()        // records that it has sent a request; only the first call counts
	slow      func()        // ends it because its host does not read; does not block
	over      chan struct{} // closed when nothing more will be written

	// Guarded by sessions.mu.
	among *list.List    // the list that has it
	at    *list.Element // nil before and after it is in a list

	receiving sync.Mutex // held while host receives a message

	mu      sync.Mutex
	streams map[int64]*stream // of requests, by number, while the host may resume them
	last    int64             // last number of a stream
	users   int               // its HTTP requests
	reading int               // of these, those that read the standalone stream
	used    time.Time         // when the last of them ended
	ended   bool
}

// An edge has the methods of Edge that sessions and exchanges share.
type edge struct {
	standalone *stream       // for messages about no request
	account    string        // see accountOf
	gone       chan struct{} // closed when nobody waits for the requests in flight
}

func (e *edge) Write(about *host.Request, class host.Class, parts ...[]byte) error {
	st := e.standalone
	if of := streamOf(about); of != nil {
		st = of
	}
	return st.put(about, class, parts)
}

func (s *session) Write(about *host.Request, class host.Class, parts ...[]byte) error {
	err := s.edge.Write(about, class, parts...)
	if streamOf(about) != nil {
		return err
	}
	s.mu.Lock()
	unread := s.reading == 0
	s.mu.Unlock()
	if unread && s.standalone.ids {
		s.standalone.trim()
	}
	return err
}

// streamOf returns the stream for messages about a request, nil if there is none.
func streamOf(about *host.Request) *stream {
	if about == nil {
		return nil
	}
	st, _ := about.Via.(*stream)
	return st
}

func (e *edge) Drop(about *host.Request) {
	if st := streamOf(about); st != nil {
		st.finish()
	}
}

// AwaitRoom implements host.Edge. It does not wait: a host that does not read loses messages,
// and finally its session.
func (e *edge) AwaitRoom() {}

func (e *edge) Account() string { return e.account }

func (e *edge) Gone() <-chan struct{} { return e.gone }

// receive passes a message of the host to the session. The answer goes to via, or to the
// standalone stream if via is nil.
func (s *session) receive(m wire.Message, via *stream) {
	s.receiving.Lock()
	defer s.receiving.Unlock()
	if m.Method != "initialize" && m.Method != "ping" && m.IsRequest() {
		s.called()
	}
	s.host.AwaitReceive()
	s.host.Receive(m, via)
}

// stream returns a new stream for the answer to one POST, which the host may resume. max is
// the limit of a response in bytes.
func (s *session) stream(max int) *stream {
	st := newStream(max)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	st.number, st.ids, st.unread, st.overflow = s.last, true, s.unread, s.slow
	st.reserved = s.memory.Open(s.account, st.shed)
	s.streams[st.number] = st
	now := time.Now()
	for n, old := range s.streams {
		if old.expired(now) {
			s.deleteLocked(n)
		}
	}
	if ended := s.endedLocked(); len(ended) > maxEnded {
		for _, n := range ended[:len(ended)-maxEnded] {
			s.deleteLocked(n)
		}
	}
	return st
}

func (s *session) deleteLocked(n int64) {
	s.streams[n].abandon()
	delete(s.streams, n)
}

// endedLocked returns the numbers of the streams that are done, in order.
func (s *session) endedLocked() (ended []int64) {
	for n, st := range s.streams {
		if st.isDone() {
			ended = append(ended, n)
		}
	}
	slices.Sort(ended)
	return ended
}

func (s *session) forget(st *stream) {
	st.forget()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st.number)
}

// find returns the stream of an event, nil if unknown, and the number of the next event.
func (s *session) find(lastEventID string) (*stream, int64) {
	n, event, _ := strings.Cut(lastEventID, "-")
	number, err := strconv.ParseInt(n, 10, 64)
	last, err2 := strconv.ParseInt(event, 10, 64)
	if err != nil || err2 != nil || last < 0 {
		return nil, 0
	}
	if number == 0 {
		return s.standalone, last + 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[number], last + 1
}

// use counts an HTTP request of the session until done is called. It returns false if the
// session has ended.
func (s *session) use() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.users++
	return true
}

func (s *session) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.used = time.Now()
}

// read adds n to the number of requests that read the standalone stream.
func (s *session) read(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading += n
}

// idleSince reports whether the session was idle since then: it had no HTTP request, and has
// no call in flight whose answer the host may still fetch.
func (s *session) idleSince(then time.Time) bool {
	s.mu.Lock()
	unused := s.unusedLocked(then)
	s.mu.Unlock()
	if !unused || !s.host.Waiting() {
		return unused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
	return false
}

// unused reports whether the session has no HTTP request and has not ended.
func (s *session) unused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users == 0 && !s.ended
}

func (s *session) unusedLocked(then time.Time) bool { return s.users == 0 && s.used.Before(then) }

// openSession returns a new session, nil if there are too many. The caller must call done.
func (g *Gateway) openSession(r *http.Request, principal, namespace string, legacy bool) *session {
	standalone := newStream(g.opts.MaxResponseBytes)
	standalone.open, standalone.ids = true, !legacy
	s := &session{
		edge:      edge{standalone, accountOf(r, principal), make(chan struct{})},
		id:        g.forwarder.newSessionID(),
		principal: principal,
		memory:    g.memory,
		namespace: namespace,
		unread:    &unread{most: g.maxUnread},
		over:      make(chan struct{}),
		streams:   map[int64]*stream{},
		users:     1,
		used:      time.Now(),
	}
	s.called = sync.OnceFunc(func() { g.sessions.hasCalled(s) })
	s.slow = sync.OnceFunc(func() {
		g.log.Warn("a host reads too slowly, its session ends", "namespace", namespace)
		g.evicted <- s // has room for all sessions
	})
	standalone.unread, standalone.overflow = s.unread, s.slow
	standalone.reserved = g.memory.Open(s.account, standalone.shed)
	if !g.sessions.makeRoom(s.account) {
		return nil
	}
	defer func() {
		if s.host == nil {
			g.sessions.leave(s)
		}
	}()
	s.host, s.end = g.opts.Open(s, principal, namespace, true)
	g.sessions.add(s) // from here on it may be ended
	return s
}

// sessionOf returns the session with an id, nil if it is unknown, or of another principal or
// namespace. The caller must call done.
func (g *Gateway) sessionOf(id, principal, namespace string) *session {
	s := g.sessions.get(id)
	if s == nil || s.principal != principal || s.namespace != namespace || !s.use() {
		return nil
	}
	return s
}

// drain ends a retired session. Its streams end after the answers to the requests in flight.
func (s *session) drain(ctx context.Context) {
	s.end(ctx)
	close(s.over)
	s.standalone.abandon()
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.streams {
		s.deleteLocked(n)
	}
}

// An exchange is the edge of a session for one HTTP request.
type exchange struct {
	edge
	host *host.Session
	end  func(context.Context) // ends host, once; later callers wait for that
}

// openExchange opens a session for one request with open. answerOnly means that the host accepts
// nothing but the answer. done must be called after the answer.
func (g *Gateway) openExchange(r *http.Request, principal string, answerOnly bool, open func(Edge) (*host.Session, func(context.Context))) (e *exchange, done func()) {
	st := newStream(g.opts.MaxResponseBytes)
	e = &exchange{edge: edge{st, accountOf(r, principal), make(chan struct{})}}
	st.answerOnly = answerOnly
	st.reserved = g.memory.Open(e.account, st.shed)
	leave := st.readBy(connFrom(r.Context()))
	session, end := open(e)
	var once sync.Once
	e.host, e.end = session, func(ctx context.Context) { once.Do(func() { end(ctx) }) }
	g.exchanges.Store(e, nil)
	return e, func() {
		g.exchanges.Delete(e)
		close(e.gone)
		e.end(context.Background())
		st.abandon()
		leave()
	}
}

// forms are the media types in which a host accepts answers.
type forms struct {
	text, events bool
	eventsFirst  bool // the host named events before text
}

// acceptable returns the forms that the Accept header of a request allows (RFC 9110, 12.5.1).
// MCP requires both media types, or text/event-stream with GET. Like the SDK's server it
// accepts ranges too, because many HTTP libraries send */*.
func acceptable(r *http.Request) (f forms) {
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	if accept == "" {
		return forms{text: true}
	}
	for part := range strings.SplitSeq(accept, ",") {
		kind, _, _ := strings.Cut(part, ";")
		switch strings.TrimSpace(kind) {
		case "*/*":
			f.text, f.events = true, true
		case "application/json", "application/*":
			f.text = true
		case "text/event-stream", "text/*":
			f.events, f.eventsFirst = true, f.eventsFirst || !f.text
		}
	}
	return f
}

// parsed returns a message that the gateway itself sends.
func parsed(line string) wire.Message {
	m, err := wire.Parse([]byte(line))
	if err != nil {
		panic(err) // unreachable
	}
	return m
}
