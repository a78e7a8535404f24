package lazy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"dynmcp/schema"
	"dynmcp/transports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A stage is a set whose loads a test decides.
type stage struct {
	*Set
	loads   atomic.Int32
	changes atomic.Int32
	load    func(ctx context.Context, n int32) error // of the n-th load; nil is no error

	mu   sync.Mutex
	ends []net.Conn // the upstreams' ends of the connections, oldest first
}

// onStage runs a test in a bubble with a clock of its own, in which nothing may
// be left at the end.
func onStage(t *testing.T, test func(t *testing.T, s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		s.Set = NewSet(Options{
			Load:    s.connect,
			Changed: func(*Upstream) { s.changes.Add(1) },
		})
		defer s.Close()
		test(t, s)
	})
}

func (s *stage) connect(ctx context.Context, u *Upstream) (*transports.Conn, error) {
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
	return transports.OpenStream(u.Server, ours, transports.Options{}), nil
}

// crash ends the newest connection from the other side.
func (s *stage) crash() {
	s.mu.Lock()
	end := s.ends[len(s.ends)-1]
	s.mu.Unlock()
	end.Close()
	synctest.Wait()
}

func (s *stage) one(server schema.Server) *Upstream {
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

func use(t *testing.T, u *Upstream) (*transports.Conn, func()) {
	t.Helper()
	conn, release, err := u.Acquire(t.Context())
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return conn, release
}

func failing(context.Context, int32) error { return errors.New("no such luck") }

func TestCallersShareOneLoad(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
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
	onStage(t, func(t *testing.T, s *stage) {
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
			t.Errorf("the impatient caller got %v", err)
		}
		_, release := use(t, u)
		release()
		if got := s.loads.Load(); got != 1 {
			t.Errorf("got %d loads, want the first to go on", got)
		}
	})
}

func TestLoadAfterTwoFailures(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.load = func(ctx context.Context, n int32) error {
			if n < 3 {
				return failing(ctx, n)
			}
			return nil
		}
		u := s.one(lazyServer)
		for range 2 {
			if _, _, err := u.Acquire(t.Context()); err == nil {
				t.Fatal("a failing load was no error")
			}
			wantState(t, u, Idle)
		}
		_, release := use(t, u)
		release()
		if got := u.Status().Failures; got != 0 {
			t.Errorf("failures after a success: got %d", got)
		}
	})
}

func TestBudgetEvicts(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.load = failing
		u := s.one(lazyServer)
		var err error
		for range 3 {
			// Callers that share an attempt count once.
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() { _, _, _ = u.Acquire(t.Context()) })
			}
			_, _, err = u.Acquire(t.Context())
			all.Wait()
		}
		var evicted *EvictedError
		if !errors.As(err, &evicted) && !errors.Is(err, ErrEvicted) {
			t.Errorf("the last attempt: got %v", err)
		}
		wantState(t, u, Evicted)
		if _, _, err := u.Load(t.Context()); !errors.Is(err, ErrEvicted) {
			t.Errorf("after eviction: got %v", err)
		}
		s.Apply([]schema.Server{u.Server})
		wantState(t, s.Get("one"), Idle)
	})
}

func TestThirdFailureSaysSo(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.load = failing
		u := s.one(lazyServer)
		var err error
		for range 3 {
			_, _, err = u.Load(t.Context())
		}
		var evicted *EvictedError
		if !errors.As(err, &evicted) || evicted.Attempts != 3 || evicted.Upstream != "one" {
			t.Errorf("got %v", err)
		}
		if got := s.loads.Load(); got != 3 {
			t.Errorf("got %d loads, want 3", got)
		}
	})
}

func TestWhatDoesNotCount(t *testing.T) {
	login := &transports.Failure{Code: transports.CodeAuthRequired, Cause: errors.New("401")}
	for name, server := range map[string]schema.Server{
		"login":         lazyServer,
		"no budget":     {Description: "lazy", LoadBudget: 0},
		"an eager one":  {LoadBudget: 3},
		"an eager load": {Description: "eager all the same", Load: schema.LoadEager, LoadBudget: 3},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				s.load = failing
				if name == "login" {
					s.load = func(context.Context, int32) error { return login }
				}
				u := s.one(server)
				for range 10 {
					if _, _, err := u.Load(t.Context()); err == nil {
						t.Fatal("no error")
					}
				}
				wantState(t, u, Lost)
			})
		})
	}
}

func TestOnceReadyIsNeverEvicted(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		u := s.one(lazyServer)
		_, release := use(t, u)
		release()
		s.crash()
		wantState(t, u, Lost)
		s.load = failing
		for range 10 {
			if _, _, err := u.Load(t.Context()); err == nil {
				t.Fatal("no error")
			}
		}
		wantState(t, u, Lost)
	})
}

func TestBackoffGrowsWithJitter(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.load = failing
		u := s.one(schema.Server{})
		for pause := firstPause; pause < 2*longPause; pause *= 2 {
			began, before := time.Now(), s.loads.Load()
			_, _, err := u.Acquire(t.Context())
			if s.loads.Load() != before+1 {
				t.Fatalf("not tried when due: %v", err)
			}
			for s.loads.Load() == before+1 {
				_, _, err = u.Acquire(t.Context())
				var failure *transports.Failure
				if s.loads.Load() == before+1 && (!errors.As(err, &failure) || failure.Code != transports.CodeBackingOff) {
					t.Fatalf("while it backs off: got %v", err)
				}
				if s.loads.Load() == before+1 {
					time.Sleep(time.Millisecond)
				}
			}
			least, most := min(pause, longPause)*4/5, min(pause, longPause)*6/5+2*time.Millisecond
			if took := time.Since(began); took < least || took > most {
				t.Errorf("paused %s, want %s to %s", took, least, most)
			}
			pause *= 2 // the attempt that ended the loop failed as well
			time.Sleep(longPause * 2)
		}
		before := s.loads.Load()
		_, _, _ = u.Load(t.Context())
		_, _, _ = u.Load(t.Context())
		if got := s.loads.Load() - before; got != 2 {
			t.Errorf("Load was made to wait: %d of 2 tried", got)
		}
	})
}

func TestLostIsReconnectedByTheNextUse(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		u := s.one(schema.Server{})
		first, release := use(t, u)
		s.crash()
		release()
		if u.Conn() != nil {
			t.Error("a lost connection is still there")
		}
		second, release := use(t, u)
		release()
		if first == second || s.loads.Load() != 2 {
			t.Errorf("got %d loads", s.loads.Load())
		}
	})
}

func TestIdleIsUnloadedAndWakes(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		u := s.one(schema.Server{IdleTimeout: time.Minute})
		conn, release := use(t, u)
		time.Sleep(2 * time.Minute)
		wantState(t, u, Ready) // it is in use
		release()
		time.Sleep(30 * time.Second)
		_, release = use(t, u) // the time begins anew
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

func TestApplyKeepsWhatIsUnchanged(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		same, changed, gone := schema.Server{Name: "same"}, schema.Server{Name: "changed"}, schema.Server{Name: "gone"}
		s.Apply([]schema.Server{same, changed, gone})
		old := map[string]*Upstream{}
		conns := map[string]*transports.Conn{}
		for _, u := range s.All() {
			conn, release := use(t, u)
			release()
			old[u.Server.Name], conns[u.Server.Name] = u, conn
		}
		changed.Args = []string{"new"}
		s.Apply([]schema.Server{{Name: "off", Disabled: true}, changed, same})
		synctest.Wait()
		if s.Get("same") != old["same"] || conns["same"].Err() != nil {
			t.Error("the unchanged one did not survive")
		}
		if s.Get("changed") == old["changed"] || conns["changed"].Err() == nil {
			t.Error("the changed one survived")
		}
		if s.Get("gone") != nil || conns["gone"].Err() == nil || s.Get("off") != nil {
			t.Error("what is gone or switched off is there")
		}
		if _, _, err := old["gone"].Acquire(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("use of what is gone: got %v", err)
		}
		if all := s.All(); len(all) != 2 || all[0].Server.Name != "changed" {
			t.Errorf("order: got %v", all)
		}
	})
}

func TestApplyWhileLoading(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.load = func(context.Context, int32) error { time.Sleep(time.Second); return nil }
		u := s.one(lazyServer)
		failed := make(chan error, 1)
		go func() {
			_, _, err := u.Acquire(t.Context())
			failed <- err
		}()
		synctest.Wait()
		s.Apply(nil)
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestCloseEndsALoad(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.load = func(ctx context.Context, _ int32) error { <-ctx.Done(); return ctx.Err() }
		u := s.one(lazyServer)
		failed := make(chan error, 1)
		go func() {
			_, _, err := u.Acquire(t.Context())
			failed <- err
		}()
		synctest.Wait()
		wantState(t, u, Loading)
		s.Close()
		if err := <-failed; err == nil {
			t.Error("no error")
		}
		if _, _, err := u.Acquire(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: got %v", err)
		}
	})
}

func TestPanicInALoadIsAnError(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.load = func(context.Context, int32) error { panic("oh") }
		u := s.one(lazyServer)
		_, _, err := u.Acquire(t.Context())
		var failure *transports.Failure
		if !errors.As(err, &failure) || failure.Outcome != transports.NotSent {
			t.Errorf("got %v", err)
		}
	})
}

func TestWhatNeverStaysUpIsNotTriedForEver(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		u := s.one(schema.Server{})
		s.Set.opts.Load = func(ctx context.Context, u *Upstream) (*transports.Conn, error) {
			conn, err := s.connect(ctx, u)
			conn.Close()
			return conn, err
		}
		if _, _, err := u.Acquire(t.Context()); err == nil {
			t.Error("no error")
		}
		if got := s.loads.Load(); got > 3 {
			t.Errorf("one Acquire made %d loads", got)
		}
	})
}

// What a new config replaces while it starts is not waited for.
func TestApplyEndsALoad(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.load = func(ctx context.Context, _ int32) error { <-ctx.Done(); return ctx.Err() }
		u := s.one(lazyServer)
		failed := make(chan error, 1)
		go func() {
			_, _, err := u.Acquire(t.Context())
			failed <- err
		}()
		synctest.Wait()
		s.Apply(nil)
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestApplyAfterClose(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		u := s.one(lazyServer)
		_, release := use(t, u)
		release()
		s.Close()
		s.Apply(nil)
		s.Apply([]schema.Server{{Name: "late"}})
		if _, _, err := s.Get("late").Acquire(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// The watcher of a lost connection must not undo the start that came first.
func TestLostWhileLoadingAgain(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		u := s.one(schema.Server{})
		conn, release := use(t, u)
		release()
		s.load = func(context.Context, int32) error { time.Sleep(time.Second); return nil }
		conn.Close()
		go func() { _, _, _ = u.Acquire(t.Context()) }()
		time.Sleep(time.Millisecond)
		u.lost(conn)
		wantState(t, u, Loading)
		time.Sleep(2 * time.Second)
		wantState(t, u, Ready)
	})
}

// A panic of who is told of changes costs that he was told.
func TestPanicInChanged(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.opts.Logger = slog.New(slog.DiscardHandler)
		s.opts.Changed = func(*Upstream) { panic("oh") }
		u := s.one(schema.Server{IdleTimeout: time.Minute})
		_, release := use(t, u)
		release()
		time.Sleep(2 * time.Minute) // unloaded by a timer
		wantState(t, u, Idle)
		_, release = use(t, u)
		release()
		s.crash() // noticed by a watcher
		wantState(t, u, Lost)
	})
}

// Closing while callers come and upstreams start leaves nothing.
func TestCloseRacesAcquire(t *testing.T) {
	for range 50 {
		onStage(t, func(t *testing.T, s *stage) {
			s.load = func(context.Context, int32) error { time.Sleep(time.Microsecond); return nil }
			u := s.one(schema.Server{IdleTimeout: time.Microsecond})
			var all sync.WaitGroup
			for n := range 20 {
				all.Go(func() {
					time.Sleep(time.Duration(n) * 200 * time.Nanosecond)
					if _, release, err := u.Acquire(t.Context()); err == nil {
						release()
					} else if !errors.Is(err, ErrClosed) {
						t.Errorf("got %v", err)
					}
				})
			}
			all.Go(func() {
				time.Sleep(2 * time.Microsecond)
				s.Apply([]schema.Server{{Name: "two"}})
			})
			time.Sleep(3 * time.Microsecond)
			s.Close()
			all.Wait()
		})
	}
}

func TestEvictedErrorSaysWhatHappened(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.load = failing
		u := s.one(schema.Server{Description: "lazy", LoadBudget: 1})
		_, _, err := u.Acquire(t.Context())
		if want := "no such luck (failed to load after 1 attempts: one will no longer be offered)"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

// That we end is no failure of the server's.
func TestShutdownDoesNotCount(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.load = func(ctx context.Context, _ int32) error { <-ctx.Done(); return ctx.Err() }
		u := s.one(schema.Server{Description: "lazy", LoadBudget: 1})
		failed := make(chan error, 1)
		go func() {
			_, _, err := u.Acquire(t.Context())
			failed <- err
		}()
		synctest.Wait()
		s.Close()
		if err := <-failed; !errors.Is(err, ErrClosed) || u.Status().Failures != 0 {
			t.Errorf("got %v, %d failures", err, u.Status().Failures)
		}
	})
}

// Close returns when a load has, even one that does not heed its context, and
// what it brought is closed.
func TestCloseWaitsForALoad(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.load = func(context.Context, int32) error { time.Sleep(time.Minute); return nil }
		u := s.one(lazyServer)
		go func() { _, _, _ = u.Acquire(t.Context()) }()
		synctest.Wait()
		began := time.Now()
		s.Close()
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Close took %v, the load a minute", took)
		}
		if _, err := s.ends[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection is open: %v", err)
		}
	})
}
