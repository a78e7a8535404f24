package aggregator

import (
	"context"
	"errors"
	"sync"
	"time"

	"dynmcp/lazy"
)

// startup is the first start of every eager upstream: lists, and requests for
// what nobody is known to have, wait for it.
type startup struct {
	mu       sync.Mutex
	begun    time.Time               // when the first were started, zero before
	seen     map[*lazy.Upstream]bool // those started since, if they are still configured
	starting map[*lazy.Upstream]bool // those whose first start has not ended
	all      chan struct{}           // closed while none is starting
	next     chan struct{}           // closed and replaced when one has started or failed to
}

func newStartup() *startup {
	s := &startup{starting: map[*lazy.Upstream]bool{}, all: make(chan struct{}), next: make(chan struct{})}
	close(s.all)
	return s
}

// begin returns the upstreams to start when it is called for the first time.
func (s *startup) begin(configured func() []*lazy.Upstream) []*lazy.Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun.IsZero() {
		return nil
	}
	s.begun = time.Now()
	return s.addLocked(configured())
}

// add returns those of a new config to start; none before begin.
func (s *startup) add(configured []*lazy.Upstream) []*lazy.Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun.IsZero() {
		return nil
	}
	return s.addLocked(configured)
}

func (s *startup) addLocked(configured []*lazy.Upstream) (fresh []*lazy.Upstream) {
	seen := map[*lazy.Upstream]bool{}
	for _, u := range configured {
		if u.Server.Lazy() {
			continue
		}
		seen[u] = true
		if !s.seen[u] {
			fresh = append(fresh, u)
		}
	}
	s.seen = seen
	if len(s.starting) == 0 && len(fresh) > 0 {
		s.all = make(chan struct{})
	}
	for _, u := range fresh {
		s.starting[u] = true
	}
	return fresh
}

// ended notes that the first start of an upstream has succeeded or failed.
func (s *startup) ended(u *lazy.Upstream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.starting[u] {
		return
	}
	delete(s.starting, u)
	close(s.next)
	s.next = make(chan struct{})
	if len(s.starting) == 0 {
		close(s.all)
	}
}

// pending returns a channel that is closed when no first start goes on any more,
// and one that is closed when another has ended, nil if none goes on.
func (s *startup) pending() (all, next <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.starting) == 0 {
		return s.all, nil
	}
	return s.all, s.next
}

// await waits for done, at most wait from when the upstreams were started, and
// reports whether it came.
func (s *startup) await(ctx context.Context, wait time.Duration, done <-chan struct{}) bool {
	s.mu.Lock()
	left := time.Until(s.begun.Add(wait))
	s.mu.Unlock()
	timer := time.NewTimer(max(left, 0))
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// startEager starts the eager upstreams when the first request comes.
func (a *Aggregator) startEager() {
	for _, u := range a.startup.begin(a.set.All) {
		needed := a.opts.Strict || a.single() == u
		a.spawn(func() { a.hold(u, needed) })
	}
}

// startAdded starts the eager upstreams that a new config brought. The run does
// without them if need be.
func (a *Aggregator) startAdded() {
	for _, u := range a.startup.add(a.set.All()) {
		a.spawn(func() { a.hold(u, false) })
	}
}

// hold starts an eager upstream and tries again until it is there; if that fails
// for one that is needed, the run ends. Once it was there, the next use brings it
// back.
func (a *Aggregator) hold(u *lazy.Upstream, needed bool) {
	defer a.startup.ended(u)
	u.Hold(a.ctx, func(err error) (retry bool) {
		a.startup.ended(u)
		if needed && a.ctx.Err() == nil && !errors.Is(err, lazy.ErrClosed) {
			a.cancel(&FatalError{Err: err})
		}
		return !needed
	})
}

// awaitSingle waits for the upstream of single-wrap mode.
func (a *Aggregator) awaitSingle(ctx context.Context) error {
	u := a.single()
	if u == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	_, release, err := u.Acquire(ctx)
	var fatal *FatalError
	switch {
	case err == nil:
		release()
		return nil
	case errors.As(context.Cause(a.ctx), &fatal):
		return fatal.Err
	}
	return err
}

// awaitListings waits, before lists are answered, for the upstreams that are
// starting, up to startup_wait, and for lists that are being fetched again.
func (a *Aggregator) awaitListings(ctx context.Context) error {
	if err := a.awaitSingle(ctx); err != nil {
		return err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	all, _ := a.startup.pending()
	a.startup.await(waiting, a.config().StartupWait, all)
	a.awaitRefresh(waiting)
	return ctx.Err()
}

// incomplete reports whether an upstream that is starting has yet to say what it
// has.
func (a *Aggregator) incomplete() bool {
	if a.catalog.View().Complete() {
		return false
	}
	_, next := a.startup.pending()
	return next != nil
}

// anyLoading reports whether an upstream is being started.
func (a *Aggregator) anyLoading() bool {
	for _, u := range a.set.All() {
		if u.Status().State == lazy.Loading {
			return true
		}
	}
	return false
}
