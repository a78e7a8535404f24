package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/remote"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A server is shared by all sessions, unless its entry isolates sessions or principals, or it asks
// for roots (roots.go): then each session, principal or set of roots has an upstream of its own.
// Lookups, by a tool's name for example, find the upstream of the entry; For returns the one for
// a session's requests. Listings of all of them go into the catalogue for everybody, except those of a
// server that is called with what is a principal's (ListsTo).
//
// A session's own upstream ends with it. A principal's ends when it has not been used for long:
// standalone requests over HTTP have a session each, and between two of them a principal has
// none. For the same reason such requests use the upstream of their principal.

const (
	PrincipalOwner = remote.PrincipalOwner // prefix of a user's owner
	sessionOwner   = "session "            // prefix of a session's owner
)

// PrincipalIdle is how long an unused upstream of a principal is kept, unless its entry sets an idle
// timeout.
const PrincipalIdle = 30 * time.Minute

// owner returns the owner of the upstream for a session, "" if the server is shared, and its idle
// timeout.
func (f *Fleet) owner(s *sessions.Session, u *lazy.Upstream) (owner string, idle time.Duration) {
	server := &u.Server
	switch {
	case !Isolated(server):
		return cmp.Or(f.rootsOwner(s, u), f.eraOwner(s, u)), PrincipalIdle
	case server.Isolation == schema.IsolateSession && s.Persistent:
		return sessionOwner + s.ID, 0
	}
	return PrincipalOwner + s.User, PrincipalIdle
}

// Isolated reports whether each session or user has its own upstream of a server.
func Isolated(server *schema.Server) bool {
	return server.Isolation == schema.IsolateSession || server.Isolation == schema.IsolatePrincipal
}

// IsElsewhere reports whether calls of a session that are about to go to u belong to another
// upstream of the server, for its roots or its era.
func (f *Fleet) IsElsewhere(s *sessions.Session, u *lazy.Upstream) bool {
	owner, _ := f.owner(s, u)
	return u.Owner == "" && owner != "" && !Isolated(&u.Server)
}

// For returns the upstream for a session's requests to u.
func (f *Fleet) For(s *sessions.Session, u *lazy.Upstream) (*lazy.Upstream, error) {
	if u.Owner == rootless { // the roots of its host may be known now
		entry := f.Set.Get(u.Server.Name)
		if entry == nil {
			return nil, replaced(u.Server.Name)
		}
		u = entry
	}
	owner, idle := f.owner(s, u)
	if owner == "" || u.Owner != "" {
		return u, nil
	}
	dedicated, err := f.Dedicated(u, owner, idle)
	if err != nil {
		return nil, notDedicated(u, err)
	}
	if s.Persistent && s.Recipient.Ended() { // an upstream created now would stay
		f.RetireDedicated(s)
		return nil, transports.CutOff(u.Server.Name, transports.NotSent)
	}
	if of, roots := s.Roots.Known(); of == owner {
		f.Of(dedicated).roots.Store(&roots)
		f.Of(dedicated).user.Store(&s.User)
	}
	return dedicated, nil
}

// notDedicated explains why an owner has no upstream of its own.
func notDedicated(u *lazy.Upstream, err error) error {
	if !errors.Is(err, lazy.ErrTooMany) {
		return replaced(u.Server.Name)
	}
	what := u.Server.Isolation
	if !Isolated(&u.Server) {
		what = "set of roots"
	}
	return &transports.Failure{
		Upstream: u.Server.Name, Code: transports.CodeOverloaded, Outcome: transports.NotSent,
		Cause: fmt.Errorf("each %s has a server of its own, and there are %d, the most that there may be", what, u.Server.MaxSessions),
		Hint:  `close another that uses it, or raise its "max_sessions"`,
	}
}

// replaced is the failure of a call to an upstream that is closed during the lookup.
func replaced(server string) *transports.Failure {
	return &transports.Failure{
		Upstream: server, Code: transports.CodeShuttingDown, Outcome: transports.NotSent,
		Cause: errors.New("a new config has changed or removed it"), Hint: "call again",
	}
}

// ExistingFor returns the upstream of For if it exists, otherwise nil.
func (f *Fleet) ExistingFor(s *sessions.Session, u *lazy.Upstream) *lazy.Upstream {
	if u == nil || u.Owner != "" {
		return u
	}
	if owner, _ := f.owner(s, u); owner != "" {
		return f.Set.Dedicated(u.Server.Name, owner)
	}
	return u
}

// RetireDedicated ends the upstreams of a session that has ended.
func (f *Fleet) RetireDedicated(s *sessions.Session) {
	f.removeOwner(sessionOwner + s.ID)
	f.DropRoots(s, true)
}

// isPrivate reports whether an upstream belongs to one session or one user.
func (p *Endpoint) isPrivate() bool {
	return strings.HasPrefix(p.Upstream.Owner, sessionOwner) || strings.HasPrefix(p.Upstream.Owner, PrincipalOwner)
}

// isOfFew reports whether an upstream is for a part of one user's hosts, and not for all hosts that
// share its server.
func (p *Endpoint) isOfFew() bool {
	switch owner := p.Upstream.Owner; owner {
	case "":
		return p.claimedBy.Load() != nil
	default:
		return owner != rootless && !strings.HasPrefix(owner, handshakeOwner)
	}
}

// declaration returns the declaration for the upstream: that of the first host, or of its owner. ok
// is false before there is one.
func (p *Endpoint) declaration() (d sessions.Declaration, ok bool) {
	switch p.Upstream.Owner {
	case "", rootless:
		return p.fleet.Declared.Get()
	case handshakeOwner + p.Upstream.Server.Name:
		return handshakeDeclaration, true
	}
	for _, s := range p.Source().Sessions() {
		if d := s.Declaration(); d.Capabilities != nil {
			return d, true
		}
	}
	return p.fleet.Declared.Get() // it has left, or is a program without a host
}

// A shared run may have hosts of both eras. A server's behaviour may depend on the era: its
// requests to hosts, and its refusals for hosts that have not declared a capability. So the
// upstream of an entry is connected in the stateless era if the server supports it, and hosts of
// the handshake era have a separate one, connected at the first call of one of them. A server of
// one era has one connection, and calls of hosts of the other are translated; so are those of a
// server that runs only once.

// handshakeOwner begins the owner of upstreams for hosts of the handshake era.
const handshakeOwner = "handshake "

// noteEra records the era in which an upstream was connected.
func (p *Endpoint) noteEra(conn *upstream.Conn) {
	server := &p.Upstream.Server
	switch {
	case conn.Era() != transports.Stateless:
	case p.Upstream.Owner == handshakeOwner+server.Name: // it does not support the handshake
		p.Record.Entry.statelessOnly.Store(true)
	case p.isDivisible() && server.Place != schema.PlaceOne:
		p.Record.Entry.bothEras.Store(true)
	}
}

// eraOwner returns the owner of a server's upstream for the era of a session's hosts, "" if all
// share it.
func (f *Fleet) eraOwner(s *sessions.Session, u *lazy.Upstream) string {
	if !s.Shared || s.Replica {
		return ""
	}
	entry := f.Of(u).Record.Entry
	if !entry.bothEras.Load() || entry.statelessOnly.Load() || s.Declaration().Era != transports.Handshake {
		return ""
	}
	return handshakeOwner + u.Server.Name
}

// handshakeDeclaration is declared to the upstream for hosts of the handshake era.
var handshakeDeclaration = sessions.DeclareAll(transports.Handshake)

// Declarations are the declarations of hosts that upstreams get.
type Declarations struct {
	Known chan struct{} // closed when first is set

	mu      sync.Mutex
	first   sessions.Declaration // of the first host that made one
	isSet   bool                 // first is
	eraOpen bool                 // first declares the capabilities for all hosts, but no host has connected
}

// Note records a host's declaration.
func (ds *Declarations) Note(d sessions.Declaration) {
	ds.SetFirst(d, false)
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.eraOpen {
		ds.first.Era, ds.eraOpen = d.Era, false
	}
}

// SetFirst makes d the declaration for upstreams, unless there is one. eraOpen lets the first host
// that connects change the era.
func (ds *Declarations) SetFirst(d sessions.Declaration, eraOpen bool) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.eraOpen = ds.eraOpen || eraOpen
	if !ds.isSet {
		ds.first, ds.isSet = d, true
		close(ds.Known)
	}
}

// Get returns the declaration for upstreams: that of the first host. ok is false before there is
// one.
func (ds *Declarations) Get() (d sessions.Declaration, ok bool) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.first, ds.isSet
}
