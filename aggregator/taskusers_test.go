package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/kv"
	"github.com/dynmcp/dynmcp/internal/kv/memkv"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A shakyBucket does not take the first records.
type shakyBucket struct {
	kv.Bucket
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

func (b shakyBucket) WithTTL(ttl time.Duration) kv.Bucket {
	return shakyBucket{b.Bucket.WithTTL(ttl), b.left}
}

func (b shakyBucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	b.left.mu.Lock()
	defer b.left.mu.Unlock()
	if b.left.fails > 0 {
		b.left.fails--
		return 0, kv.ErrUnavailable
	}
	return b.Bucket.Put(ctx, key, value)
}

// Whose a task is can be read at another replica when the call is answered, also where the
// store fails for a moment; where it fails for long, as soon as it no longer does.
func TestTaskIsStoredByAShakyStore(t *testing.T) {
	for fails, late := range map[int]bool{0: false, 3: false, 50: true} {
		synctest.Test(t, func(t *testing.T) {
			opts := Options{Tasks: newShakyBucket(t, fails), Keys: seal.Random()}
			a, b := newQuiet(t, opts), newQuiet(t, opts)
			defer a.Close()
			defer b.Close()
			knows := func() bool {
				b.learnTask(t.Context(), b.set.Get("up"), "1")
				return b.openSession(principal{"alice"}).hasTask(b.set.Get("up"), "1")
			}
			answered := make(chan struct{})
			r := &host.Request{Method: "tools/call", Respond: func(*host.Request, json.RawMessage, error) { close(answered) }}
			began := time.Now()
			a.replyTask(r, nil, a.peerOf(a.set.Get("up")).addTask(a.openSession(principal{"alice"}), json.RawMessage(`"1"`), nil))
			<-answered
			if took := time.Since(began); took > holdForTask || knows() == late {
				t.Errorf("of a store that fails %d times: it was answered after %s, and the other replica knows: %v", fails, took, !late)
			}
			time.Sleep(time.Duration(fails) * retryTaskLast)
			synctest.Wait()
			if !knows() {
				t.Errorf("of a store that failed %d times: the other replica does not know", fails)
			}
		})
	}
}

// A server that was started again may give the id of a task to another's call: what could
// not be written before must not replace that.
func TestTaskIsNotStoredOverALaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := newShakyBucket(t, 1)
		a := newQuiet(t, Options{Tasks: tasks, Keys: seal.Random()})
		defer a.Close()
		p := a.peerOf(a.set.Get("up"))
		p.addTask(a.openSession(principal{"alice"}), json.RawMessage(`"1"`), nil)
		synctest.Wait() // hers failed
		p.addTask(a.openSession(principal{"bob"}), json.RawMessage(`"1"`), nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		e, err := tasks.Get(t.Context(), taskKey("up", "1"))
		if err != nil {
			t.Fatal(err)
		}
		if of, err := a.opts.Keys.Open(taskPurpose(e.Key), e.Value); err != nil || string(of) != "bob" {
			t.Errorf("it is %q's, %v", of, err)
		}
	})
}

// A store that never works is given up, and by the end of the aggregator at once.
func TestTaskIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newQuiet(t, Options{Tasks: newShakyBucket(t, 1<<30), Keys: seal.Random()})
		p, s := a.peerOf(a.set.Get("up")), a.openSession(principal{"alice"})
		stored := p.addTask(s, json.RawMessage(`"1"`), nil)
		began := time.Now()
		<-stored
		if took := time.Since(began); took < retryTaskFor || took > retryTaskFor+time.Minute {
			t.Errorf("given up after %s", took)
		}
		stored = p.addTask(s, json.RawMessage(`"2"`), nil)
		synctest.Wait()
		a.Close()
		<-stored
		if err := a.ctx.Err(); !errors.Is(err, context.Canceled) || a.taskUsers.unstored.Load() != 0 {
			t.Errorf("it goes on: %v, %d", err, a.taskUsers.unstored.Load())
		}
	})
}

// Whose tasks are is forgotten of the user with the most when there are too many of all.
func TestTasksOfAllUsersHaveABound(t *testing.T) {
	var u taskUsers
	u.add(principal{"few"}, "few", true)
	for i := range maxTasks + 10_000 {
		u.add(principal{fmt.Sprint("user", i%100)}, fmt.Sprint(i), true)
	}
	if len(u.byTask) != maxTasks || u.count != maxTasks {
		t.Errorf("%d tasks are known, %d counted, want %d", len(u.byTask), u.count, maxTasks)
	}
	if _, known := u.get("few"); !known {
		t.Error("the task of a user with few is forgotten")
	}
	for of := range u.tasks {
		if len(u.tasks[of]) > maxTasks/100+1 {
			t.Errorf("%s has %d tasks", of.name, len(u.tasks[of]))
		}
	}
}
