package lazy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

func TestLoadAfterTwoFailures(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
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
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = failing
		u := s.one(lazyServer)
		var err error
		for range 3 {
			// An attempt counts once, however many callers share it.
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() { _, _, _ = u.Acquire(t.Context()) })
			}
			_, _, err = u.Acquire(t.Context())
			all.Wait()
		}
		var evicted *EvictedError
		if !errors.As(err, &evicted) || evicted.Attempts != 3 || evicted.Upstream != "one" || s.loads.Load() != 3 {
			t.Errorf("the last attempt: got %v after %d loads", err, s.loads.Load())
		}
		wantState(t, u, Evicted)
		evicted = nil
		if _, _, err := u.Load(t.Context()); !errors.As(err, &evicted) || evicted.Err != nil {
			t.Errorf("after eviction: got %v", err)
		}
		s.Apply([]schema.Server{u.Server})
		wantState(t, s.Get("one"), Idle)
	})
}

func TestReadmissionHasABudget(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = failing
		u := s.one(lazyServer)
		for range 3 {
			_, _, _ = u.Load(t.Context())
		}
		u.Readmit()
		wantState(t, u, Idle)
		_, _, _ = u.Load(t.Context())
		time.Sleep(readmitPause - 1)
		u.Readmit()
		wantState(t, u, Evicted)
		time.Sleep(time.Nanosecond)
		u.Readmit()
		wantState(t, u, Idle)
	})
}

func TestFailuresThatNeverEvict(t *testing.T) {
	login := &transports.Failure{Code: transports.CodeAuthRequired, Cause: errors.New("401")}
	for name, server := range map[string]schema.Server{
		"login":         lazyServer,
		"no budget":     {Description: "lazy", LoadBudget: 0},
		"an eager one":  {LoadBudget: 3},
		"an eager load": {Description: "eager all the same", Load: schema.LoadEager, LoadBudget: 3},
	} {
		t.Run(name, func(t *testing.T) {
			onTestSet(t, func(t *testing.T, s *testSet) {
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

// A server that cannot be started because we lack resources is never evicted: it is tried again
// after every pause.
func TestLackOfResourcesNeverEvicts(t *testing.T) {
	lack := &transports.Failure{Upstream: "one", Code: transports.CodeNoResources, Outcome: transports.NotSent, Cause: errors.New("too many open files"), Hint: "raise the limit"}
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = func(ctx context.Context, n int32) error {
			if n <= 10 {
				return lack
			}
			return nil
		}
		u := s.one(lazyServer)
		began := time.Now()
		for s.loads.Load() < 10 {
			_, _, err := u.Acquire(t.Context())
			var failure *transports.Failure
			if !errors.As(err, &failure) || !errors.Is(err, lack.Cause) || failure.Outcome != transports.NotSent || failure.Advice() != lack.Hint {
				t.Fatalf("got %v", err)
			}
			wantState(t, u, Lost)
			time.Sleep(failure.RetryAfter)
		}
		if took := time.Since(began); took < time.Minute {
			t.Errorf("10 attempts within %v", took)
		}
		if got := u.Status().Failures; got != 0 {
			t.Errorf("%d failures were counted", got)
		}
		time.Sleep(longPause * 2)
		_, release := use(t, u)
		release()

		// After a success the first pause is short again.
		s.crashAfter(t, u, soon)
		s.load = func(context.Context, int32) error { return lack }
		_, _, _ = u.Acquire(t.Context())
		if left := time.Until(u.retry.due); left > firstPause*6/5 {
			t.Errorf("a pause of %v", left)
		}
	})
}

// The error during a pause counts failures in a row of any kind. Status counts all failed
// loads since the upstream was added.
func TestFailuresOfAllKindsAreCounted(t *testing.T) {
	lack := &transports.Failure{Upstream: "one", Code: transports.CodeNoResources, Cause: errors.New("too many open files")}
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(schema.Server{})
		for n, fails := range []error{lack, lack, errors.New("no such luck")} {
			s.load = func(context.Context, int32) error { return fails }
			_, _, _ = u.Load(t.Context())
			want := fmt.Sprintf("it failed %d times in a row; the next attempt is due in 1.3s: ", n+1)
			if n == 0 {
				want = "it failed; the next attempt is due in 1.3s: "
			}
			if err := u.backingOffLocked(1250 * time.Millisecond); !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q in it", err, want)
			}
		}
		s.load = nil
		_, release, err := u.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release()
		if got := u.Status(); got.Failed != 3 || got.Failures != 0 {
			t.Errorf("%d loads failed in total, %d in a row, want 3 and 0", got.Failed, got.Failures)
		}
	})
}

// A lack of resources does not use up the budget of the server's own failures.
func TestBudgetAfterLackOfResources(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = func(ctx context.Context, n int32) error {
			if n%2 == 1 {
				return &transports.Failure{Code: transports.CodeNoResources, Cause: errors.New("too many open files")}
			}
			return failing(ctx, n)
		}
		u := s.one(lazyServer)
		for n := 1; n <= 6; n++ {
			if got := u.Status().State; got == Evicted {
				t.Fatalf("evicted after %d loads", n-1)
			}
			_, _, _ = u.Load(t.Context())
		}
		wantState(t, u, Evicted)
	})
}

func TestOnceReadyIsNeverEvicted(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
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

func TestEvictedErrorSaysWhatHappened(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = failing
		u := s.one(schema.Server{Description: "lazy", LoadBudget: 1})
		_, _, err := u.Acquire(t.Context())
		if want := "no such luck (failed to load after 1 attempts: one will no longer be offered)"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

// A load that our shutdown interrupts does not count as a failure.
func TestShutdownDoesNotCount(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		s.load = func(ctx context.Context, _ int32) error { <-ctx.Done(); return ctx.Err() }
		u := s.one(schema.Server{Description: "lazy", LoadBudget: 1})
		failed := waitingUse(t, u)
		s.Close()
		if err := <-failed; !errors.Is(err, ErrClosed) || u.Status().Failures != 0 {
			t.Errorf("got %v, %d failures", err, u.Status().Failures)
		}
	})
}

// A caller that shared the load that used up the budget, or came just before it failed, does
// not start another.
func TestBudgetIsNotOverrun(t *testing.T) {
	for range 300 {
		s := &testSet{load: failing}
		s.Set = NewSet(SetOptions{Load: s.connect, Changed: func(*Upstream) {}})
		u := s.one(schema.Server{Description: "lazy", LoadBudget: 1})
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				if _, _, err := u.Acquire(t.Context()); err == nil {
					t.Error("a failing load was no error")
				}
			})
		}
		all.Wait()
		wantState(t, u, Evicted)
		s.Close()
		if got := s.loads.Load(); got != 1 {
			t.Fatalf("got %d loads, want 1", got)
		}
	}
}
