package lazy

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// SetOptions configure a Set.
type SetOptions struct {
	// Load connects an upstream and fetches its lists. With an error it must leave no
	// connection open. ctx ends when the upstream is replaced or the set is closed. Load
	// must not be nil.
	Load func(ctx context.Context, u *Upstream) (*upstream.Conn, error)
	// Changed is called, without locks, when an upstream's state has changed. It
	// must not be nil.
	Changed func(u *Upstream)
	// Needed reports, without locks, whether a connection without users stays open, because
	// hosts wait for notifications. Nil means never.
	Needed func(u *Upstream) bool
	Logger *slog.Logger // logs panics; nil is slog.Default
}

// A Set is the upstreams of one config.
type Set struct {
	opts   SetOptions
	ctx    context.Context // ends with the set
	cancel context.CancelFunc
	wg     sync.WaitGroup // loads, watchers and connections being closed

	mu        sync.Mutex
	byName    map[string]*Upstream
	order     []*Upstream
	dedicated map[ownerKey]*Upstream // upstreams of single sessions and principals
	closed    bool
}

// An ownerKey identifies an owner's upstream for a server.
type ownerKey struct{ server, owner string }

// NewSet returns an empty set. Close must be called.
func NewSet(opts SetOptions) *Set {
	opts.Logger = cmp.Or(opts.Logger, slog.Default())
	s := &Set{opts: opts, byName: map[string]*Upstream{}, dedicated: map[ownerKey]*Upstream{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// drainTime limits how long calls in flight may run on an upstream that a new config
// replaces or leaves out.
const drainTime = 30 * time.Second

// Apply makes the set hold these servers, in this order, without the disabled ones. An
// upstream whose entry is unchanged stays, with its connection, its calls in flight and a
// full budget. The others are returned. They and the upstreams of their owners take no more
// calls, and are closed when their calls in flight have ended. Apply starts nothing.
func (s *Set) Apply(servers []schema.Server) (gone []*Upstream) {
	s.mu.Lock()
	old := s.byName
	s.byName = map[string]*Upstream{}
	s.order = nil
	for _, server := range servers {
		if server.Disabled {
			continue
		}
		u := old[server.Name]
		if u != nil && reflect.DeepEqual(u.Server, server) {
			delete(old, server.Name)
			u.resetRetries()
		} else {
			u = newUpstream(s, server)
		}
		s.byName[server.Name] = u
		s.order = append(s.order, u)
	}
	var own []*Upstream
	for key, u := range s.dedicated {
		if _, replaced := old[key.server]; replaced {
			delete(s.dedicated, key)
			own = append(own, u)
		} else {
			u.resetRetries()
		}
	}
	s.mu.Unlock()
	for _, u := range own {
		s.retire(u)
	}
	for _, u := range old {
		gone = append(gone, u)
		s.retire(u)
	}
	return gone
}

// retire closes an upstream that is no longer in the set.
func (s *Set) retire(u *Upstream) {
	conn, unused := u.close()
	if conn == nil {
		return
	}
	if !s.enter() {
		conn.Close()
		return
	}
	defer s.wg.Done()
	s.spawn(func() { s.drain(conn, unused) })
}

// drain closes a connection when it is no longer used, after drainTime, or with the
// set.
func (s *Set) drain(conn *upstream.Conn, unused <-chan struct{}) {
	select {
	case <-unused:
	case <-conn.Done():
	case <-time.After(drainTime):
	case <-s.ctx.Done():
	}
	conn.Close()
}

// Get returns the upstream with this name, nil if absent.
func (s *Set) Get(name string) *Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name]
}

// All returns the upstreams in config order.
func (s *Set) All() []*Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.order
}

// Everything returns the upstreams in config order, followed by those of single owners in
// no order.
func (s *Set) Everything() []*Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.AppendSeq(slices.Clone(s.order), maps.Values(s.dedicated))
}

// Close closes all connections and returns when nothing of the set is left:
// no load, no child, no goroutine.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	var conns sync.WaitGroup
	for _, u := range s.Everything() {
		if conn, _ := u.close(); conn != nil {
			conns.Go(conn.Close)
		}
	}
	conns.Wait()
	s.wg.Wait()
}

// enter counts a goroutine that Close waits for; false if the set is closed.
func (s *Set) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	return true
}

// watch records the end of a connection, and frees its resources. The caller is a load, which
// is counted. A connection that was replaced while calls are in flight ends with these, or
// with the set.
func (s *Set) watch(u *Upstream, conn *upstream.Conn) {
	s.spawn(func() {
		select {
		case <-conn.Done():
			s.guarded(func() { u.lost(conn) })
		case <-s.ctx.Done():
		}
		conn.Close()
	})
}

// goClose closes a connection in the background. Set.Close waits for it, because the caller
// or the connection's watcher is counted.
func (s *Set) goClose(conn *upstream.Conn) { s.spawn(conn.Close) }

// spawn runs f on a goroutine that Close waits for; the caller is counted.
func (s *Set) spawn(f func()) { s.wg.Go(func() { s.guarded(f) }) }

func (s *Set) changed(u *Upstream) { s.guarded(func() { s.opts.Changed(u) }) }

// guarded runs f and logs a panic, which ends only f.
func (s *Set) guarded(f func()) {
	defer func() {
		if r := recover(); r != nil {
			s.opts.Logger.Error("panic", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	f()
}
