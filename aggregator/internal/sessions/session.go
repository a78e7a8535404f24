// Package sessions holds what is known of the hosts that are connected: whose they are, what
// they declared, how they differ from others, and what their models were shown.
package sessions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/observe"
	"github.com/dynmcp/dynmcp/aggregator/internal/task"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// An Identity says who a host is, and what it is served. It does not change after Session.Join.
type Identity struct {
	User        string // its principal: what comes of one user's calls is not for another's sessions. "" is the user of stdio
	Account     string // for whom its bytes are held: its user, or its address
	Server      string // the only one that is served, as it is by itself; "" is all
	ProfileName string // the profile of the config that is served, "" is the whole config
	SingleWrap  bool   // the run is about one command
	TreeOnly    bool   // it sees the tree surface alone, and what fails are errors with codes: no model reads them
	Persistent  bool   // its session is not for one request alone, which has what its user has
	Shared      bool   // it is one of many: an upstream's question that belongs to no call is not for it
	Local       bool   // nobody but the user who runs dynmcp reads what it is told: that is all of a failure
	MayLogIn    bool   // its user runs dynmcp, on this machine: a login's page comes back here, and the login is his
	Replica     bool   // it is another replica, which has hosts of its own
}

// A Session is the state of one host, for as long as it is connected.
type Session struct {
	Identity
	ID          string
	Host        transports.Peer
	Recipient   *notify.Recipient[*Session]
	StableTools notify.StableContent // the tools that its host is shown, if they stay
	Shown       Definitions          // to its model
	Roots       ask.RootSet
	LevelUpdate LevelUpdate

	begun atomic.Bool

	mu        sync.Mutex
	client    string   // what the host calls itself, "" if it has not said it
	profile   *Profile // by that; may be nil
	declared  Declaration
	progress  map[string]func(params json.RawMessage) // of server requests, by the token we gave
	lastToken int64                                   // or id of a question, which we gave
}

// A Declaration is what a host said of itself.
type Declaration struct {
	Capabilities json.RawMessage
	Era          transports.Era
	Tasks        catalog.Tasks // that it follows
}

// Open returns a new session, which is not known before Join.
func Open(all *notify.Registry[*Session], id Identity) *Session {
	s := &Session{Identity: id, progress: map[string]func(params json.RawMessage){}}
	s.Recipient = all.New(s)
	s.ID = s.Recipient.ID
	return s
}

// Join connects the session with its host, and makes it known.
func (s *Session) Join(peer transports.Peer) {
	s.Host = peer
	s.Recipient.Join(peer, notify.Audience{Server: s.Server, User: s.User, Replica: s.Replica, Shared: s.Shared})
}

// Begin reports whether this is the first request of the session.
func (s *Session) Begin() bool { return !s.begun.Swap(true) }

// IsSingleServer reports whether the session is about one server, which is shown as it is.
func (s *Session) IsSingleServer() bool { return s.SingleWrap || s.Server != "" }

// LoginOwner returns whom a login is offered to, in ask.Offers.
func (s *Session) LoginOwner() any {
	if !s.Persistent {
		return s.User
	}
	return s
}

// Declare keeps what the host said of itself, in the handshake or with a request, and
// returns it. What is kept is a copy: capabilities are part of the request's line.
func (s *Session) Declare(capabilities json.RawMessage, era transports.Era) Declaration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.declared.Era != era || !bytes.Equal(s.declared.Capabilities, capabilities) {
		s.declared = Declaration{bytes.Clone(capabilities), era, task.Declared(capabilities, era)}
	}
	return s.declared
}

// Declaration returns what the host said of itself.
func (s *Session) Declaration() Declaration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.declared
}

// Capabilities returns what the host declares that it can do, for a request of an era with this
// _meta.
func (s *Session) Capabilities(era transports.Era, meta json.RawMessage) json.RawMessage {
	if era == transports.Stateless {
		return wire.Get(meta, transports.MetaCapabilities)
	}
	return s.Declaration().Capabilities
}

// Introduce keeps the name, a JSON string or nil, that a host gives itself in the
// handshake, or in the stateless era in a request.
func (s *Session) Introduce(client json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if client == nil || wire.EqualString(client, s.client) {
		return
	}
	s.client, _ = wire.Text(client)
	s.profile = profileNamed(s.client)
}

// Profile returns the profile of the host by its own name, as far as it has said it.
func (s *Session) Profile() *Profile {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.profile == nil {
		return anyHost
	}
	return s.profile
}

// Info says whose session it is.
func (s *Session) Info() observe.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := observe.SessionInfo{ID: s.ID, User: s.User, Server: s.Server, Host: s.client, Replica: s.Replica}
	if s.Replica {
		info.User, info.Host = strings.TrimPrefix(info.User, "\x00"+s.ID), "another replica of dynmcp"
	}
	return info
}

// TrackProgress has the progress of a request to the host, under the token that it returns,
// passed to a function until done is called.
func (s *Session) TrackProgress(pass func(params json.RawMessage)) (token []byte, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastToken++
	ours := strconv.FormatInt(s.lastToken, 10)
	s.progress[ours] = pass
	return []byte(ours), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.progress, ours)
	}
}

// PassProgress passes on the progress that the host makes with a server request.
func (s *Session) PassProgress(params json.RawMessage) {
	s.mu.Lock()
	pass := s.progress[string(wire.Get(params, "progressToken"))]
	s.mu.Unlock()
	if pass != nil {
		pass(params)
	}
}

// ForHandshake returns the params of a question as hosts of the handshake era know
// them: there a question that is asked by way of a URL has an id (MCP 2025-11-25,
// "URL Mode Elicitation Requests").
func (s *Session) ForHandshake(method string, params json.RawMessage) json.RawMessage {
	if method != "elicitation/create" || !wire.EqualString(wire.Get(params, "mode"), "url") || wire.Get(params, "elicitationId") != nil {
		return params
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastToken++
	return wire.Set(params, "elicitationId", fmt.Appendf(nil, `"dynmcp-%d"`, s.lastToken))
}
