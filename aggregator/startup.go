package aggregator

import (
	"errors"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/lazy"
)

// startup is the first start of every eager upstream: lists, and requests for
// what nobody is known to have, wait for it.
type startup struct {
	mu       sync.Mutex
	begun    time.Time               // when the first were started, zero before
	starting map[*lazy.Upstream]bool // every one that was started: whether its first start goes on
	next     chan struct{}           // closed and replaced when starting changes
}

// add returns the eager upstreams that are to be started: at first those of the
// config at hand, once, and after that those which later configs bring.
func (s *startup) add(configured func() []*lazy.Upstream, first bool) (fresh []*lazy.Upstream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun.IsZero() != first {
		return nil
	}
	if first {
		s.begun = time.Now()
	}
	old := s.starting
	s.starting = map[*lazy.Upstream]bool{}
	for _, u := range configured() {
		starting, known := old[u]
		switch {
		case known:
			s.starting[u] = starting
		case !u.Server.Lazy() && !isolated(&u.Server):
			s.starting[u] = true
			fresh = append(fresh, u)
		}
	}
	s.changedLocked()
	return fresh
}

// note counts an upstream that is being started for a session.
func (s *startup) note(u *lazy.Upstream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting[u] = true
	s.changedLocked()
}

// ended notes that the first start of an upstream has succeeded or failed.
func (s *startup) ended(u *lazy.Upstream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.starting[u] {
		s.starting[u] = false
		if u.Owner != "" {
			delete(s.starting, u)
		}
		s.changedLocked()
	}
}

func (s *startup) changedLocked() {
	close(s.next)
	s.next = make(chan struct{})
}

// pending returns a channel that is closed when another first start has ended, nil
// if none goes on that counts.
func (s *startup) pending(counts func(*lazy.Upstream) bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	for u, starting := range s.starting {
		if starting && counts(u) {
			return s.next
		}
	}
	return nil
}

// left is what is left of wait since the upstreams were started.
func (s *startup) left(wait time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.begun.Add(wait))
}

// begin starts, when a session's first request comes, what is eager: what is for all
// with the first session, and what it has to itself if nothing is known of that.
func (s *session) begin() {
	s.agg.startEager(true)
	if s.begun.Swap(true) {
		return
	}
	for _, u := range s.agg.set.All() {
		if !isolated(&u.Server) || u.Server.Lazy() {
			continue
		}
		if info, ok := s.agg.catalog.View().Server(u.Server.Name); ok && info.Loaded {
			continue
		}
		dedicated, err := s.upstreamFor(u)
		if err != nil {
			s.agg.log.Warn("not started for a session", "upstream", u.Server.Name, "session", s.id, "err", err)
			continue
		}
		s.agg.startup.note(dedicated)
		s.agg.keepStarting(dedicated, s.agg.opts.Strict)
	}
}

// startEager starts the eager upstreams that are for all, when the first request comes,
// and those that a later config brought.
func (a *Aggregator) startEager(first bool) {
	for _, u := range a.startup.add(a.set.All, first) {
		a.keepStarting(u, first && (a.opts.Strict || a.single() == u))
	}
}

// keepStarting starts an upstream, and tries again until it is there; one that the run needs
// ends it if it fails.
func (a *Aggregator) keepStarting(u *lazy.Upstream, needed bool) {
	a.work.Go(func() {
		defer a.startup.ended(u)
		u.StartRetrying(a.ctx, func(err error) (retry bool) {
			a.startup.ended(u)
			if needed && a.ctx.Err() == nil && !errors.Is(err, lazy.ErrClosed) {
				a.cancel(&FatalError{Err: err})
			}
			return !needed
		})
	})
}

// anyLoading reports whether an upstream is being started.
func (a *Aggregator) anyLoading() bool {
	for _, u := range a.set.Everything() {
		if u.Status().State == lazy.Loading {
			return true
		}
	}
	return false
}
