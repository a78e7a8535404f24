package members

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
)

// breakRecord changes one bit of a record, or writes junk if there is no record.
func breakRecord(t *testing.T, store records.Store, key string) {
	t.Helper()
	bucket, err := store.Bucket(t.Context(), Bucket)
	if err != nil {
		t.Fatal(err)
	}
	value := []byte("junk")
	if e, err := bucket.Get(t.Context(), key); err == nil {
		value = e.Value
		value[len(value)/2] ^= 1
	}
	if _, err := bucket.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// A changed bit in the name of the checksum leaves a record without one.
func TestARecordWithoutChecksumIsBroken(t *testing.T) {
	key := leaseKey("git")
	text := encode(key, LeaseInfo{Name: "git", Owner: "a", Epoch: 1})
	if l, err := decodeLease(key, text); err != nil || l.Owner != "a" {
		t.Errorf("got %+v, %v", l, err)
	}
	if _, err := decodeLease(key, bytes.Replace(text, []byte(`"sum"`), []byte(`"{um"`), 1)); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

// takeFrom retries Take while another replica holds the lease.
func takeFrom(t *testing.T, r *Replica, name string) *Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tooLong)
	defer cancel()
	for {
		l, err := r.Take(ctx, name)
		if _, held := errors.AsType[*HeldError](err); held && ctx.Err() == nil {
			time.Sleep(tick)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func TestABrokenLeaseIsAFreeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		var log bytes.Buffer
		a, b := join(t, m.Connect(), "a", func(o *ReplicaOptions) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }), join(t, m.Connect(), "b")
		for _, key := range []string{leaseKey("git"), leaseKey("idle")} {
			breakRecord(t, m.Connect(), key)
		}
		synctest.Wait()
		if broken := fmt.Sprint(a.State().Broken); broken != "[lease/git lease/idle]" {
			t.Errorf("broken: %s", broken)
		}
		if state, err := Read(t.Context(), m.Connect()); err != nil || fmt.Sprint(state.Broken) != "[lease/git lease/idle]" {
			t.Errorf("got %+v, %v", state, err)
		}
		began := time.Now()
		l := take(t, a, "git")
		if took := time.Since(began); took > 2*HeartbeatInterval {
			t.Errorf("taken after %v", took)
		}
		if _, err := b.Take(t.Context(), "git"); err == nil {
			t.Error("taken twice")
		}
		l.Release()
		time.Sleep(2 * time.Minute) // nobody takes the other one
		if broken := append(a.State().Broken, b.State().Broken...); len(broken) > 0 {
			t.Errorf("still broken: %q", broken)
		}
		synctest.Wait()
		for _, key := range []string{"key=lease/git ", "key=lease/idle "} {
			if n := strings.Count(log.String(), key); n != 1 {
				t.Errorf("%s is logged %d times, want once:\n%s", key, n, log.String())
			}
		}
	})
}

func TestTheHolderOfABrokenLeaseRepairsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		a, b := join(t, m.Connect(), "a"), join(t, m.Connect(), "b")
		l := take(t, a, "git")
		for range 3 {
			breakRecord(t, m.Connect(), leaseKey("git"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := b.Take(ctx, "git")
			cancel()
			if held, ok := errors.AsType[*HeldError](err); !ok || held.Member.Name != "a" {
				t.Errorf("got %v, want that a holds it", err)
			}
			time.Sleep(tick)
			if isClosed(l.Lost()) || len(a.State().Broken) > 0 {
				t.Errorf("lost: %t, broken: %q", isClosed(l.Lost()), a.State().Broken)
			}
		}
		l.Release()
		synctest.Wait()
		take(t, b, "git").Release()
	})
}

// A holder that is cut off does not see that its lease is broken, and still runs its work.
func TestABrokenLeaseOfAReplicaThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		conn := m.Connect()
		a, b, _ := join(t, conn, "a"), join(t, m.Connect(), "b"), join(t, m.Connect(), "c")
		l := take(t, a, "git")
		time.Sleep(3 * HeartbeatInterval)
		conn.Cut()
		breakRecord(t, m.Connect(), leaseKey("git"))
		taken := takeFrom(t, b, "git")
		if !isClosed(l.Lost()) {
			t.Error("b holds what a still runs")
		}
		l.Release()
		taken.Release()
		conn.Heal()
		time.Sleep(time.Minute)
	})
}

// A blindBucket hides the record of a member from the view, as a node of the store that lags does.
type blindBucket struct {
	records.Bucket
	hidden string
}

func (b blindBucket) wrap(bucket records.Bucket) records.Bucket { return blindBucket{bucket, b.hidden} }

func (b blindBucket) Watch(ctx context.Context, prefix string, changed func(records.Record), ready func()) error {
	return b.Bucket.Watch(ctx, prefix, func(e records.Record) {
		if prefix != "" || e.Key != b.hidden {
			changed(e)
		}
	}, ready)
}

// A holder that cannot repair its lease still runs its work, even if another replica does not
// see that member: the store has its record.
func TestABrokenLeaseOfAMemberThatIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		conn := m.Connect()
		a := join(t, conn, "a")
		l := take(t, a, "git")
		b := join(t, wrapped{m.Connect(), blindBucket{hidden: memberKey(a.ID())}.wrap}, "b")
		time.Sleep(3 * HeartbeatInterval)
		conn.Cut()
		breakRecord(t, m.Connect(), leaseKey("git"))
		ctx, cancel := context.WithTimeout(t.Context(), 2*HeartbeatInterval)
		defer cancel()
		taken, err := b.Take(ctx, "git")
		if isClosed(l.Lost()) {
			t.Error("a has lost its lease, so the test proves nothing")
		}
		if err == nil {
			t.Error("b holds what a still runs")
			taken.Release()
		}
		conn.Heal()
		l.Release()
	})
}

// The leases of a dead member are taken even if its record is broken.
func TestABrokenRecordOfAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		a, b, _ := join(t, m.Connect(), "a"), join(t, m.Connect(), "b"), join(t, m.Connect(), "c")
		l := take(t, a, "git")
		leaving := b.Leaving(a.ID())
		for range 3 {
			breakRecord(t, m.Connect(), memberKey(a.ID()))
			time.Sleep(2 * HeartbeatInterval)
			if isClosed(l.Lost()) || len(b.State().Broken) > 0 {
				t.Errorf("lost: %t, broken: %q", isClosed(l.Lost()), b.State().Broken)
			}
		}
		if isClosed(leaving) {
			t.Error("Leaving is closed while a holds its lease")
		}
		a.stop() // as if it were killed
		breakRecord(t, m.Connect(), memberKey(a.ID()))
		breakRecord(t, m.Connect(), memberKey("NOBODY"))
		began := time.Now()
		takeFrom(t, b, "git").Release()
		if took := time.Since(began); took > failover {
			t.Errorf("taken after %v", took)
		}
		time.Sleep(time.Minute)
		if len(b.State().Broken) > 0 || len(b.Members()) != 2 {
			t.Errorf("broken: %q, members: %+v", b.State().Broken, b.Members())
		}
	})
}

// A slowBucket delays the deletion of leases, and can make updates of members conflict.
type slowBucket struct {
	records.Bucket
	late     time.Duration
	conflict atomic.Bool // every update of a member's record conflicts
	updates  atomic.Int64
}

func (b *slowBucket) wrap(bucket records.Bucket) records.Bucket {
	b.Bucket = bucket
	return b
}

func (b *slowBucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if b.conflict.Load() && strings.HasPrefix(key, memberPrefix) {
		b.updates.Add(1)
		time.Sleep(200 * time.Microsecond)
		return 0, records.ErrConflict
	}
	return b.Bucket.Update(ctx, key, value, revision)
}

func (b *slowBucket) Delete(ctx context.Context, key string, revision uint64) error {
	if strings.HasPrefix(key, leasePrefix) {
		time.Sleep(b.late)
	}
	return b.Bucket.Delete(ctx, key, revision)
}

// A store in trouble answers every heartbeat with a conflict while an earlier one is undecided.
func TestHeartbeatsThatConflictDoNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow slowBucket
		a := join(t, wrapped{memkv.New().Connect(), slow.wrap}, "a")
		slow.conflict.Store(true)
		time.Sleep(2 * time.Second)
		slow.conflict.Store(false)
		if n := slow.updates.Load(); n > 2*int64(2*time.Second/tick) {
			t.Errorf("%d updates in 2 s", n)
		}
		time.Sleep(HeartbeatInterval)
		if !a.Valid() {
			t.Error("it is not valid after the store has recovered")
		}
	})
}

// Deleting many leases does not delay the expiry of the next member that dies.
func TestADeathWhileLeasesAreCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		a, b := join(t, m.Connect(), "a"), join(t, m.Connect(), "b")
		for i := range 1000 {
			take(t, a, fmt.Sprint("server ", i))
		}
		take(t, b, "git")
		store := wrapped{m.Connect(), (&slowBucket{late: time.Second}).wrap}
		c := join(t, store, "c")
		for c.ID() > b.ID() { // the member with the smallest ID collects
			c.Close()
			c = join(t, store, "c")
		}
		a.stop()
		time.Sleep(65 * time.Second) // they are being collected
		b.stop()
		began := time.Now()
		l := takeFrom(t, c, "git")
		if took := time.Since(began); took > failover {
			t.Errorf("taken after %v", took)
		}
		l.Release()
		time.Sleep(2 * time.Minute)
		if state, err := Read(t.Context(), m.Connect()); err != nil || len(state.Leases) > 0 || len(state.Members) != 1 {
			t.Errorf("got %+v, %v", state, err)
		}
		if n := len(c.State().Leases); n > 0 {
			t.Errorf("%d leases of the dead are left", n)
		}
	})
}
