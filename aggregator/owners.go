package aggregator

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/remote"
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
	principalOwner = remote.PrincipalOwner // begins what owner says of a user
	sessionOwner   = "session "            // and of a session
)

// principalIdle is how long a principal's own upstream stays without use, unless its
// entry says.
const principalIdle = 30 * time.Minute

// owner returns who has a server to himself where it is the session's, "" where it is for
// all, and how long that stays without use.
func (s *session) owner(u *lazy.Upstream) (owner string, idle time.Duration) {
	server := &u.Server
	switch {
	case !isolated(server):
		return cmp.Or(s.rootsOwner(u), s.eraOwner(u)), principalIdle
	case server.Isolation == schema.IsolateSession && s.lasts:
		return sessionOwner + s.id, 0
	}
	return principalOwner + s.principal.name, principalIdle
}

func isolated(server *schema.Server) bool {
	return server.Isolation == schema.IsolateSession || server.Isolation == schema.IsolatePrincipal
}

// upstreamFor returns the upstream to which the requests of a session for u go.
func (s *session) upstreamFor(u *lazy.Upstream) (*lazy.Upstream, error) {
	owner, idle := s.owner(u)
	if owner == "" || u.Owner != "" {
		return u, nil
	}
	dedicated, err := s.agg.dedicated(u, owner, idle)
	what := u.Server.Isolation
	if !isolated(&u.Server) {
		what = "set of roots"
	}
	var tooMany *lazy.TooManyError
	switch {
	case errors.As(err, &tooMany):
		return nil, &transports.Failure{
			Upstream: tooMany.Upstream, Code: transports.CodeOverloaded, Outcome: transports.NotSent,
			Cause: fmt.Errorf("each %s has a server of its own, and there are %d, the most that there may be", what, tooMany.Most),
			Hint:  `close another that uses it, or raise its "max_sessions"`,
		}
	case err != nil:
		return nil, replaced(u.Server.Name)
	}
	if s.lasts && s.recipient.Ended() { // what it has now would stay
		s.disown()
		return nil, transports.CutOff(u.Server.Name, transports.NotSent)
	}
	if of, roots := s.roots.Known(); of == owner {
		s.agg.peerOf(dedicated).roots.Store(&roots)
		s.agg.peerOf(dedicated).user.Store(&s.principal)
	}
	return dedicated, nil
}

// replaced is the failure of a call to an upstream that is closed while it is looked for.
func replaced(server string) *transports.Failure {
	return &transports.Failure{
		Upstream: server, Code: transports.CodeShuttingDown, Outcome: transports.NotSent,
		Cause: errors.New("a new config has changed or removed it"), Hint: "call again",
	}
}

// existingFor is upstreamFor where that is there already, nil if nothing is.
func (s *session) existingFor(u *lazy.Upstream) *lazy.Upstream {
	if u == nil || u.Owner != "" {
		return u
	}
	if owner, _ := s.owner(u); owner != "" {
		return s.agg.set.Owned(u.Server.Name, owner)
	}
	return u
}

// disown ends what a session that has ended had to itself.
func (s *session) disown() {
	s.agg.disowned(sessionOwner + s.id)
	s.dropRoots(true)
}

// isPrivate reports whether an upstream is of one session, or of one user alone.
func (p *peer) isPrivate() bool {
	return strings.HasPrefix(p.upstream.Owner, sessionOwner) || strings.HasPrefix(p.upstream.Owner, principalOwner)
}

// isOfFew reports whether an upstream is for a part of one user's hosts, and not for as
// many as share its server.
func (p *peer) isOfFew() bool {
	return p.upstream.Owner != "" && !strings.HasPrefix(p.upstream.Owner, handshakeOwner)
}

// declaration returns what the upstream is told of hosts: what the first one said of
// itself, or its owner. ok is false before there is one.
func (p *peer) declaration() (d declaration, ok bool) {
	switch p.upstream.Owner {
	case "":
		return p.agg.declared.get()
	case handshakeOwner + p.upstream.Server.Name:
		return ofHandshake, true
	}
	for _, s := range p.source().Sessions() {
		if d := s.declaration(); d.capabilities != nil {
			return d, true
		}
	}
	return p.agg.declared.get() // it has left, or is no host but a program
}
