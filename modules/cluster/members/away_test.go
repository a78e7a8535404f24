package members

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
)

func TestAnElectionInTheStoreIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		var all []*Replica
		var leases []*Lease
		conns := []*memkv.Connection{m.Connect(), m.Connect(), m.Connect()}
		for i, name := range []string{"a", "b", "c"} {
			r := join(t, conns[i], name)
			all = append(all, r)
			leases = append(leases, take(t, r, name))
		}
		time.Sleep(5 * HeartbeatInterval)
		for _, c := range conns {
			c.Cut()
		}
		time.Sleep(9 * time.Second)
		for i, r := range all {
			if !r.Valid() || isClosed(leases[i].Lost()) || len(r.Members()) != 3 {
				t.Errorf("%s: valid %t, %d members", r.options.Name, r.Valid(), len(r.Members()))
			}
			if _, err := r.Take(t.Context(), all[(i+1)%3].options.Name); err == nil {
				t.Error("taken from one that is valid")
			} else if _, held := errors.AsType[*HeldError](err); !held {
				t.Errorf("got %v, want a HeldError", err)
			}
			take(t, r, r.options.Name).Release() // what is held here is shared as ever
		}
		for _, c := range conns {
			c.Heal()
		}
		time.Sleep(10 * time.Second)
		for i, r := range all {
			if m, _ := r.Member(r.ID()); m.Epoch != 1 || isClosed(leases[i].Lost()) {
				t.Errorf("%s is in epoch %d", r.options.Name, m.Epoch)
			}
			leases[i].Release()
		}
	})
}

func TestALongOutageOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		connA, connB := m.Connect(), m.Connect()
		a, b := join(t, connA, "a"), join(t, connB, "b")
		l := take(t, a, "git")
		time.Sleep(5 * HeartbeatInterval)
		connA.Cut()
		connB.Cut()
		cut := time.Now()
		<-l.Lost()
		if ran := time.Since(cut); ran < Validity-2*HeartbeatInterval || ran > Validity {
			t.Errorf("it was lost after %v", ran)
		}
		l.Release()
		time.Sleep(time.Hour)
		if _, err := b.Take(t.Context(), "files"); !errors.Is(err, records.ErrUnavailable) || !b.Degraded() {
			t.Errorf("got %v, degraded: %t", err, b.Degraded())
		}
		connA.Heal()
		connB.Heal()
		time.Sleep(2 * HeartbeatInterval)
		if len(a.Members()) != 2 || len(b.Members()) != 2 || !a.Valid() || !b.Valid() {
			t.Errorf("the members are not back: %+v", a.Members())
		}
		take(t, b, "git").Release()
	})
}

// Take waits for a lost connection to the store, but not longer than Reconnect.
func TestTakeWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		conn := m.Connect()
		a := join(t, conn, "a")
		time.Sleep(5 * HeartbeatInterval)
		conn.Cut()
		time.Sleep(2 * Validity)
		if !a.Degraded() {
			t.Error("the replica is not degraded")
		}
		time.AfterFunc(2*time.Second, conn.Heal)
		take(t, a, "git").Release()
		conn.Cut()
		time.Sleep(2 * Validity)
		began := time.Now()
		if _, err := a.Take(t.Context(), "git"); !errors.Is(err, records.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took < Reconnect || took > Reconnect+HeartbeatInterval {
			t.Errorf("Take waited for %v", took)
		}
		conn.Heal()
	})
}

// unanswered is a bucket that makes changes, but whose answers are lost.
type unanswered struct {
	records.Bucket
	on *atomic.Bool
}

func (b unanswered) wrap(bucket records.Bucket) records.Bucket { return unanswered{bucket, b.on} }

func (b unanswered) Update(ctx context.Context, key string, value []byte, at uint64) (uint64, error) {
	revision, err := b.Bucket.Update(ctx, key, value, at)
	if b.on.Load() {
		<-ctx.Done()
		return 0, records.ErrUnavailable
	}
	return revision, err
}

func (b unanswered) Get(ctx context.Context, key string) (records.Record, error) {
	if b.on.Load() {
		<-ctx.Done()
		return records.Record{}, records.ErrUnavailable
	}
	return b.Bucket.Get(ctx, key)
}

func TestAHeartbeatWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		var on atomic.Bool
		a := join(t, wrapped{m.Connect(), unanswered{on: &on}.wrap}, "a")
		b := join(t, m.Connect(), "b")
		l := take(t, a, "git")
		time.Sleep(5*HeartbeatInterval + HeartbeatInterval/2)
		on.Store(true)
		time.Sleep(Validity - 2*HeartbeatInterval)
		on.Store(false)
		time.Sleep(5 * HeartbeatInterval)
		if m, _ := b.Member(a.ID()); isClosed(l.Lost()) || m.Epoch != 1 {
			t.Errorf("lost: %t, epoch %d", isClosed(l.Lost()), m.Epoch)
		}
		l.Release()
	})
}

// A heartbeat without an answer does not extend validity.
func TestAHeartbeatWithoutAnAnswerExtendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		var on atomic.Bool
		conn := m.Connect()
		a := join(t, wrapped{conn, unanswered{on: &on}.wrap}, "a")
		l := take(t, a, "git")
		time.Sleep(5*HeartbeatInterval + HeartbeatInterval/2)
		on.Store(true)
		b := join(t, m.Connect(), "b")
		time.Sleep(tick)
		conn.Cut()
		notBefore(t, b, l)
	})
}

func TestANewcomerWaitsForOneThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		conn := m.Connect()
		a := join(t, conn, "a")
		l := take(t, a, "git")
		time.Sleep(5 * HeartbeatInterval)
		conn.Cut()
		b := join(t, m.Connect(), "b")
		notBefore(t, b, l)
	})
}

// notBefore takes a lease from another replica, and checks that this succeeds only well after
// that replica has lost it.
func notBefore(t *testing.T, r *Replica, held *Lease) {
	t.Helper()
	taken := make(chan time.Time, 1)
	go func() {
		takeFrom(t, r, "git").Release()
		taken <- time.Now()
	}()
	<-held.Lost()
	lost := time.Now()
	if after := (<-taken).Sub(lost); after < TTL-Validity-HeartbeatInterval/2 {
		t.Errorf("it was taken %v after it was lost", after)
	}
	held.Release()
}

// The others keep their leases while the store is away, and take over when it is back.
func TestADeathWhileTheStoreIsAway(t *testing.T) {
	for _, others := range []int{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			m := memkv.New()
			var conns []*memkv.Connection
			var all []*Replica
			for i := range 1 + others {
				conns = append(conns, m.Connect())
				all = append(all, join(t, conns[i], string(rune('a'+i))))
			}
			dead, a := all[0], all[1]
			take(t, dead, "git")
			l := take(t, a, "files")
			time.Sleep(5 * HeartbeatInterval)
			for _, conn := range conns {
				conn.Cut()
			}
			dead.stop()
			time.Sleep(9 * time.Second)
			if isClosed(l.Lost()) {
				t.Error("another replica has lost its lease")
			}
			for _, conn := range conns {
				conn.Heal()
			}
			healed := time.Now()
			takeFrom(t, a, "git").Release()
			if took := time.Since(healed); took > failover {
				t.Errorf("taken %v after the store was back", took)
			}
			if isClosed(l.Lost()) || len(a.Members()) != others {
				t.Errorf("lost: %t, members: %+v", isClosed(l.Lost()), a.Members())
			}
			l.Release()
		})
	}
}

func TestTwoOfThreeDie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		a, b, c := join(t, m.Connect(), "a"), join(t, m.Connect(), "b"), join(t, m.Connect(), "c")
		take(t, a, "git")
		time.Sleep(5 * HeartbeatInterval)
		a.stop()
		b.stop()
		died := time.Now()
		takeFrom(t, c, "git").Release()
		if took := time.Since(died); took > failover {
			t.Errorf("it was taken after %v", took)
		}
	})
}
