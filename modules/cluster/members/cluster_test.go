package members

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
)

// bubbleClock is the clock of synctest; CLOCK_BOOTTIME is not in the bubble.
func bubbleClock() time.Duration { return time.Duration(time.Now().UnixNano()) }

// wrapped is a connection to a store whose buckets are wrapped.
type wrapped struct {
	*memkv.Connection
	wrap func(records.Bucket) records.Bucket
}

func (s wrapped) Bucket(ctx context.Context, name string) (records.Bucket, error) {
	b, err := s.Connection.Bucket(ctx, name)
	return s.wrap(b), err
}

// join returns a replica that the end of the test closes.
func join(t *testing.T, store records.Store, name string, change ...func(*ReplicaOptions)) *Replica {
	t.Helper()
	o := ReplicaOptions{Store: store, Name: name, Address: name + ":1", Version: "1", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), clock: bubbleClock}
	for _, c := range change {
		c(&o)
	}
	r, err := Join(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// failover is the longest time until another replica can take the leases of one that died.
const failover = TTL + 2*HeartbeatInterval

// tooLong is the timeout of a Take that must succeed.
const tooLong = 5 * time.Minute

func take(t *testing.T, r *Replica, name string) *Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tooLong)
	defer cancel()
	l, err := r.Take(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestALeaseIsSharedInAReplicaAndHeldAgainstOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		a, b := join(t, m.Connect(), "a"), join(t, m.Connect(), "b")
		first, second := take(t, a, "git"), take(t, a, "git")
		if m, held := a.Where("git"); m.ID != a.ID() || !held {
			t.Errorf("the holder itself finds it at %q, held: %t", m.Name, held)
		}
		if first.Revision() != second.Revision() || first.Revision() == 0 {
			t.Errorf("revisions %d and %d", first.Revision(), second.Revision())
		}
		synctest.Wait()
		_, err := b.Take(t.Context(), "git")
		if held, ok := errors.AsType[*HeldError](err); !ok || held.Member.ID != a.ID() {
			t.Errorf("got %v, want that a holds it", err)
		}
		if m, held := b.Where("git"); !held || m.Name != "a" {
			t.Errorf("where: %q, %t", m.Name, held)
		}
		if all := b.State().Leases; len(all) != 1 || all[0].Name != "git" || all[0].Owner != a.ID() || all[0].Revision != first.Revision() {
			t.Errorf("leases: %+v", all)
		}
		first.Release()
		first.Release() // does not release the second
		synctest.Wait()
		if _, err := b.Take(t.Context(), "git"); err == nil {
			t.Error("taken while a still uses it")
		}
		second.Release()
		synctest.Wait()
		l := take(t, b, "git")
		if l.Revision() <= first.Revision() {
			t.Errorf("revision %d after %d", l.Revision(), first.Revision())
		}
		l.Release()
	})
}

func TestLeasesOfAReplicaThatWasKilledAreTakenWithinTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		a, b, c := join(t, m.Connect(), "a"), join(t, m.Connect(), "b"), join(t, m.Connect(), "c")
		take(t, a, "git")
		time.Sleep(10 * HeartbeatInterval)
		leaving := b.Leaving(a.ID())
		a.stop() // as if it were killed
		killed := time.Now()
		time.Sleep(suspectAfter + HeartbeatInterval) // it is silent: they wait
		got := make(chan *Lease, 2)
		for _, r := range []*Replica{b, c} {
			go func() {
				if l, err := r.Take(t.Context(), "git"); err == nil {
					got <- l
				} else if _, held := errors.AsType[*HeldError](err); !held {
					t.Error(err)
					got <- nil
				} else {
					got <- nil
				}
			}()
		}
		one, two := <-got, <-got
		if took := time.Since(killed); took > failover {
			t.Errorf("taken after %v", took)
		}
		if (one == nil) == (two == nil) {
			t.Errorf("one of them must have it: %v, %v", one, two)
		}
		if !isClosed(leaving) {
			t.Error("Leaving is not closed for the dead replica")
		}
		if _, ok := b.Member(a.ID()); ok {
			t.Error("the dead replica is still a member")
		}
		time.Sleep(addressTTL + time.Minute)
		if _, ok := b.Address(a.ID()); ok {
			t.Error("the address of the dead replica is kept")
		}
	})
}

func TestLeavingInOrderCostsNobodyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		a, b := join(t, m.Connect(), "a"), join(t, m.Connect(), "b")
		l := take(t, a, "git")
		synctest.Wait()
		leaving := b.Leaving(a.ID())
		drained := make(chan error, 1)
		go func() { drained <- a.Drain(t.Context()) }()
		<-leaving
		if m, held := b.Where("git"); held || m.ID != b.ID() {
			t.Errorf("where: %q, %t", m.Name, held)
		}
		if !isClosed(a.Leaving(a.ID())) {
			t.Error("Leaving is not closed for the replica itself")
		}
		if _, err := a.Take(t.Context(), "other"); !errors.Is(err, ErrDraining) {
			t.Errorf("got %v", err)
		}
		taken := make(chan error, 1)
		go func() { _, err := b.Take(t.Context(), "git"); taken <- err }()
		synctest.Wait()
		select {
		case err := <-taken:
			t.Errorf("taken from a replica that still holds it: %v", err)
		case err := <-drained:
			t.Errorf("drained while it is held: %v", err)
		default:
		}
		before := time.Now()
		l.Release()
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if err := <-taken; err != nil {
			t.Error(err)
		}
		a.Close()
		if took := time.Since(before); took > HeartbeatInterval {
			t.Errorf("it took %v", took)
		}
		synctest.Wait()
		if len(b.Members()) != 1 {
			t.Errorf("members: %+v", b.Members())
		}
		if _, ok := b.Address(a.ID()); ok {
			t.Error("the address of a replica that has left is kept")
		}
		if _, err := a.Take(t.Context(), "git"); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestCloseWaitsForWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		a, b := join(t, m.Connect(), "a"), join(t, m.Connect(), "b")
		l := take(t, a, "git")
		closed := make(chan struct{})
		go func() { a.Close(); close(closed) }()
		<-l.Lost()
		synctest.Wait()
		if isClosed(closed) || len(b.Members()) != 2 {
			t.Error("it has left before its lease was released")
		}
		l.Release()
		<-closed
		synctest.Wait()
		take(t, b, "git").Release()
	})
}

func TestAReplicaCutOffFromTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		conn := m.Connect()
		var until atomic.Pointer[time.Time]
		a := join(t, conn, "a", func(o *ReplicaOptions) { o.Extend = func(t time.Time) { until.Store(&t) } })
		b := join(t, m.Connect(), "b")
		old := take(t, a, "git")
		time.Sleep(5 * HeartbeatInterval)
		conn.Cut()
		<-old.Lost()
		deadline := *until.Load()
		if time.Now().After(deadline) {
			t.Errorf("lost %v after the deadline of its guards", time.Since(deadline))
		}
		if a.Valid() || !a.Degraded() || b.Degraded() {
			t.Errorf("valid %t, degraded %t, the other %t", a.Valid(), a.Degraded(), b.Degraded())
		}
		if _, err := a.Take(t.Context(), "other"); !errors.Is(err, records.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		l := take(t, b, "git") // waits until a is declared dead
		if address, ok := b.Address(a.ID()); !ok || address != "a:1" {
			t.Errorf("its address is lost: %q, %t", address, ok)
		}
		if ran := time.Since(deadline); ran < TTL-Validity-HeartbeatInterval/2 {
			t.Errorf("taken %v after the deadline of its guards", ran)
		}
		conn.Heal()
		time.Sleep(time.Minute)
		if a.Valid() || time.Now().Before(deadline) {
			t.Error("it is back before its lost lease was released")
		}
		old.Release()
		time.Sleep(2 * HeartbeatInterval)
		if !a.Valid() || a.Degraded() || len(b.Members()) != 2 {
			t.Errorf("valid %t, degraded %t, members %+v", a.Valid(), a.Degraded(), b.Members())
		}
		if m, _ := b.Member(a.ID()); m.Epoch < 2 {
			t.Errorf("it came back in epoch %d", m.Epoch)
		}
		l.Release()
		synctest.Wait()
		take(t, a, "git").Release()
	})
}

func TestNamesAreAnyBytes(t *testing.T) {
	names := []string{"", "git", "Git", "a.b", "a/b", "a=b", "a=3Db", "=s", "\x00\xff", "日本", strings.Repeat("x", 5000), strings.Repeat("x", 5001), "https://id.example/ü|17\n"}
	seen := map[string]string{}
	for _, name := range names {
		key := leaseKey(name)
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q are the same", name, other)
		}
		seen[key] = name
		if err := records.Check(key, nil); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestRendezvousIsBalancedAndMovesLittle(t *testing.T) {
	var members []Member
	for i := range 10 {
		members = append(members, Member{ID: fmt.Sprint("id", i), Name: fmt.Sprint("replica-", i)})
	}
	const names = 10_000
	count := map[string]int{}
	for i := range names {
		name := fmt.Sprint("server-", i)
		m, ok := Rendezvous(name, members)
		if !ok {
			t.Fatal("no member was chosen")
		}
		count[m.ID]++
		if without, _ := Rendezvous(name, members[:9]); m.ID != "id9" && without.ID != m.ID {
			t.Fatalf("%s moved from %s to %s without need", name, m.ID, without.ID)
		}
	}
	for id, n := range count {
		if n < names/10*8/10 || n > names/10*12/10 {
			t.Errorf("%s has %d of %d", id, n, names)
		}
	}
	for i := range members {
		members[i].Name = "same"
	}
	count = map[string]int{}
	for i := range names {
		m, _ := Rendezvous(fmt.Sprint("server-", i), members)
		count[m.ID]++
	}
	for id, n := range count {
		if n < names/10*8/10 || n > names/10*12/10 {
			t.Errorf("of members with one name %s has %d of %d", id, n, names)
		}
	}
	if _, ok := Rendezvous("x", nil); ok {
		t.Error("a member was chosen from none")
	}
}

func TestReadWithoutBeingAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		a := join(t, m.Connect(), "a", func(o *ReplicaOptions) { o.Load = func() Load { return Load{Sessions: 3} } })
		l := take(t, a, "git")
		defer l.Release()
		state, err := Read(t.Context(), m.Connect())
		members, leases := state.Members, state.Leases
		if err != nil || len(members) != 1 || members[0].ID != a.ID() || members[0].Load.Sessions != 3 || members[0].Since.IsZero() || len(leases) != 1 || leases[0].Name != "git" {
			t.Errorf("got %+v, %+v, %v", members, leases, err)
		}
		cut := m.Connect()
		cut.Cut()
		if _, err := Read(t.Context(), cut); !errors.Is(err, records.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}

func TestJoinGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := memkv.New().Connect()
		if _, err := conn.Bucket(t.Context(), Bucket); err != nil {
			t.Fatal(err)
		}
		conn.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := Join(ctx, ReplicaOptions{Store: conn, clock: bubbleClock}); !errors.Is(err, records.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}

// An answer of the store from before the lease does not prove that its owner is gone.
func TestAnOwnerIsGoneWhenItsEpochIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		r := join(t, m.Connect(), "a")
		bucket, err := m.Connect().Bucket(t.Context(), Bucket)
		if err != nil {
			t.Fatal(err)
		}
		l := lease{LeaseInfo: LeaseInfo{Name: "git", Owner: "other", Epoch: 2}}
		for _, c := range []struct {
			epoch uint64 // of the record, 0 without one
			free  bool
		}{{0, true}, {1, false}, {2, false}, {3, true}} {
			if c.epoch > 0 {
				if _, err := bucket.Put(t.Context(), memberKey("other"), encode(memberKey("other"), Member{ID: "other", Epoch: c.epoch})); err != nil {
					t.Fatal(err)
				}
			}
			if free, err := r.free(t.Context(), l); err != nil || free != c.free {
				t.Errorf("epoch %d: free %t, %v", c.epoch, free, err)
			}
		}
	})
}

// The revisions of a store that has lost everything start again.
func TestRevisionsThatBeginAnew(t *testing.T) {
	v := newView("self", slog.New(slog.DiscardHandler))
	v.see(records.Record{Key: memberKey("a"), Value: encode(memberKey("a"), Member{ID: "a", Epoch: 1}), Revision: 7}, 1)
	v.list([]records.Record{{Key: memberKey("a"), Value: encode(memberKey("a"), Member{ID: "a", Epoch: 2}), Revision: 7}}, 2)
	if m := v.member("a"); m == nil || m.Epoch != 2 {
		t.Errorf("got %+v", m)
	}
	v.list(nil, 3)
	if v.member("a") != nil {
		t.Error("the member is still there")
	}
}
