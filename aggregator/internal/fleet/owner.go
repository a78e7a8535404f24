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

// Servers are for all sessions, or their entry isolates sessions or principals, or they
// ask for roots (roots.go): each session, principal or set of roots has an upstream of its own then. Whatever finds the upstream of a server, by a tool's
// name say, finds the one of the entry; upstreamFor leads from there to the one that a session's
// requests go to. What is listed by any of them is in the catalogue for all.
//
// A session's own ends with it. A principal's ends when it has not been used for long:
// requests over HTTP that stand for themselves have a session each, and between two of them
// a principal has none. For the same reason such requests have what their principal has.

const (
	PrincipalOwner = remote.PrincipalOwner // begins what owner says of a user
	sessionOwner   = "session "            // and of a session
)

// PrincipalIdle is how long a principal's own upstream stays without use, unless its
// entry says.
const PrincipalIdle = 30 * time.Minute

// owner returns who has a server to himself where it is the session's, "" where it is for
// all, and how long that stays without use.
func (f *Fleet) owner(s *sessions.Session, u *lazy.Upstream) (owner string, idle time.Duration) {
	server := &u.Server
	switch {
	case !Isolated(server):
		return cmp.Or(f.rootsOwner(s, u), f.EraOwner(s, u)), PrincipalIdle
	case server.Isolation == schema.IsolateSession && s.Lasts:
		return sessionOwner + s.ID, 0
	}
	return PrincipalOwner + s.User, PrincipalIdle
}

// Isolated reports whether each session or user has a server to itself.
func Isolated(server *schema.Server) bool {
	return server.Isolation == schema.IsolateSession || server.Isolation == schema.IsolatePrincipal
}

// For returns the upstream to which the requests of a session for u go.
func (f *Fleet) For(s *sessions.Session, u *lazy.Upstream) (*lazy.Upstream, error) {
	owner, idle := f.owner(s, u)
	if owner == "" || u.Owner != "" {
		return u, nil
	}
	dedicated, err := f.Dedicated(u, owner, idle)
	if err != nil {
		return nil, notDedicated(u, err)
	}
	if s.Lasts && s.Recipient.Ended() { // what it has now would stay
		f.Disown(s)
		return nil, transports.CutOff(u.Server.Name, transports.NotSent)
	}
	if of, roots := s.Roots.Known(); of == owner {
		f.Of(dedicated).roots.Store(&roots)
		f.Of(dedicated).user.Store(&s.User)
	}
	return dedicated, nil
}

// notDedicated says why an owner has no upstream of its own.
func notDedicated(u *lazy.Upstream, err error) error {
	var tooMany *lazy.TooManyError
	if !errors.As(err, &tooMany) {
		return replaced(u.Server.Name)
	}
	what := u.Server.Isolation
	if !Isolated(&u.Server) {
		what = "set of roots"
	}
	return &transports.Failure{
		Upstream: tooMany.Upstream, Code: transports.CodeOverloaded, Outcome: transports.NotSent,
		Cause: fmt.Errorf("each %s has a server of its own, and there are %d, the most that there may be", what, tooMany.Most),
		Hint:  `close another that uses it, or raise its "max_sessions"`,
	}
}

// replaced is the failure of a call to an upstream that is closed while it is looked for.
func replaced(server string) *transports.Failure {
	return &transports.Failure{
		Upstream: server, Code: transports.CodeShuttingDown, Outcome: transports.NotSent,
		Cause: errors.New("a new config has changed or removed it"), Hint: "call again",
	}
}

// ExistingFor is upstreamFor where that is there already, nil if nothing is.
func (f *Fleet) ExistingFor(s *sessions.Session, u *lazy.Upstream) *lazy.Upstream {
	if u == nil || u.Owner != "" {
		return u
	}
	if owner, _ := f.owner(s, u); owner != "" {
		return f.Set.Owned(u.Server.Name, owner)
	}
	return u
}

// Disown ends what a session that has ended had to itself.
func (f *Fleet) Disown(s *sessions.Session) {
	f.disowned(sessionOwner + s.ID)
	f.DropRoots(s, true)
}

// isPrivate reports whether an upstream is of one session, or of one user alone.
func (p *Peer) isPrivate() bool {
	return strings.HasPrefix(p.Upstream.Owner, sessionOwner) || strings.HasPrefix(p.Upstream.Owner, PrincipalOwner)
}

// isOfFew reports whether an upstream is for a part of one user's hosts, and not for as
// many as share its server.
func (p *Peer) isOfFew() bool {
	return p.Upstream.Owner != "" && !strings.HasPrefix(p.Upstream.Owner, handshakeOwner)
}

// declaration returns what the upstream is told of hosts: what the first one said of
// itself, or its owner. ok is false before there is one.
func (p *Peer) declaration() (d sessions.Declaration, ok bool) {
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
	return p.fleet.Declared.Get() // it has left, or is no host but a program
}
