package aggregator

import (
	"bytes"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
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
	principal principal
	only      string // the server that it is about, "" is all of them
	lasts     bool   // it is not for one request alone, which has what its principal has
	mayLogIn  bool   // its user runs dynmcp, on this machine: a login's page comes back here, and the login is his
	local     bool   // its user is who runs dynmcp: he is told all of a failure
	tree      bool   // it sees the tree surface alone, and what fails are errors with codes: no model reads them
	replica   bool   // its host is another replica, which has hosts of its own: see replica.go
	shares    bool   // it is one of many: an upstream's question that belongs to no call is not for it
	host      transports.Peer
	begun     atomic.Bool // it has made a request

	shown     shownTools // to its model
	recipient *notify.Recipient[*session]
	pinned    notify.Pinned // the tools that its host is shown, if they stay
	raising   struct {
		sync.Mutex
		done <-chan struct{} // closed when upstreams were told the level; nil where they were
	}

	mu        sync.Mutex
	client    string       // what the host calls itself, "" if it has not said it
	profile   *hostProfile // by that; may be nil
	declared  declaration
	progress  map[string]func(params json.RawMessage) // of server requests, by the token we gave
	lastToken int64                                   // or id of a question, which we gave
	roots     ask.RootSet
}

// A declaration is what a host said of itself.
type declaration struct {
	capabilities json.RawMessage
	era          transports.Era
	tasks        catalog.Tasks // that it follows
}

// openSession returns a new session, which is not known before attach.
func (a *Aggregator) openSession(p principal) *session {
	s := &session{agg: a, principal: p, progress: map[string]func(params json.RawMessage){}}
	s.recipient = a.sessions.New(s)
	s.id = s.recipient.ID
	return s
}

// attach connects a session with its host.
func (s *session) attach(peer transports.Peer) {
	s.host = peer
	to := s.recipient
	to.Server, to.User, to.Replica, to.Shared = s.only, s.principal.name, s.replica, s.shares
	to.Join(peer)
}

// throttle returns when no host is far behind with what waits for it. Those that share a
// run keep nobody waiting.
func (a *Aggregator) throttle() {
	for _, s := range a.sessions.Exclusive() {
		if h, ok := s.host.(*host.Session); ok {
			h.AwaitReader()
		}
	}
}

// declarations are what upstreams are told of hosts.
type declarations struct {
	known chan struct{} // closed when first is set

	mu      sync.Mutex
	first   declaration // of the first host that made one
	isSet   bool        // first is
	eraOpen bool        // first says for all hosts what they can do, but no host has spoken
}

// declare keeps what a session's host said of itself, in the handshake or with a request.
// What is kept is a copy: capabilities are part of the request's line.
func (s *session) declare(capabilities json.RawMessage, era transports.Era) {
	s.mu.Lock()
	if s.declared.era != era || !bytes.Equal(s.declared.capabilities, capabilities) {
		s.declared = declaration{bytes.Clone(capabilities), era, declaredTasks(capabilities, era)}
	}
	d := s.declared
	s.mu.Unlock()
	ds := &s.agg.declared
	ds.setFirst(d, false)
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.eraOpen {
		ds.first.era, ds.eraOpen = d.era, false
	}
}

// setFirst makes d what upstreams are told of hosts, unless something is. eraOpen has the
// first host that speaks change the era.
func (ds *declarations) setFirst(d declaration, eraOpen bool) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.eraOpen = ds.eraOpen || eraOpen
	if !ds.isSet {
		ds.first, ds.isSet = d, true
		close(ds.known)
	}
}

// get returns what upstreams are told of hosts: what the first one said of itself. ok is
// false before there is one.
func (ds *declarations) get() (d declaration, ok bool) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.first, ds.isSet
}

func (s *session) declaration() declaration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.declared
}
