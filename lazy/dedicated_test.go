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

// isolated returns a server with a maximum of two owners.
func isolated() schema.Server {
	return schema.Server{Name: "up", Isolation: schema.IsolateSession, MaxSessions: 2, IdleTimeout: time.Minute}
}

func TestOwnersShareNothing(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(isolated())
		ann := own(t, s, u, "ann")
		bob := own(t, s, u, "bob")
		if again := own(t, s, u, "ann"); again != ann || ann == bob || ann == u {
			t.Error("an owner has more than one upstream, or shares one")
		}
		if all := s.Everything(); len(all) != 3 || !slices.Contains(all, u) || !slices.Contains(all, ann) || !slices.Contains(all, bob) {
			t.Errorf("the set has %d upstreams, want the shared one and one for each owner", len(all))
		}
		a, releaseA := use(t, ann)
		b, releaseB := use(t, bob)
		if a == b {
			t.Error("two owners share a connection")
		}
		releaseA()
		if gone := s.RetireDedicated("ann"); len(gone) != 1 || gone[0] != ann {
			t.Errorf("RetireDedicated returned %v, want ann's upstream", gone)
		}
		synctest.Wait()
		if a.Err() == nil || b.Err() != nil {
			t.Errorf("ann's connection: %v, bob's: %v; want that only ann's has ended", a.Err(), b.Err())
		}
		if s.Has(ann) || !s.Has(bob) || !s.Has(u) {
			t.Error("the set has ann's upstream, or lacks another")
		}
		releaseB()
	})
}

// An owner beyond the maximum gets no upstream until another owner's is not connected.
func TestOwnersAreBounded(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(isolated())
		_, releaseA := use(t, own(t, s, u, "ann"))
		bob := own(t, s, u, "bob")
		_, releaseB := use(t, bob)
		if _, _, err := s.Dedicate(u, "cy", 0); !errors.Is(err, ErrTooMany) {
			t.Fatalf("with two connected: got %v, want %v", err, ErrTooMany)
		}
		releaseB()
		if _, _, err := s.Dedicate(u, "cy", 0); !errors.Is(err, ErrTooMany) {
			t.Fatalf("with one connected but unused: got %v, want %v", err, ErrTooMany)
		}
		time.Sleep(2 * time.Minute) // longer than the idle timeout
		cy, gone, err := s.Dedicate(u, "cy", 0)
		if err != nil || gone != bob {
			t.Fatalf("got %v, removed %v; want bob's removed", err, gone)
		}
		_, release := use(t, cy)
		release()
		if _, _, err := bob.Acquire(context.Background()); !errors.Is(err, ErrClosed) {
			t.Errorf("bob's upstream can still be used: %v", err)
		}
		releaseA()
	})
}

func TestNewEntryEndsUpstreamsOfOwners(t *testing.T) {
	onTestSet(t, func(t *testing.T, s *testSet) {
		u := s.one(isolated())
		ann := own(t, s, u, "ann")
		conn, release := use(t, ann)
		release()
		s.Apply([]schema.Server{u.Server})
		synctest.Wait()
		if conn.Err() != nil || own(t, s, u, "ann") != ann {
			t.Error("an unchanged entry ended the owner's connection")
		}
		changed := u.Server
		changed.Description = "another"
		s.Apply([]schema.Server{changed})
		synctest.Wait()
		if conn.Err() == nil || s.Has(ann) {
			t.Error("a changed entry left the owner's upstream")
		}
		if _, _, err := s.Dedicate(u, "ann", 0); !errors.Is(err, ErrClosed) {
			t.Errorf("Dedicate of a replaced upstream: got %v", err)
		}
	})
}

func own(t *testing.T, s *testSet, u *Upstream, owner string) *Upstream {
	t.Helper()
	own, gone, err := s.Dedicate(u, owner, 0)
	if err != nil || gone != nil {
		t.Fatalf("Dedicate: %v, removed %v", err, gone)
	}
	return own
}
