package aggregator

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A principal is the user that a session belongs to. What comes of one user's
// calls is not for another's sessions. The user of stdio is the zero value.
type principal struct{ name string }

// A session is one host, for as long as it is connected.
type session struct {
	agg       *Aggregator
	id        string
	number    int // in the order in which they came
	principal principal
	only      string          // the server that it is about, "" is all of them
	lasts     bool            // it is not for one request alone, which has what its principal has
	mayLogIn  bool            // its user runs dynmcp, on this machine: a login's page comes back here, and the login is his
	local     bool            // its user is who runs dynmcp: he is told all of a failure
	tree      bool            // it sees the tree surface alone, and what fails are errors with codes: no model reads them
	replica   bool            // its host is another replica, which has hosts of its own: see replica.go
	shares    bool            // it is one of many: an upstream's question that belongs to no call is not for it
	peer      transports.Peer // the host
	begun     atomic.Bool     // it has made a request

	frozen atomic.Pointer[frozenSession] // nil before it has listed the tools
	shown  shownTools                    // to its model

	mu          sync.Mutex
	client      string       // what the host calls itself, "" if it has not said it
	profile     *hostProfile // by that; may be nil
	declared    declaration
	initialized bool               // the handshake is over, it may be notified
	ended       bool               // it gets no server of its own any more
	level       logLevel           // of the log messages it asked for
	raising     <-chan struct{}    // closed when upstreams were told that; nil where they were
	seen        map[string]version // of each list: what it read last, was told to read again, or would have read
	listens     map[string]listen
	subscribed  map[string]bool                         // resource URIs
	progress    map[string]func(params json.RawMessage) // of server requests, by the token we gave
	lastToken   int64                                   // or id of a question, which we gave
	roots       ask.RootSet
}

// A declaration is what a host said of itself.
type declaration struct {
	capabilities json.RawMessage
	era          transports.Era
	tasks        catalog.Tasks // that it follows
}

// A listen is a stream of notifications that a host of the stateless era asked
// for (MCP 2026-07-28, "Subscriptions").
type listen struct {
	id      json.RawMessage // of the request, as it was sent
	changes map[string]bool // the list_changed notifications that it wants
	uris    map[string]bool
	tasks   map[string]bool // by the host's ids
}

// topics returns what a stream of notifications is subscribed to.
func (l listen) topics() (all []string) {
	for uri := range l.uris {
		all = append(all, uri)
	}
	for id := range l.tasks {
		all = append(all, taskTopic+id)
	}
	return all
}

// sessions are the hosts that are connected.
type sessions struct {
	agg      *Aggregator
	dirty    chan struct{} // holds one token while hosts may have to be notified of a change
	declared chan struct{} // closed when a host has said what it can do

	mu      sync.Mutex
	byID    map[string]*session
	list    []*session // the same, never changed; nil after one came or went, until it is asked for
	lastID  int
	first   declaration // of the first host that made one
	known   bool        // first is set
	eraOpen bool        // first says for all hosts what they can do, but no host has spoken
}

// open returns a new session. It becomes known by attach.
func (ss *sessions) open(p principal) *session {
	ss.mu.Lock()
	ss.lastID++
	number := ss.lastID
	ss.mu.Unlock()
	return &session{
		agg:        ss.agg,
		id:         "session-" + strconv.Itoa(number),
		number:     number,
		principal:  p,
		listens:    map[string]listen{},
		subscribed: map[string]bool{},
		progress:   map[string]func(params json.RawMessage){},
		seen:       map[string]version{},
	}
}

// attach connects a session with its host.
func (ss *sessions) attach(s *session, peer transports.Peer) {
	s.peer = peer
	ss.agg.audience.join(s)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.byID[s.id], ss.list = s, nil
}

func (ss *sessions) remove(s *session) {
	ss.agg.audience.leave(s)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.byID, s.id)
	ss.list = nil
}

func (ss *sessions) get(id string) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.byID[id]
}

// all returns the sessions in the order in which they came. The slice is not to be
// changed.
func (ss *sessions) all() []*session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.list == nil {
		ss.list = slices.SortedFunc(maps.Values(ss.byID), func(a, b *session) int { return a.number - b.number })
	}
	return ss.list
}

// throttle returns when no host is far behind with what waits for it. Those that share
// a run keep nobody waiting.
func (a *Aggregator) throttle() {
	for _, s := range a.audience.aloneOnes() {
		if h, ok := s.peer.(*host.Session); ok {
			h.AwaitReader()
		}
	}
}

// declare keeps what a host said of itself, in the handshake or with a request.
// What is kept is a copy: capabilities are part of the request's line.
func (ss *sessions) declare(s *session, capabilities json.RawMessage, era transports.Era) {
	s.mu.Lock()
	if s.declared.era != era || !bytes.Equal(s.declared.capabilities, capabilities) {
		s.declared = declaration{bytes.Clone(capabilities), era, declaredTasks(capabilities, era)}
	}
	d := s.declared
	s.mu.Unlock()
	ss.declareFirst(d)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.eraOpen {
		ss.first.era, ss.eraOpen = d.era, false
	}
}

// declareFirst makes d what upstreams are told of hosts, unless something is.
func (ss *sessions) declareFirst(d declaration) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if !ss.known {
		ss.first, ss.known = d, true
		close(ss.declared)
	}
}

// firstDeclaration returns what upstreams are told of hosts: what the first one
// said of itself. ok is false before there is one.
func (ss *sessions) firstDeclaration() (d declaration, ok bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.first, ss.known
}

// markDirty has the announcer check whether hosts would read something else now.
func (ss *sessions) markDirty() {
	select {
	case ss.dirty <- struct{}{}:
	default:
	}
}

func (s *session) declaration() declaration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.declared
}

// notify sends a notification to the host: as it is after a handshake, else on
// every stream that wants it.
func (s *session) notify(method string, params json.RawMessage, wants func(listen) bool) {
	s.mu.Lock()
	initialized := s.initialized
	var ids []json.RawMessage
	for _, l := range s.listens {
		if wants(l) {
			ids = append(ids, l.id)
		}
	}
	s.mu.Unlock()
	if initialized {
		s.peer.Notify(method, params)
		return
	}
	for _, id := range ids {
		s.peer.Notify(method, transports.SetMeta(params, transports.MetaSubscriptionID, id))
	}
}
