package aggregator

import (
	"encoding/json"
	"fmt"
	"sync"

	"dynmcp/internal/wire"
	"dynmcp/transports"
	"dynmcp/transports/host"
)

// A session is one host, for as long as it is connected.
type session struct {
	id   string
	peer transports.Peer // the host

	mu           sync.Mutex
	capabilities json.RawMessage // what the host declared
	level        json.RawMessage // the log level it asked for
	modern       bool            // it speaks the stateless era
	greeted      bool            // the handshake is over, it may be told things
	seen         digests         // what it read last, or was told to read anew
	listens      map[string]listen
	subscribed   map[string]bool                         // resource URIs
	progress     map[string]func(params json.RawMessage) // of questions, by the token we gave
}

// A listen is a stream of notifications that a host of the stateless era asked
// for (MCP 2026-07-28, "Subscriptions").
type listen struct {
	id        json.RawMessage // of the request, as it was sent
	tools     bool
	prompts   bool
	resources bool
	uris      map[string]bool
}

func (a *Aggregator) newSession() *session {
	seen := a.digest()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastID++
	return &session{
		id:         fmt.Sprintf("session-%d", a.lastID),
		listens:    map[string]listen{},
		subscribed: map[string]bool{},
		progress:   map[string]func(params json.RawMessage){},
		seen:       seen,
	}
}

// attach connects the session with its host; the aggregator knows it from
// then on.
func (a *Aggregator) attach(s *session, host transports.Peer) {
	s.peer = host
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions[s.id] = s
}

func (a *Aggregator) endSession(s *session) {
	a.mu.Lock()
	delete(a.sessions, s.id)
	a.mu.Unlock()
	s.mu.Lock()
	uris := s.subscribed
	s.subscribed = map[string]bool{}
	s.mu.Unlock()
	a.dropSubscriptions(uris)
}

func (a *Aggregator) session(id string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[id]
}

// eachSession calls f for every session, without a lock held.
func (a *Aggregator) eachSession(f func(*session)) {
	a.mu.Lock()
	all := make([]*session, 0, len(a.sessions))
	for _, s := range a.sessions {
		all = append(all, s)
	}
	a.mu.Unlock()
	for _, s := range all {
		f(s)
	}
}

// throttle returns when no host is far behind with what waits for it.
func (a *Aggregator) throttle() {
	a.eachSession(func(s *session) {
		if h, ok := s.peer.(*host.Session); ok {
			h.AwaitReader()
		}
	})
}

// learn keeps what a host said of itself, in the handshake or with a request.
func (a *Aggregator) learn(s *session, capabilities json.RawMessage, modern bool) {
	s.mu.Lock()
	s.capabilities, s.modern = capabilities, modern
	s.mu.Unlock()
	a.askOnce.Do(func() {
		a.mu.Lock()
		a.capabilities, a.modern = capabilities, modern
		a.mu.Unlock()
		close(a.asked)
	})
}

// can reports whether the host declared a capability, such as "sampling".
func (s *session) can(capability string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.Get(s.capabilities, capability) != nil
}
