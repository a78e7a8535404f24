package lazy

import (
	"cmp"
	"fmt"
	"time"
)

// A TooManyError says that as many have a server to themselves as may.
type TooManyError struct {
	Upstream string
	Most     int // Server.MaxSessions
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%s: %d have it to themselves already", e.Upstream, e.Most)
}

// Own returns the upstream that has the server of u for one owner alone. It is made if
// there is none; then it takes the place of another owner's which is not connected, gone,
// if there may be no more: what was started for one owner never becomes another's. If
// its entry does not say after how long without use it is unloaded, idle does; 0 is
// never. The error is a *TooManyError, or ErrClosed.
func (s *Set) Own(u *Upstream, owner string, idle time.Duration) (own, gone *Upstream, err error) {
	defer func() {
		if gone != nil { // s.mu is not held any more
			s.retire(gone)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	name := u.Server.Name
	if s.closed || s.byName[name] != u {
		return nil, nil, ErrClosed
	}
	key := ownKey{name, owner}
	if own := s.owned[key]; own != nil {
		return own, nil, nil
	}
	others := 0
	for key, other := range s.owned {
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
		return nil, nil, &TooManyError{Upstream: name, Most: u.Server.MaxSessions}
	default:
		delete(s.owned, ownKey{name, gone.Owner})
	}
	server := u.Server
	server.IdleTimeout = cmp.Or(server.IdleTimeout, idle)
	own = newUpstream(s, server)
	own.Owner = owner
	s.owned[key] = own
	return own, gone, nil
}

// Owned is Own of what there is already, nil if there is nothing.
func (s *Set) Owned(server, owner string) *Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owned[ownKey{server, owner}]
}

// Disown ends what an owner had to himself, which it returns, when the calls in flight
// there have ended.
func (s *Set) Disown(owner string) (gone []*Upstream) {
	s.mu.Lock()
	for key, u := range s.owned {
		if key.owner == owner {
			delete(s.owned, key)
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
		return s.owned[ownKey{u.Server.Name, u.Owner}] == u
	}
	return s.byName[u.Server.Name] == u
}

// isAsleep reports whether nothing runs for an upstream, nor is about to.
func (u *Upstream) isAsleep() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.users == 0 && (u.state == Idle || u.state == Lost || u.state == Evicted)
}
