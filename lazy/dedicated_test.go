package lazy

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/schema"
)

// isolated is a server of which two owners may have one each.
func isolated() schema.Server {
	return schema.Server{Name: "up", Isolation: schema.IsolateSession, MaxSessions: 2, IdleTimeout: time.Minute}
}

func TestOwnersShareNothing(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(isolated())
		ann := own(t, s, u, "ann")
		bob := own(t, s, u, "bob")
		if again := own(t, s, u, "ann"); again != ann || ann == bob || ann == u {
			t.Error("an owner has not what is his own")
		}
		if all := s.Everything(); len(all) != 3 || !slices.Contains(all, u) || !slices.Contains(all, ann) || !slices.Contains(all, bob) {
			t.Errorf("everything is %d upstreams, want that of nobody and of each owner", len(all))
		}
		a, releaseA := use(t, ann)
		b, releaseB := use(t, bob)
		if a == b {
			t.Error("two owners have one connection")
		}
		releaseA()
		if gone := s.RetireDedicated("ann"); len(gone) != 1 || gone[0] != ann {
			t.Errorf("ann had %v", gone)
		}
		synctest.Wait()
		if a.Err() == nil || b.Err() != nil {
			t.Errorf("ann's connection: %v, bob's: %v; want only hers to have ended", a.Err(), b.Err())
		}
		if s.Has(ann) || !s.Has(bob) || !s.Has(u) {
			t.Error("the set has others than it should")
		}
		releaseB()
	})
}

// As many as may have one: who comes then gets none, until another's is not connected.
func TestOwnersAreBounded(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(isolated())
		_, releaseA := use(t, own(t, s, u, "ann"))
		bob := own(t, s, u, "bob")
		_, releaseB := use(t, bob)
		if _, _, err := s.Dedicate(u, "cy", 0); !errors.Is(err, ErrTooMany) {
			t.Fatalf("got %v, want that there are too many", err)
		}
		releaseB()
		if _, _, err := s.Dedicate(u, "cy", 0); !errors.Is(err, ErrTooMany) {
			t.Fatalf("got %v, want that bob's is his while it is connected", err)
		}
		time.Sleep(2 * time.Minute) // bob's is idle for longer than it may
		cy, gone, err := s.Dedicate(u, "cy", 0)
		if err != nil || gone != bob {
			t.Fatalf("got %v in the place of %v, want bob's", err, gone)
		}
		_, release := use(t, cy)
		release()
		if _, _, err := bob.Acquire(context.Background()); !errors.Is(err, ErrClosed) {
			t.Errorf("bob's can be used still: %v", err)
		}
		releaseA()
	})
}

func TestNewEntryEndsWhatOwnersHave(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(isolated())
		ann := own(t, s, u, "ann")
		conn, release := use(t, ann)
		release()
		s.Apply([]schema.Server{u.Server})
		synctest.Wait()
		if conn.Err() != nil || own(t, s, u, "ann") != ann {
			t.Error("the same entry has ended it")
		}
		changed := u.Server
		changed.Description = "another"
		s.Apply([]schema.Server{changed})
		synctest.Wait()
		if conn.Err() == nil || s.Has(ann) {
			t.Error("it is there still")
		}
		if _, _, err := s.Dedicate(u, "ann", 0); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v from what was replaced", err)
		}
	})
}

func own(t *testing.T, s *testSet, u *Upstream, owner string) *Upstream {
	t.Helper()
	own, gone, err := s.Dedicate(u, owner, 0)
	if err != nil || gone != nil {
		t.Fatalf("own: %v, in the place of %v", err, gone)
	}
	return own
}
