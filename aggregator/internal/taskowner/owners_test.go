package taskowner

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
	"github.com/dynmcp/dynmcp/internal/seal"
)

// A shakyBucket refuses the first records.
type shakyBucket struct {
	records.Bucket
	left *shaky
}

type shaky struct {
	mu    sync.Mutex
	fails int
}

func newShakyBucket(t *testing.T, fails int) shakyBucket {
	b, err := memkv.New().Connect().Bucket(t.Context(), "tasks")
	if err != nil {
		t.Fatal(err)
	}
	return shakyBucket{b, &shaky{fails: fails}}
}

func (b shakyBucket) WithTTL(ttl time.Duration) records.Bucket {
	return shakyBucket{b.Bucket.WithTTL(ttl), b.left}
}

func (b shakyBucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	b.left.mu.Lock()
	defer b.left.mu.Unlock()
	if b.left.fails > 0 {
		b.left.fails--
		return 0, records.ErrUnavailable
	}
	return b.Bucket.Put(ctx, key, value)
}

// newOwners returns owners, and a function that ends their goroutines.
func newOwners(tasks records.Bucket, keys *seal.Keys) (o *Owners, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.DiscardHandler)
	o = &Owners{Bucket: tasks, Keys: keys, Context: ctx, Work: work.New(ctx, log), Log: log}
	return o, func() {
		cancel()
		o.Work.Close()
	}
}

// Another replica can read the user of a task when the call is answered, also if the store
// fails briefly. If the store fails for long, it can read it as soon as the store works.
func TestTaskIsStoredByAShakyStore(t *testing.T) {
	for fails, late := range map[int]bool{0: false, 3: false, 50: true} {
		synctest.Test(t, func(t *testing.T) {
			tasks, keys := newShakyBucket(t, fails), seal.Random()
			a, end := newOwners(tasks, keys)
			defer end()
			b, end := newOwners(tasks, keys)
			defer end()
			knows := func() bool {
				_ = b.Learn(t.Context(), "up", "1")
				user, _ := b.Of("up", "1")
				return user == "alice"
			}
			answered := make(chan struct{})
			began := time.Now()
			a.WhenStored(a.Set("alice", "up", "1", nil), func() { close(answered) })
			<-answered
			if took := time.Since(began); took > maxHold || knows() == late {
				t.Errorf("of a store that fails %d times: it was answered after %s, and the other replica knows: %v", fails, took, !late)
			}
			time.Sleep(time.Duration(fails) * lastPause)
			synctest.Wait()
			if !knows() {
				t.Errorf("of a store that failed %d times: the other replica does not know", fails)
			}
		})
	}
}

// A restarted server may use the id of a task for another user. A record that could not be
// written before must not replace the newer one.
func TestTaskIsNotStoredOverALaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := newShakyBucket(t, 1)
		a, end := newOwners(tasks, seal.Random())
		defer end()
		a.Set("alice", "up", "1", nil)
		synctest.Wait() // the first attempt for alice has failed
		a.Set("bob", "up", "1", nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		e, err := tasks.Get(t.Context(), taskKey{"up", "1"}.record())
		if err != nil {
			t.Fatal(err)
		}
		if of, err := a.Keys.Open(purpose(e.Key), e.Value); err != nil || string(of) != "bob" {
			t.Errorf("it is %q's, %v", of, err)
		}
	})
}

// A record is given up if the store does not work for long, or when the aggregator ends.
func TestTaskIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, end := newOwners(newShakyBucket(t, 1<<30), seal.Random())
		stored := a.Set("alice", "up", "1", nil)
		began := time.Now()
		<-stored
		if took := time.Since(began); took < retryFor || took > retryFor+time.Minute {
			t.Errorf("given up after %s", took)
		}
		stored = a.Set("alice", "up", "2", nil)
		synctest.Wait()
		end()
		<-stored
		if n := a.unstored.Load(); n != 0 {
			t.Errorf("it goes on with %d", n)
		}
	})
}

// If there are too many tasks, those of the user with the most are forgotten.
func TestTasksOfAllUsersHaveABound(t *testing.T) {
	u, end := newOwners(newShakyBucket(t, 0), seal.Random())
	defer end()
	u.add("few", taskKey{"up", "few"})
	for i := range maxTasks + 10_000 {
		u.add(fmt.Sprint("user", i%100), taskKey{"up", fmt.Sprint(i)})
	}
	if len(u.byTask) != maxTasks || u.count != maxTasks {
		t.Errorf("%d tasks are known, %d counted, want %d", len(u.byTask), u.count, maxTasks)
	}
	if _, known := u.Of("up", "few"); !known {
		t.Error("the task of a user with few is forgotten")
	}
	for of := range u.tasks {
		if len(u.tasks[of]) > maxTasks/100+1 {
			t.Errorf("%s has %d tasks", of, len(u.tasks[of]))
		}
	}
}

// Replicas remember a task as long as its server does, and forget it later.
func TestTasksAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tasks, err := memkv.New().Connect().Bucket(t.Context(), "tasks")
		if err != nil {
			t.Fatal(err)
		}
		a, end := newOwners(tasks, seal.Random())
		defer end()
		ttls := map[string]time.Duration{
			`6e5`: 10 * time.Minute, `600000`: 10 * time.Minute, `7776000000`: 90 * 24 * time.Hour,
			`0`: 0, `-1`: 0, `1e300`: longest, `null`: endless, ``: endless, `"no"`: endless,
		}
		for ttl := range ttls {
			a.Set("alice", "up", "task "+ttl, json.RawMessage(ttl))
		}
		known := func(ttl string) bool {
			_, err := tasks.Get(t.Context(), taskKey{"up", "task " + ttl}.record())
			return err == nil
		}
		began := time.Now()
		at := func(when time.Duration) {
			time.Sleep(time.Until(began.Add(when)))
			synctest.Wait()
		}
		for _, when := range []time.Duration{0, 10 * time.Minute, 29 * 24 * time.Hour, 90 * 24 * time.Hour, longest - time.Hour} {
			at(when)
			for ttl, lives := range ttls {
				if lives >= when && !known(ttl) {
					t.Errorf("a task of ttl %s is unknown after %s", ttl, when)
				}
			}
		}
		at(3 * longest)
		for ttl := range ttls {
			if known(ttl) {
				t.Errorf("a task of ttl %s is known after years", ttl)
			}
		}
	})
}

// A restarted server may use an id again: that task is as new as its last use.
func TestTaskWithAUsedIDIsNew(t *testing.T) {
	o, end := newOwners(newShakyBucket(t, 0), seal.Random())
	defer end()
	again := taskKey{"up", "again"}
	for _, user := range []string{"alice", "bob", "alice", "alice"} {
		o.add(user, again)
	}
	for i := range MaxOfUser - 1 {
		o.add("alice", taskKey{"up", fmt.Sprint(i)})
	}
	if user, known := o.Of("up", "again"); user != "alice" || !known || o.count != MaxOfUser || len(o.tasks) != 1 {
		t.Errorf("it is %q's (known: %v), of %d tasks of %d users", user, known, o.count, len(o.tasks))
	}
	o.add("alice", taskKey{"up", "one more"})
	if _, known := o.Of("up", "again"); known {
		t.Error("the oldest is still known")
	}
}
