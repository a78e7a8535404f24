package logins

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
	"github.com/dynmcp/dynmcp/internal/seal"
)

// A replica is a connection to the shared state, with its store of logins.
type replica struct {
	*memkv.Connection
	bucket records.Bucket
	store  *Store
}

func newReplica(t *testing.T, memory *memkv.Memory, keys *seal.Keys) replica {
	t.Helper()
	c := memory.Connect()
	bucket, err := c.Bucket(t.Context(), "logins")
	if err != nil {
		t.Fatal(err)
	}
	return replica{c, bucket, NewShared(bucket, keys, LockTime, slog.New(slog.DiscardHandler))}
}

func TestSharedStore(t *testing.T) {
	memory, keys := memkv.New(), seal.Random()
	a, b := newReplica(t, memory, keys), newReplica(t, memory, keys)
	if l, err := b.store.Load(aKey); l != nil || err != nil {
		t.Fatalf("at first there is %+v, %v", l, err)
	}
	first, second := aLogin(), aLogin()
	second.Issuer, second.Issued, second.AccessToken = "https://other.example.test", first.Issued.Add(time.Second), "other-s3cret"
	for _, l := range []*Login{first, second} {
		if err := a.store.Save(aKey, l); err != nil {
			t.Fatal(err)
		}
	}
	if l, err := b.store.Load(aKey); err != nil || l == nil || !reflect.DeepEqual(l.Secrets, second.Secrets) || l.Issuer != second.Issuer {
		t.Errorf("got %+v, %v", l, err)
	}
	if l, err := b.store.Peek(aKey); err != nil || l == nil || !reflect.DeepEqual(l.Secrets, Secrets{}) || !l.HasToken || !l.Renews {
		t.Errorf("without secrets it is %+v, %v", l, err)
	}
	if all, err := b.store.LoadAll(aKey); err != nil || len(all) != 2 || !reflect.DeepEqual(all[1].Secrets, first.Secrets) {
		t.Errorf("all are %+v, %v", all, err)
	}
	e, err := a.bucket.Get(t.Context(), a.store.backend.(*shared).record("login", aKey))
	if err != nil || bytes.Contains(e.Value, []byte("s3cret")) || bytes.Contains(e.Value, []byte("example")) {
		t.Errorf("the record is readable: %q, %v", e.Value, err)
	}
	if l, err := newReplica(t, memory, seal.Random()).store.Load(aKey); l != nil || err != nil {
		t.Errorf("with another key it is %+v, %v", l, err)
	}
	other := aKey
	other.Client = "another"
	// A record under the name of another is not opened.
	if _, err := a.bucket.Put(t.Context(), a.store.backend.(*shared).record("login", other), e.Value); err != nil {
		t.Fatal(err)
	}
	if l, err := a.store.Load(other); l != nil || err != nil {
		t.Errorf("the login of another client is %+v, %v", l, err)
	}
	if was, err := b.store.Delete(aKey); !was || err != nil {
		t.Errorf("deleted: %t, %v", was, err)
	}
	if was, err := a.store.Delete(aKey); was || err != nil {
		t.Errorf("deleted again: %t, %v", was, err)
	}
}

// The lock of a replica that is cut off expires after some seconds, its context before that.
func TestLockOfAReplicaThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, keys := memkv.New(), seal.Random()
		a, b := newReplica(t, memory, keys), newReplica(t, memory, keys)
		held, unlock, err := a.store.Lock(t.Context(), aKey)
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), LockTime-time.Second)
		defer cancel()
		if _, _, err := b.store.Lock(short, aKey); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("two have the lock: %v", err)
		}
		if held.Err() != nil {
			t.Fatal("the replica has lost its lock")
		}

		// It expires while no replica can reach the state.
		got := make(chan time.Time)
		go func() {
			mine, unlock, err := b.store.Lock(t.Context(), aKey)
			if err != nil || mine.Err() != nil {
				t.Errorf("lock: %v, %v", err, mine)
			}
			got <- time.Now()
			unlock()
		}()
		a.Cut()
		b.Cut()
		time.Sleep(time.Minute)
		if held.Err() == nil {
			t.Error("after a minute without the state, the replica still has its lock")
		}
		b.Heal()
		begin := time.Now()
		if took := (<-got).Sub(begin); took > time.Second {
			t.Errorf("the lock was free after %s", took)
		}
		a.Heal()
		unlock() // has no effect on the lock of another replica
		again, unlock, err := a.store.Lock(t.Context(), aKey)
		if err != nil || again.Err() != nil {
			t.Fatal(err)
		}
		unlock()
		synctest.Wait()
		if again.Err() == nil {
			t.Error("the lock is held after unlock")
		}
	})
}

// Save retries while the state is unreachable.
func TestSaveOutlastsACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, keys := memkv.New(), seal.Random()
		a, b := newReplica(t, memory, keys), newReplica(t, memory, keys)
		a.Cut()
		time.AfterFunc(saveTime/2, a.Heal)
		if err := a.store.Save(aKey, aLogin()); err != nil {
			t.Fatal(err)
		}
		if l, err := b.store.Load(aKey); err != nil || l == nil {
			t.Errorf("got %+v, %v", l, err)
		}
	})
}

// Replicas that wait for the lock of a dead one get it one after the other.
func TestLockOfADeadReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, keys := memkv.New(), seal.Random()
		dead := newReplica(t, memory, keys)
		_, unlock, err := dead.store.Lock(t.Context(), aKey)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		dead.Cut()
		var holders atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			store := newReplica(t, memory, keys).store
			all.Go(func() {
				held, unlock, err := store.Lock(t.Context(), aKey)
				if err != nil {
					t.Error(err)
					return
				}
				if holders.Add(1) != 1 {
					t.Error("two have the lock")
				}
				time.Sleep(LockTime - time.Second)
				if held.Err() != nil {
					t.Error("the replica has lost its lock")
				}
				holders.Add(-1)
				unlock()
			})
		}
		all.Wait()
	})
}

// A broken record in place of a lock does not prevent a refresh.
func TestLockThatIsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(t, memkv.New(), seal.Random())
		if _, err := r.bucket.Put(t.Context(), r.store.backend.(*shared).record("lock", aKey), []byte("\x00{")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), LockTime)
		defer cancel()
		_, unlock, err := r.store.Lock(ctx, aKey)
		if err != nil {
			t.Fatal(err)
		}
		unlock()
	})
}
