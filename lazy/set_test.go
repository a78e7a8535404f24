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

func TestApplyKeepsWhatIsUnchanged(t *testing.T) {
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
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = func(context.Context, int32) error { time.Sleep(time.Second); return nil }
		u := s.one(lazyServer)
		failed := waitingUse(t, u)
		s.Apply(nil)
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
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

// What a new config replaces while it starts is not waited for.
func TestApplyEndsALoad(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = func(ctx context.Context, _ int32) error { <-ctx.Done(); return ctx.Err() }
		u := s.one(lazyServer)
		failed := waitingUse(t, u)
		s.Apply(nil)
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
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

// What a new config leaves out is closed when its last call has ended, and not before.
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
			t.Error("it is closed while a call is in flight")
		default:
		}
		last()
		<-conn.Done()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it was closed %v after the last call", waited)
		}
	})
}

// A set without a logger uses that of the program.
func TestSetWithoutALogger(t *testing.T) {
	s := NewSet(Options{})
	defer s.Close()
	if s.opts.Logger == nil {
		t.Error("Set.Get found nothing")
	}
}

// A panic of who is told of changes costs that he was told.
func TestPanicInChanged(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		var log strings.Builder
		s.Set = NewSet(Options{Load: s.connect, Changed: func(*Upstream) { panic("oh") }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
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

// Closing while callers come and upstreams start leaves nothing.
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

// Close returns when a load has, even one that does not heed its context, and
// what it brought is closed.
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
