package lazy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

func TestApplyKeepsUnchangedEntries(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		same, changed, gone := schema.Server{Name: "same"}, schema.Server{Name: "changed"}, schema.Server{Name: "gone"}
		s.Apply([]schema.Server{same, changed, gone})
		old := map[string]*Upstream{}
		conns := map[string]*upstream.Conn{}
		for _, u := range s.All() {
			conn, release := use(t, u)
			release()
			old[u.Server.Name], conns[u.Server.Name] = u, conn
		}
		changed.Args = []string{"new"}
		s.Apply([]schema.Server{{Name: "off", Disabled: true}, changed, same})
		synctest.Wait()
		if s.Get("same") != old["same"] || conns["same"].Err() != nil {
			t.Error("an unchanged entry lost its upstream or its connection")
		}
		if s.Get("changed") == old["changed"] || conns["changed"].Err() == nil {
			t.Error("a changed entry kept its upstream or its connection")
		}
		if s.Get("gone") != nil || conns["gone"].Err() == nil || s.Get("off") != nil {
			t.Error("a removed or disabled server is still in the set")
		}
		if _, _, err := old["gone"].Acquire(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("Acquire of a removed upstream: got %v", err)
		}
		if all := s.All(); len(all) != 2 || all[0].Server.Name != "changed" {
			t.Errorf("order: got %v", all)
		}
	})
}

func TestCloseEndsALoad(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = func(ctx context.Context, _ int32) error { <-ctx.Done(); return ctx.Err() }
		u := s.one(lazyServer)
		failed := waitingUse(t, u)
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

// A new config without the server ends a load, whether or not that heeds its context.
func TestApplyEndsALoad(t *testing.T) {
	for name, load := range map[string]func(ctx context.Context, n int32) error{
		"heeds":   func(ctx context.Context, _ int32) error { <-ctx.Done(); return ctx.Err() },
		"ignores": func(context.Context, int32) error { time.Sleep(time.Second); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			onTestSet(t, func(t *testing.T, s *testSet) {
				s.load = load
				failed := waitingUse(t, s.one(lazyServer))
				s.Apply(nil)
				if err := <-failed; !errors.Is(err, ErrClosed) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestApplyAfterClose(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
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

// An upstream that a new config removes is closed when its last call has ended, not before.
func TestApplyWaitsForTheLastCall(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(lazyServer)
		conn, first := use(t, u)
		_, last := use(t, u)
		s.Apply(nil)
		began := time.Now()
		first()
		synctest.Wait()
		select {
		case <-conn.Done():
			t.Error("the connection was closed while a call was in flight")
		default:
		}
		last()
		<-conn.Done()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the connection was closed %v after the last call", waited)
		}
	})
}

// A set without a logger uses the default one.
func TestSetWithoutALogger(t *testing.T) {
	s := NewSet(SetOptions{})
	defer s.Close()
	if s.opts.Logger == nil {
		t.Error("the set has no logger")
	}
}

// A panic in SetOptions.Changed is logged, and the change of state takes effect.
func TestPanicInChanged(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		var log strings.Builder
		s.Set = NewSet(SetOptions{Load: s.connect, Changed: func(*Upstream) { panic("oh") }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		defer func() {
			s.Close()
			if !strings.Contains(log.String(), "panic=oh") {
				t.Errorf("the log has %q", &log)
			}
		}()
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

// A set that is closed while callers come and upstreams start leaves no goroutine.
func TestCloseRacesAcquire(t *testing.T) {
	for range 50 {
		onTestSet(t, func(t *testing.T, s *testSet) {
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

// Close waits for a load that ignores its context, and closes the connection that it returns.
func TestCloseWaitsForALoad(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
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
