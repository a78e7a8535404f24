package lazy

import (
	"context"
	"errors"
	"testing"
	"time"

	"dynmcp/schema"
	"dynmcp/transports"
)

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
