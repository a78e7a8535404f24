package lazy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

func TestBackoffGrowsWithJitter(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = failing
		u := s.one(schema.Server{})
		for pause := firstPause; pause < 2*longPause; pause *= 2 {
			began, before := time.Now(), s.loads.Load()
			_, _, err := u.Acquire(t.Context())
			if s.loads.Load() != before+1 {
				t.Fatalf("no attempt when it was due: %v", err)
			}
			for s.loads.Load() == before+1 {
				_, _, err = u.Acquire(t.Context())
				var failure *transports.Failure
				if s.loads.Load() == before+1 && (!errors.As(err, &failure) || failure.Code != transports.CodeBackingOff) {
					t.Fatalf("during the pause: got %v", err)
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
			t.Errorf("two calls of Load made %d attempts", got)
		}
	})
}

func TestLostIsReconnectedByTheNextUse(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(schema.Server{})
		first, release := use(t, u)
		s.crash()
		release()
		if u.Conn() != nil {
			t.Error("Conn returns a lost connection")
		}
		second, release := use(t, u)
		release()
		if first == second || s.loads.Load() != 2 {
			t.Errorf("got %d loads", s.loads.Load())
		}
	})
}

func TestAcquireGivesUpOnLostConnections(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(schema.Server{})
		s.Set.opts.Load = func(ctx context.Context, u *Upstream) (*upstream.Conn, error) {
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

// The watcher of a lost connection must not undo a start that began before it ran.
func TestLostWhileLoadingAgain(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
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

// backingOff reports whether the upstream is in a pause. If the pause is too long to be waited
// out, it also checks the error of Acquire.
func backingOff(t *testing.T, u *Upstream) bool {
	t.Helper()
	u.mu.Lock()
	left := time.Until(u.retry.due)
	u.mu.Unlock()
	if left > 0 && left <= shortPause {
		return true
	}
	_, release, err := u.Acquire(t.Context())
	if err == nil {
		release()
		return false
	}
	if failure, ok := errors.AsType[*transports.Failure](err); !ok || failure.Code != transports.CodeBackingOff || failure.Outcome != transports.NotSent || failure.RetryAfter <= shortPause {
		t.Fatalf("got %v, want a failure with CodeBackingOff", err)
	}
	for _, part := range []string{"in a row", "the next attempt is due in ", "the stream ended"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in %q", part, err)
		}
	}
	return true
}

// crashAfter starts the upstream, also during a pause, and ends the connection after it has
// lasted for the time lived.
func (s *testSet) crashAfter(t *testing.T, u *Upstream, lived time.Duration) {
	t.Helper()
	_, release, err := u.Load(t.Context())
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	time.Sleep(lived)
	s.crash()
	release()
	wantState(t, u, Lost)
}

// A server that crashes in every call is restarted at once after the first crash, then after
// growing pauses: at most 12 times in a minute, however often it is called.
func TestCrashLoopIsPaused(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(schema.Server{})
		began := time.Now()
		var starts []time.Duration
		for time.Since(began) < 5*time.Minute {
			if backingOff(t, u) {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			starts = append(starts, time.Since(began))
			s.crash()
		}
		inFirstMinute := 0
		for n, at := range starts {
			if at < time.Minute {
				inFirstMinute++
			}
			if n < 2 {
				continue
			}
			pause := min(firstPause<<(n-2), longPause)
			if waited := at - starts[n-1]; waited < pause*4/5 || waited > pause*6/5+10*time.Millisecond {
				t.Errorf("start %d came after %v, want %v, a fifth more or less", n, waited, pause)
			}
		}
		if starts[1] != 0 || inFirstMinute > 12 || len(starts) < 12 {
			t.Errorf("starts: got %v, want the second at once and 12 in the first minute at most", starts)
		}
		if got := int(s.loads.Load()); got != len(starts) {
			t.Errorf("got %d loads for %d connections", got, len(starts))
		}
	})
}

// shortlyPaused returns an upstream in a pause of firstPause.
func (s *testSet) shortlyPaused(t *testing.T) *Upstream {
	t.Helper()
	u := s.one(schema.Server{})
	s.crashAfter(t, u, 0)
	s.crashAfter(t, u, 0)
	if left := time.Until(u.retry.due); left < firstPause*4/5 || left > firstPause*6/5 {
		t.Fatalf("the pause is %v", left)
	}
	return u
}

func TestShortPauseIsWaitedOut(t *testing.T) {
	for name, fail := range map[string]error{"good": nil, "failing": errors.New("no such luck")} {
		t.Run(name, func(t *testing.T) {
			onTestSet(t, func(t *testing.T, s *testSet) {
				u := s.shortlyPaused(t)
				due, before := u.retry.due, s.loads.Load()
				s.load = func(context.Context, int32) error { return fail }
				var callers sync.WaitGroup
				for range 20 {
					callers.Go(func() {
						_, release, err := u.Acquire(t.Context())
						if err == nil {
							release()
						}
						if !errors.Is(err, fail) {
							t.Errorf("got %v, want %v", err, fail)
						}
					})
				}
				synctest.Wait()
				if got := s.loads.Load(); got != before {
					t.Errorf("%d loads within the pause", got-before)
				}
				callers.Wait()
				if late := time.Since(due); late != 0 {
					t.Errorf("Acquire returned %v after the end of the pause", late)
				}
				if got := s.loads.Load() - before; got != 1 {
					t.Errorf("20 callers led to %d loads", got)
				}
			})
		})
	}
}

func TestWaitForAPauseEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(t *testing.T, s *testSet, u *Upstream, cancel func())
		want error
	}{
		"with the caller":             {func(_ *testing.T, _ *testSet, _ *Upstream, cancel func()) { cancel() }, context.Canceled},
		"with the set":                {func(_ *testing.T, s *testSet, _ *Upstream, _ func()) { s.Close() }, ErrClosed},
		"with the context of the set": {func(_ *testing.T, s *testSet, _ *Upstream, _ func()) { s.cancel() }, ErrClosed},
		"with the entry":              {func(_ *testing.T, s *testSet, _ *Upstream, _ func()) { s.Apply(nil) }, ErrClosed},
		"with a new config": {func(_ *testing.T, s *testSet, u *Upstream, _ func()) {
			s.Apply([]schema.Server{u.Server})
		}, nil},
		"by Load": {func(t *testing.T, _ *testSet, u *Upstream, _ func()) {
			_, release, err := u.Load(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			release()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			onTestSet(t, func(t *testing.T, s *testSet) {
				u := s.shortlyPaused(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began := time.Now()
				ended := make(chan error)
				go func() {
					_, release, err := u.Acquire(ctx)
					if err == nil {
						release()
					}
					ended <- err
				}()
				synctest.Wait()
				test.end(t, s, u, cancel)
				if err := <-ended; !errors.Is(err, test.want) || time.Since(began) != 0 {
					t.Errorf("got %v after %v, want %v at once", err, time.Since(began), test.want)
				}
			})
		})
	}
}

func TestLoadIgnoresPauses(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(schema.Server{})
		for range 5 {
			s.crashAfter(t, u, 0)
		}
		if !backingOff(t, u) {
			t.Error("no pause after five crashes")
		}
		if _, release, err := u.Load(t.Context()); err != nil {
			t.Errorf("Load: %v", err)
		} else {
			release()
		}
		if backingOff(t, u) {
			t.Error("Acquire is refused after Load has succeeded")
		}
	})
}

func TestCrashOfOldConnectionHasNoPause(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(schema.Server{})
		for range 5 {
			s.crashAfter(t, u, soon)
			if backingOff(t, u) {
				t.Fatal("a connection that lasted for a minute led to a pause")
			}
			s.crashAfter(t, u, 0) // the second in a row, but the first one soon after its start
		}
		s.crashAfter(t, u, soon-time.Second)
		if !backingOff(t, u) {
			t.Error("no pause after two crashes soon after a start")
		}
		s.crashAfter(t, u, soon)
		s.crashAfter(t, u, 0)
		s.crashAfter(t, u, 0)
		waits(t, u, firstPause)
	})
}

// waits fails the test unless the upstream backs off for about pause.
func waits(t *testing.T, u *Upstream, pause time.Duration) {
	t.Helper()
	began := time.Now()
	for backingOff(t, u) {
		time.Sleep(10 * time.Millisecond)
	}
	if waited := time.Since(began); waited < pause*4/5 || waited > pause*6/5+10*time.Millisecond {
		t.Errorf("waited %v, want %v, a fifth more or less", waited, pause)
	}
}

// A load that fails after crashes makes the pause longer. A successful load does not, and
// neither do loads that failed before the last success.
func TestFailuresAndLossesShareThePause(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(schema.Server{})
		fail := func() {
			t.Helper()
			s.load = failing
			if _, _, err := u.Load(t.Context()); err == nil {
				t.Fatal("a failing load was no error")
			}
			s.load = nil
		}
		fail()
		fail()
		s.crashAfter(t, u, 0)
		waits(t, u, 0)
		s.crashAfter(t, u, 0)
		waits(t, u, firstPause)
		s.crashAfter(t, u, 0)
		waits(t, u, 2*firstPause)
		s.crashAfter(t, u, 0)
		fail()
		time.Sleep(longPause) // its pause
		s.crashAfter(t, u, 0)
		waits(t, u, 8*firstPause)
		s.crashAfter(t, u, soon)
		fail()
		if wait := time.Until(u.retry.due); wait > firstPause*6/5 {
			t.Errorf("the first failure after a connection that lasted led to a pause of %v", wait)
		}
	})
}

// A caller whose call failed with the connection may call Acquire before the watcher has run.
// The crash counts nevertheless.
func TestCrashIsKnownToTheNextUse(t *testing.T) {
	for range 50 {
		onTestSet(t, func(t *testing.T, s *testSet) {
			u := s.one(schema.Server{})
			s.crashAfter(t, u, 0)
			conn, release := use(t, u)
			end := s.ends[len(s.ends)-1]
			go func() { _, _ = io.Copy(io.Discard, end) }()
			again := make(chan error, 1)
			conn.Start(&upstream.Call{Method: "tools/call", Done: func(json.RawMessage, error) {
				go func() {
					_, release, err := u.Acquire(t.Context())
					if err == nil {
						release()
					}
					again <- err
				}()
			}})
			crashed := time.Now()
			end.Close()
			if err := <-again; err != nil || time.Since(crashed) < firstPause*4/5 {
				t.Fatalf("Acquire returned %v after %v, want no error, after the pause", err, time.Since(crashed))
			}
			release()
		})
	}
}

// A connection that was closed by us, such as by the idle timer, does not count as a crash.
func TestUnloadsAreNotCrashes(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(schema.Server{IdleTimeout: time.Second})
		for range 5 {
			_, release := use(t, u)
			release()
			time.Sleep(2 * time.Second)
			wantState(t, u, Idle)
		}
		s.crashAfter(t, u, 0)
		if backingOff(t, u) {
			t.Error("unloads counted as crashes")
		}
		_, release := use(t, u)
		time.Sleep(soon)
		release()
		time.Sleep(2 * time.Second)
		wantState(t, u, Idle)
		s.crashAfter(t, u, 0)
		if backingOff(t, u) {
			t.Error("a crash before a connection that lasted was counted")
		}
		s.crashAfter(t, u, 0)
		s.Apply([]schema.Server{u.Server})
		if backingOff(t, u) {
			t.Error("a new config did not end the pause")
		}
	})
}

// StartRetrying tries again after every pause, until a start succeeds.
func TestStartRetryingTriesUntilSuccess(t *testing.T) {
	for name, fail := range map[string]error{
		"failures that count": errors.New("no such luck"),
		"a login":             &transports.Failure{Code: transports.CodeAuthRequired, Cause: errors.New("401")},
	} {
		t.Run(name, func(t *testing.T) {
			onTestSet(t, func(t *testing.T, s *testSet) {
				s.load = func(_ context.Context, n int32) error {
					if n <= 4 {
						return fail
					}
					return nil
				}
				u := s.one(schema.Server{})
				began, failed := time.Now(), 0
				u.StartRetrying(t.Context(), func(err error) bool {
					if !errors.Is(err, fail) {
						t.Errorf("attempt %d: got %v", failed, err)
					}
					failed++
					return true
				})
				wantState(t, u, Ready)
				pauses := 15 * firstPause // 1 + 2 + 4 + 8
				if took := time.Since(began); failed != 4 || took < pauses*4/5 || took > pauses*6/5 {
					t.Errorf("%d attempts failed in %v, want 4 in %v, a fifth more or less", failed, took, pauses)
				}
			})
		})
	}
}

func TestStartRetryingEndsInAPause(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = failing
		u := s.one(schema.Server{})
		began, ended := time.Now(), make(chan struct{})
		go func() {
			defer close(ended)
			u.StartRetrying(t.Context(), func(error) bool { return true })
		}()
		synctest.Wait()
		s.Apply(nil)
		<-ended
		if took := time.Since(began); took != 0 {
			t.Errorf("StartRetrying returned %v after the entry was removed", took)
		}
	})
}

func TestStartRetryingEnds(t *testing.T) {
	for name, test := range map[string]struct {
		loads int32
		end   func(s *testSet, cancel func())
		retry bool
	}{
		"by its caller":   {1, func(*testSet, func()) {}, false},
		"with its ctx":    {2, func(_ *testSet, cancel func()) { cancel() }, true},
		"with the entry":  {2, func(s *testSet, _ func()) { s.Apply(nil) }, true},
		"with the budget": {2, func(*testSet, func()) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			onTestSet(t, func(t *testing.T, s *testSet) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s.load = func(ctx context.Context, n int32) error {
					if n == 2 {
						test.end(s, cancel)
					}
					return failing(ctx, n)
				}
				server := schema.Server{}
				if name == "with the budget" {
					server = schema.Server{Description: "lazy", LoadBudget: 2}
				}
				s.one(server).StartRetrying(ctx, func(error) bool { return test.retry })
				if got := s.loads.Load(); got != test.loads {
					t.Errorf("got %d loads, want %d", got, test.loads)
				}
			})
		})
	}
}
