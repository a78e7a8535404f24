package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/remote"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A server is shared by all sessions, unless its entry isolates sessions or principals, or it asks
// for roots (roots.go): then each session, principal or set of roots has an upstream of its own.
// Lookups, by a tool's name for example, find the upstream of the entry; For returns the one for
// a session's requests. Listings of all of them go into the catalogue for everybody.
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
		return cmp.Or(f.rootsOwner(s, u), f.EraOwner(s, u)), PrincipalIdle
	case server.Isolation == schema.IsolateSession && s.Persistent:
		return sessionOwner + s.ID, 0
	}
	return PrincipalOwner + s.User, PrincipalIdle
}

// Isolated reports whether each session or user has its own upstream of a server.
func Isolated(server *schema.Server) bool {
	return server.Isolation == schema.IsolateSession || server.Isolation == schema.IsolatePrincipal
}

// For returns the upstream for a session's requests to u.
func (f *Fleet) For(s *sessions.Session, u *lazy.Upstream) (*lazy.Upstream, error) {
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
	f.disowned(sessionOwner + s.ID)
	f.DropRoots(s, true)
}

// isPrivate reports whether an upstream belongs to one session or one user.
func (p *Endpoint) isPrivate() bool {
	return strings.HasPrefix(p.Upstream.Owner, sessionOwner) || strings.HasPrefix(p.Upstream.Owner, PrincipalOwner)
}

// isOfFew reports whether an upstream is for a part of one user's hosts, and not for all hosts that
// share its server.
func (p *Endpoint) isOfFew() bool {
	return p.Upstream.Owner != "" && !strings.HasPrefix(p.Upstream.Owner, handshakeOwner)
}

// declaration returns the declaration for the upstream: that of the first host, or of its owner. ok
// is false before there is one.
func (p *Endpoint) declaration() (d sessions.Declaration, ok bool) {
	switch p.Upstream.Owner {
	case "":
		return p.fleet.Declared.Get()
	case handshakeOwner + p.Upstream.Server.Name:
		return ofHandshake, true
	}
	for _, s := range p.Source().Sessions() {
		if d := s.Declaration(); d.Capabilities != nil {
			return d, true
		}
	}
	return p.fleet.Declared.Get() // it has left, or is a program without a host
}
