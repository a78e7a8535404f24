package lazy

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

func TestMain(m *testing.M) {
	wire.OverwriteLent()
	goleak.VerifyTestMain(m)
}

// A testSet is a set whose loads a test decides.
type testSet struct {
	*Set
	loads   atomic.Int32
	changes atomic.Int32
	load    func(ctx context.Context, n int32) error // of the n-th load; nil is no error

	mu   sync.Mutex
	ends []net.Conn // the upstreams' ends of the connections, oldest first
}

// onTestSet runs a test in a synctest bubble, and closes the set at its end.
func onTestSet(t *testing.T, test func(t *testing.T, s *testSet)) {
	synctest.Test(t, func(t *testing.T) {
		s := &testSet{}
		s.Set = NewSet(SetOptions{
			Load:    s.connect,
			Changed: func(*Upstream) { s.changes.Add(1) },
		})
		defer s.Close()
		test(t, s)
	})
}

func (s *testSet) connect(ctx context.Context, u *Upstream) (*upstream.Conn, error) {
	n := s.loads.Add(1)
	if s.load != nil {
		if err := s.load(ctx, n); err != nil {
			return nil, err
		}
	}
	ours, theirs := net.Pipe()
	s.mu.Lock()
	s.ends = append(s.ends, theirs)
	s.mu.Unlock()
	return upstream.OpenStream(u.Server, ours, upstream.ConnOptions{}), nil
}

// crash ends the newest connection from the other side.
func (s *testSet) crash() {
	s.mu.Lock()
	end := s.ends[len(s.ends)-1]
	s.mu.Unlock()
	end.Close()
	synctest.Wait()
}

func (s *testSet) one(server schema.Server) *Upstream {
	server.Name = "one"
	s.Apply([]schema.Server{server})
	return s.Get("one")
}

var lazyServer = schema.Server{Description: "lazy", LoadBudget: 3}

func wantState(t *testing.T, u *Upstream, want State) {
	t.Helper()
	if got := u.Status().State; got != want {
		t.Errorf("state: got %s, want %s", got, want)
	}
}

func use(t *testing.T, u *Upstream) (*upstream.Conn, func()) {
	t.Helper()
	conn, release, err := u.Acquire(t.Context())
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return conn, release
}

// waitingUse calls Acquire on another goroutine and returns when that is blocked. The channel
// receives the error.
func waitingUse(t *testing.T, u *Upstream) <-chan error {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		_, _, err := u.Acquire(t.Context())
		failed <- err
	}()
	synctest.Wait()
	return failed
}

func failing(context.Context, int32) error { return errors.New("no such luck") }

func TestCallersShareOneLoad(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = func(context.Context, int32) error { time.Sleep(time.Second); return nil }
		u := s.one(lazyServer)
		var conns sync.Map
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				conn, release, err := u.Acquire(t.Context())
				if err != nil {
					t.Errorf("Acquire: %v", err)
					return
				}
				conns.Store(conn, true)
				release()
			})
		}
		all.Wait()
		different := 0
		conns.Range(func(any, any) bool { different++; return true })
		if got := s.loads.Load(); got != 1 || different != 1 {
			t.Errorf("got %d loads and %d connections, want one", got, different)
		}
	})
}

func TestLeaderCancelKeepsLoad(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = func(ctx context.Context, _ int32) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Minute):
				return nil
			}
		}
		u := s.one(lazyServer)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := u.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller that gave up got %v", err)
		}
		_, release := use(t, u)
		release()
		if got := s.loads.Load(); got != 1 {
			t.Errorf("got %d loads, want 1", got)
		}
	})
}

func TestIdleIsUnloadedAndWakes(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(schema.Server{IdleTimeout: time.Minute})
		conn, release := use(t, u)
		time.Sleep(2 * time.Minute)
		wantState(t, u, Ready) // it has a user
		release()
		time.Sleep(30 * time.Second)
		_, release = use(t, u) // restarts the timer
		release()
		time.Sleep(40 * time.Second)
		wantState(t, u, Ready)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		wantState(t, u, Idle)
		if conn.Err() == nil {
			t.Error("the idle connection is open")
		}
		_, release = use(t, u)
		release()
		if got := s.loads.Load(); got != 2 {
			t.Errorf("got %d loads, want 2", got)
		}
	})
}

func TestNeededIsNotUnloaded(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		var needed atomic.Bool
		s.opts.Needed = func(*Upstream) bool { return needed.Load() }
		u := s.one(schema.Server{IdleTimeout: time.Minute})
		_, release := use(t, u)
		release()
		needed.Store(true)
		time.Sleep(time.Hour)
		wantState(t, u, Ready)
		needed.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		wantState(t, u, Idle)
	})
}

func TestPanicInALoadIsAnError(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = func(context.Context, int32) error { panic("oh") }
		u := s.one(lazyServer)
		_, _, err := u.Acquire(t.Context())
		if failure, ok := errors.AsType[*transports.Failure](err); !ok || failure.Outcome != transports.NotSent {
			t.Errorf("got %v", err)
		}
	})
}
