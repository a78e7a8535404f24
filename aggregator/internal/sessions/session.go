// Package sessions holds what is known about connected hosts: their users, what they declared,
// how they differ from others, and which definitions their models were shown.
package sessions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/task"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// An Identity says who a host is, and what its session shows. It does not change after
// Session.Join.
type Identity struct {
	User        string // principal: messages about one user's calls are not for other users' sessions; "" is the user of stdio
	Account     string // account for the bytes held for it: its user, or its address
	Server      string // the only server of the session, shown unchanged; "" is all
	ProfileName string // the profile of the config that is shown; "" is the whole config
	SingleWrap  bool   // the run wraps one command
	TreeOnly    bool   // it uses the tree's API: failures are errors with codes, because no model reads them
	Persistent  bool   // the session has many requests; otherwise one, which uses the state of its user
	Shared      bool   // it is one of many hosts: an upstream's question that belongs to no call is not for it
	Local       bool   // its user runs dynmcp, and is told the whole cause of a failure
	MayLogIn    bool   // its user runs dynmcp on this machine, so that the redirect of a login comes back here
	Streams     bool   // it is connected by streams of this machine, not over HTTP: its files are ours
	Replica     bool   // it is another replica, which has hosts of its own
}

// A Session is the state of one host while it is connected.
type Session struct {
	Identity
	ID          string
	Host        transports.Peer
	Recipient   *notify.Recipient[*Session]
	StableTools notify.StableContent // the host's list of tools, if it is kept unchanged
	Shown       Definitions          // to its model
	Roots       ask.RootSet
	Connections Connections
	Links       Links
	LevelUpdate LevelUpdate

	begun atomic.Bool

	keeping  sync.Mutex // held while reserved changes
	reserved *membudget.Reservation

	mu        sync.Mutex
	client    string   // the host's clientInfo.name, "" if not known
	profile   *Profile // for client; may be nil
	declared  Declaration
	progress  map[string]func(params json.RawMessage) // of server requests, by our token
	lastToken int64                                   // the last of our tokens and of our ids of questions
}

// A Declaration is what a host declared.
type Declaration struct {
	Host         string // its clientInfo.name, "" if not known
	Capabilities json.RawMessage
	Era          transports.Era
	Tasks        catalog.Tasks     // that it can use
	able         catalog.Abilities // of Capabilities
}

// DeclareAll returns the declaration that a run of many hosts makes to its upstreams: of every
// capability that one of them may have. A request that the host of a call does not support is
// refused when it is made.
func DeclareAll(era transports.Era) Declaration {
	return Declaration{Capabilities: catalog.AbleToAll.Capabilities(), Era: era, able: catalog.AbleToAll}
}

// Open returns a new session, which is not registered before Join. What it keeps of its host is
// counted in a budget.
func Open(all *notify.Registry[*Session], id Identity, budget *membudget.Budget) *Session {
	s := &Session{Identity: id, reserved: budget.Open(id.Account, nil), progress: map[string]func(params json.RawMessage){}}
	s.Recipient = all.New(s)
	s.ID, s.Recipient.Early = s.Recipient.ID, s.Memory()
	return s
}

// Join connects the session with its host, and registers it.
func (s *Session) Join(peer transports.Peer) {
	s.Host = peer
	s.Recipient.Join(peer, notify.Audience{Server: s.Server, User: s.User, Replica: s.Replica, Shared: s.Shared})
}

// Begin reports whether this is the first request of the session.
func (s *Session) Begin() bool { return !s.begun.Swap(true) }

// IsSingleServer reports whether the session is about one server, which is shown unchanged.
func (s *Session) IsSingleServer() bool { return s.SingleWrap || s.Server != "" }

// Share returns whose share of what hosts share the session takes: its account's or, without one, its
// own, since each host of a run that is shared is a user of its own.
func (s *Session) Share() string { return cmp.Or(s.Account, "session "+s.ID) }

// LoginOwner returns the key in ask.Offers for logins that are offered to the host: the
// session, or its user if it is not persistent.
func (s *Session) LoginOwner() any {
	if !s.Persistent {
		return s.User
	}
	return s
}

// What is kept of a declaration: copies of it, decoded ones by the SDK. A small one is not counted, as the
// rest of a session is not.
const (
	copies = 4
	small  = 1 << 10 // bytes
)

// Declare keeps a copy of the capabilities that the host declared, in the handshake or with a
// request, and returns the declaration. It returns false, and keeps nothing, if the session's account
// may not have the memory for it.
func (s *Session) Declare(capabilities json.RawMessage, era transports.Era) (_ Declaration, ok bool) {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	d := s.Declaration()
	if d.Era == era && bytes.Equal(d.Capabilities, capabilities) {
		return d, true
	}
	next := Declaration{s.Info().Host, bytes.Clone(capabilities), era, task.Declared(capabilities, era), catalog.AbilitiesOf(capabilities)}
	s.setDeclaration(next)
	if !s.countLocked() {
		s.setDeclaration(d)
		return d, false
	}
	return next, true
}

func (s *Session) setDeclaration(d Declaration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declared = d
}

// Count charges the session's account for what is kept of its host: declared capabilities,
// subscriptions, the request for log messages, roots, links of results. It returns false if the account may not have
// so much. It must be called when any of that has changed, and at the end of the session, when
// nothing is charged.
func (s *Session) Count() bool {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	return s.countLocked()
}

// countLocked is Count with s.keeping held.
func (s *Session) countLocked() bool {
	n := 0
	if s.Persistent && !s.Recipient.Ended() { // the body of the one request of another is counted
		_, roots := s.Roots.Known()
		n = copies*max(len(s.Declaration().Capabilities)-small, 0) + s.Recipient.Kept() + s.Links.kept() + len(roots)
	}
	return s.reserved.Resize(int64(n))
}

// Memory returns a reservation of the session's account.
func (s *Session) Memory() *membudget.Reservation { return s.reserved.Sibling(nil) }

// Declaration returns what the host declared last.
func (s *Session) Declaration() Declaration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.declared
}

// Able returns what upstreams can ask the host for, as far as that decides what they list to it.
// A program that declares nothing is no host, and sees all.
func (s *Session) Able() catalog.Abilities {
	if d := s.Declaration(); d.Capabilities != nil && !s.Replica {
		return d.able
	}
	return catalog.AbleToAll
}

// Lacks returns why the host cannot answer a server request of the handshake era, "" if it can.
func (s *Session) Lacks(method string, params json.RawMessage) string {
	if method == "roots/list" && s.Profile().AnswersRoots {
		return ""
	}
	return ask.Lacks(s.Declaration().Capabilities, method, params)
}

// Capabilities returns the capabilities that the host declared for a request of an era with
// this _meta.
func (s *Session) Capabilities(era transports.Era, meta json.RawMessage) json.RawMessage {
	if era == transports.Stateless {
		return wire.Get(meta, transports.MetaCapabilities)
	}
	return s.Declaration().Capabilities
}

// Introduce keeps the host's clientInfo.name, a JSON string or nil, from the handshake or from
// a request of the stateless era.
func (s *Session) Introduce(client json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if client == nil || wire.EqualString(client, s.client) {
		return
	}
	name, _ := wire.Text(client)
	s.client = display.Label(name)
	s.profile = profileOfClient(s.client)
}

// Profile returns the profile for the host's clientInfo.name, defaultProfile if that is not known.
func (s *Session) Profile() *Profile {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.profile == nil {
		return defaultProfile
	}
	return s.profile
}

// Info identifies the session for observers.
func (s *Session) Info() event.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := event.Session{ID: s.ID, User: display.Label(s.User), Server: s.Server, Host: s.client, Share: s.Share(), Replica: s.Replica}
	if s.Replica {
		info.User, info.Host = display.Label(strings.TrimPrefix(s.User, "\x00"+s.ID)), "another replica of dynmcp"
	}
	return info
}

// TrackProgress returns a progress token for a request to the host. The progress that the host
// reports for it is passed to a function until done is called.
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

// PassProgress passes on the host's progress with a server request.
func (s *Session) PassProgress(params json.RawMessage) {
	s.mu.Lock()
	pass := s.progress[string(wire.Get(params, "progressToken"))]
	s.mu.Unlock()
	if pass != nil {
		pass(params)
	}
}

// ForHandshake returns the params of a question for a host of the handshake era: there an
// elicitation by URL has an id (MCP 2025-11-25, "URL Mode Elicitation Requests").
func (s *Session) ForHandshake(method string, params json.RawMessage) json.RawMessage {
	if method != "elicitation/create" || !wire.EqualString(wire.Get(params, "mode"), "url") || wire.Get(params, "elicitationId") != nil {
		return params
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastToken++
	return wire.Set(params, "elicitationId", fmt.Appendf(nil, `"dynmcp-%d"`, s.lastToken))
}
