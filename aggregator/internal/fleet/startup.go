package fleet

import (
	"errors"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/lazy"
)

// Startup tracks the first start of every eager upstream. Lists, and requests for unknown tools or
// resources, wait for it.
type Startup struct {
	mu       sync.Mutex
	begun    time.Time               // when the first were started, zero before
	starting map[*lazy.Upstream]bool // every upstream that was started: whether its first start is in progress
	next     chan struct{}           // closed and replaced when starting changes
}

// add returns the eager upstreams to start: at first those of the present config, once, and later
// those that new configs add.
func (s *Startup) add(configured func() []*lazy.Upstream, first bool) (fresh []*lazy.Upstream) {
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
		case !u.Server.Lazy() && !Isolated(&u.Server):
			s.starting[u] = true
			fresh = append(fresh, u)
		}
	}
	s.changedLocked()
	return fresh
}

// note adds an upstream that is being started for a session.
func (s *Startup) note(u *lazy.Upstream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting[u] = true
	s.changedLocked()
}

// ended records that the first start of an upstream has succeeded or failed.
func (s *Startup) ended(u *lazy.Upstream) {
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

func (s *Startup) changedLocked() {
	close(s.next)
	s.next = make(chan struct{})
}

// Pending returns a channel that is closed when another first start has ended, nil if none that
// counts is in progress.
func (s *Startup) Pending(counts func(*lazy.Upstream) bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	for u, starting := range s.starting {
		if starting && counts(u) {
			return s.next
		}
	}
	return nil
}

// Left returns the rest of wait since the upstreams were started.
func (s *Startup) Left(wait time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.begun.Add(wait))
}

// Begin starts eager upstreams at a session's first request: shared ones with the first session, and
// the session's own ones if nothing is known about them.
func (f *Fleet) Begin(s *sessions.Session) {
	f.StartEager(true)
	if !s.Begin() {
		return
	}
	for _, u := range f.Set.All() {
		if !Isolated(&u.Server) || u.Server.Lazy() || !f.Includes(s, u.Server.Name) {
			continue
		}
		if info, ok := f.Views(s)[catalog.NoTasks].Server(u.Server.Name); ok && info.Loaded {
			continue
		}
		dedicated, err := f.For(s, u)
		if err != nil {
			f.Log.Warn("not started for a session", "upstream", u.Server.Name, "session", s.ID, "err", err)
			continue
		}
		f.Startup.note(dedicated)
		f.keepStarting(dedicated, f.Strict && !u.Server.IsPersonal())
	}
}

// StartEager starts the eager shared upstreams, at the first request, and those that a later config
// added.
func (f *Fleet) StartEager(first bool) {
	for _, u := range f.Startup.add(f.Set.All, first) {
		f.keepStarting(u, first && (f.Strict || f.Wrapped() == u))
	}
}

// keepStarting starts an upstream, and retries until it succeeds; the failure of one that the run
// needs ends the run.
func (f *Fleet) keepStarting(u *lazy.Upstream, needed bool) {
	f.Work.Go(func() {
		defer f.Startup.ended(u)
		u.StartRetrying(f.Context, func(err error) (retry bool) {
			f.Startup.ended(u)
			if needed && f.Context.Err() == nil && !errors.Is(err, lazy.ErrClosed) {
				f.Run.Fatal(err)
			}
			return !needed && !u.Server.IsPersonal() // whose user may lack what it needs
		})
	})
}

// AnyLoading reports whether an upstream is being started.
func (f *Fleet) AnyLoading() bool {
	for _, u := range f.Set.Everything() {
		if u.Status().State == lazy.Loading {
			return true
		}
	}
	return false
}
