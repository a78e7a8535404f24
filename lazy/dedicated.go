package lazy

import (
	"cmp"
	"errors"
	"time"
)

// ErrTooMany means that a server already has its maximum of owners, Server.MaxSessions.
var ErrTooMany = errors.New("it has its maximum of owners already")

// Dedicate returns the upstream that runs the server of u for one owner alone. It creates it
// if necessary. If the maximum is reached, another owner's upstream that is not connected is
// removed for it and returned as gone. idle is the idle timeout if the entry sets none; 0
// means none. The error is ErrTooMany or ErrClosed.
func (s *Set) Dedicate(u *Upstream, owner string, idle time.Duration) (own, gone *Upstream, err error) {
	defer func() {
		if gone != nil { // s.mu is no longer held
			s.retire(gone)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	name := u.Server.Name
	if s.closed || s.byName[name] != u {
		return nil, nil, ErrClosed
	}
	key := ownerKey{name, owner}
	if own := s.dedicated[key]; own != nil {
		return own, nil, nil
	}
	others := 0
	for key, other := range s.dedicated {
		if key.server == name {
			others++
			if gone == nil && other.isAsleep() {
				gone = other
			}
		}
	}
	switch {
	case others < u.Server.MaxSessions:
		gone = nil
	case gone == nil:
		return nil, nil, ErrTooMany
	default:
		delete(s.dedicated, ownerKey{name, gone.Owner})
	}
	server := u.Server
	server.IdleTimeout = cmp.Or(server.IdleTimeout, idle)
	own = newUpstream(s, server)
	own.Owner = owner
	s.dedicated[key] = own
	return own, gone, nil
}

// Dedicated returns the existing upstream of an owner, or nil.
func (s *Set) Dedicated(server, owner string) *Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dedicated[ownerKey{server, owner}]
}

// RetireDedicated removes and returns the upstreams of an owner. Each is closed when its calls
// in flight have ended.
func (s *Set) RetireDedicated(owner string) (gone []*Upstream) {
	s.mu.Lock()
	for key, u := range s.dedicated {
		if key.owner == owner {
			delete(s.dedicated, key)
			gone = append(gone, u)
		}
	}
	s.mu.Unlock()
	for _, u := range gone {
		s.retire(u)
	}
	return gone
}

// Has reports whether an upstream is part of the set.
func (s *Set) Has(u *Upstream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Owner != "" {
		return s.dedicated[ownerKey{u.Server.Name, u.Owner}] == u
	}
	return s.byName[u.Server.Name] == u
}

// isAsleep reports whether an upstream has no connection, no users, and no load in progress.
func (u *Upstream) isAsleep() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.users == 0 && (u.state == Idle || u.state == Lost || u.state == Evicted)
}
