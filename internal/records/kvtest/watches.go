package kvtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
)

// listWhileRecordsChange tests that a list has every record, also those that change meanwhile.
func listWhileRecordsChange(t *testing.T, connect func() Connection) {
	b := bucket(t, connect())
	var all []string
	for i := range 10 {
		all = append(all, fmt.Sprint("member/", i))
		create(t, b, all[i], "0")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var changing sync.WaitGroup
	defer changing.Wait()
	defer cancel()
	for _, key := range all {
		changing.Go(func() {
			for ctx.Err() == nil {
				_, _ = b.Put(ctx, key, []byte("1")) // or the test ends
			}
		})
	}
	for range 30 {
		listed := map[string]bool{}
		watching, enough := context.WithCancel(t.Context())
		ready := false
		err := b.Watch(watching, "", func(e records.Record) { listed[e.Key] = true }, func() { ready = true; enough() })
		enough()
		if !ready {
			t.Fatalf("a watch ended before it was ready: %v", err)
		}
		for _, key := range all {
			if !listed[key] {
				t.Fatalf("%s is not in the list %v", key, listed)
			}
		}
	}
}

// A watcher collects what Watch delivers.
type watcher struct {
	t    *testing.T
	end  context.CancelFunc
	done chan error

	mu        sync.Mutex
	news      chan struct{} // closed when something was delivered, then another
	isReady   int
	delivered []records.Record
}

func watching(t *testing.T, b records.Bucket, prefix string) *watcher {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{t: t, end: cancel, done: make(chan error, 1), news: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.done <- b.Watch(ctx, prefix, func(e records.Record) { w.note(func() { w.delivered = append(w.delivered, e) }) }, func() { w.note(func() { w.isReady++ }) })
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return w
}

func (w *watcher) note(note func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	note()
	close(w.news)
	w.news = make(chan struct{})
}

// until waits until enough returns true.
func (w *watcher) until(what string, enough func(ready int, delivered []records.Record) bool) {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		ok, news := enough(w.isReady, w.delivered), w.news
		delivered := slices.Clone(w.delivered)
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-news:
		case err := <-w.done:
			w.t.Fatalf("the watch ended: %v", err)
		case <-deadline:
			w.t.Fatalf("not in time: %s; delivered was %s", what, texts(delivered))
		}
	}
}

func (w *watcher) ready() {
	w.t.Helper()
	w.until("ready", func(ready int, _ []records.Record) bool { return ready == 1 })
}

// sees waits for a change, in the form of texts, at any revision.
func (w *watcher) sees(text string) {
	w.t.Helper()
	w.until(text, func(_ int, delivered []records.Record) bool { return slices.Contains(texts(delivered), text) })
}

func texts(entries []records.Record) []string {
	var all []string
	for _, e := range entries {
		if e.Value == nil {
			all = append(all, "no "+e.Key)
		} else {
			all = append(all, e.Key+"="+string(clip(e.Value)))
		}
	}
	return all
}

// inOrder ends the watch, and checks that ready was called once and that the revisions increase.
func (w *watcher) inOrder() []records.Record {
	w.t.Helper()
	w.end()
	if err := <-w.done; !errors.Is(err, context.Canceled) {
		w.t.Errorf("the watch ended with %v", err)
	}
	w.done <- nil
	for i, e := range w.delivered {
		if i > 0 && e.Revision <= w.delivered[i-1].Revision {
			w.t.Errorf("%s at %d was delivered after %d", e.Key, e.Revision, w.delivered[i-1].Revision)
		}
	}
	if w.isReady != 1 {
		w.t.Errorf("it was ready %d times", w.isReady)
	}
	return w.delivered
}

func watch(t *testing.T, connect func() Connection) {
	a, b := bucket(t, connect()), bucket(t, connect())
	empty := watching(t, b, "")
	empty.ready()
	one := create(t, a, "one", "1")
	two := create(t, a, "two", "2")
	gone := create(t, a, "gone", "3")
	remove(t, a, "gone", gone)
	empty.sees("no gone")

	w := watching(t, b, "")
	w.ready()
	w.mu.Lock()
	var before []records.Record
	for _, e := range w.delivered {
		if e.Value != nil {
			before = append(before, e)
		}
	}
	w.mu.Unlock()
	if got := texts(before); !slices.Equal(got, []string{"one=1", "two=2"}) || before[0].Revision != one || before[1].Revision != two {
		t.Errorf("at first it delivered %s, %v", got, before)
	}
	put(t, a, "one", "")
	w.sees("one=")
	remove(t, a, "two", two)
	w.sees("no two")
	last := create(t, a, "two", "2 again")
	w.sees("two=2 again")
	empty.sees("two=2 again")
	delivered := w.inOrder()
	empty.inOrder()
	if e := delivered[len(delivered)-1]; e.Revision != last {
		t.Errorf("a change made at %d is delivered at %d", last, e.Revision)
	}
}

func watchPrefix(t *testing.T, connect func() Connection) {
	b := bucket(t, connect())
	create(t, b, "lease/a", "1")
	create(t, b, "member/a", "2")
	w := watching(t, b, "member/")
	w.ready()
	put(t, b, "lease/a", "3")
	put(t, b, "memberless", "4")
	put(t, b, "member/b", "5")
	w.sees("member/b=5")
	remove(t, b, "lease/a", 0)
	remove(t, b, "member/a", 0)
	w.sees("no member/a")
	if got := texts(w.inOrder()); !slices.Equal(got, []string{"member/a=2", "member/b=5", "no member/a"}) {
		t.Errorf("it delivered %s", got)
	}
}

// watchAllAlike tests that all watches deliver the same last state, and changes of one order.
func watchAllAlike(t *testing.T, connect func() Connection) {
	var all []*watcher
	for range 3 {
		all = append(all, watching(t, bucket(t, connect()), ""))
	}
	var mu sync.Mutex
	made := map[uint64]string{} // changes by revision
	each(t, connect, func(i int, b records.Bucket) error {
		for n := range 20 {
			key, value := fmt.Sprint("k", n%3), fmt.Sprint(i, ".", n)
			revision, err := b.Put(t.Context(), key, []byte(value))
			if err != nil {
				return err
			}
			mu.Lock()
			made[revision] = key + "=" + value
			mu.Unlock()
		}
		return nil
	})
	put(t, bucket(t, connect()), "end", "1")
	for _, w := range all {
		w.sees("end=1")
		last := map[string]uint64{}
		for _, e := range w.inOrder() {
			if text := texts([]records.Record{e})[0]; e.Key != "end" && made[e.Revision] != text {
				t.Errorf("at %d was %s, it delivered %s", e.Revision, made[e.Revision], text)
			}
			last[e.Key] = e.Revision
		}
		b := bucket(t, connect())
		for key, revision := range last {
			if e, err := b.Get(t.Context(), key); err != nil || e.Revision != revision {
				t.Errorf("%s: the last change it delivered is %d, and is %d, %v", key, revision, e.Revision, err)
			}
		}
	}
}

func cut(t *testing.T, connect func() Connection) {
	store := connect()
	changes := make(chan bool, 100)
	store.OnConnected(func(connected bool) { changes <- connected })
	wait := func(connected bool) {
		t.Helper()
		for deadline := time.After(patience); ; {
			select {
			case now := <-changes:
				if now == connected {
					return
				}
			case <-deadline:
				t.Fatalf("it did not report that connected is %t", connected)
			}
		}
	}
	b := bucket(t, store)
	revision := create(t, b, "x", "1")
	store.Cut()
	wait(false)
	if store.Connected() {
		t.Error("it is connected, and cut off")
	}
	_, err := b.Get(t.Context(), "x")
	wantError(t, "get", err, records.ErrUnavailable)
	_, err = b.Create(t.Context(), "y", nil)
	wantError(t, "create", err, records.ErrUnavailable)
	_, err = b.Update(t.Context(), "x", nil, revision)
	wantError(t, "update", err, records.ErrUnavailable)
	_, err = b.Put(t.Context(), "x", nil)
	wantError(t, "put", err, records.ErrUnavailable)
	wantError(t, "delete", b.Delete(t.Context(), "x", revision), records.ErrUnavailable)
	store.Heal()
	wait(true)
	// Requests that failed while it was cut off were not sent later.
	want(t, b, "x", "1", revision)
	_, err = b.Get(t.Context(), "y")
	wantError(t, "get what was made while cut off", err, records.ErrNotFound)
}

func watchOverACut(t *testing.T, connect func() Connection) {
	store := connect()
	a, b := bucket(t, connect()), bucket(t, store)
	create(t, a, "stays", "1")
	gone := create(t, a, "gone", "1")
	w := watching(t, b, "")
	w.ready()
	for round := range 3 {
		store.Cut()
		for i := range 10 {
			put(t, a, "often", fmt.Sprint(round, ".", i))
		}
		if round == 1 {
			remove(t, a, "gone", gone)
		}
		put(t, a, "last", fmt.Sprint(round))
		store.Heal()
		w.sees(fmt.Sprint("last=", round))
		w.sees(fmt.Sprint("often=", round, ".9"))
	}
	w.sees("no gone")
	store.Cut()
	late := watching(t, b, "") // begins when it can
	store.Heal()
	late.ready()
	late.sees("last=2")
	late.inOrder()
	delivered := texts(w.inOrder())
	if n := len(slices.DeleteFunc(delivered, func(text string) bool { return text != "stays=1" })); n != 1 {
		t.Errorf("what did not change was delivered %d times", n)
	}
}

func closed(t *testing.T, connect func() Connection) {
	store := connect()
	b := bucket(t, store)
	create(t, b, "x", "1")
	w := watching(t, b, "")
	w.ready()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-w.done:
		if err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the watch goes on")
	}
	_, err := b.Get(t.Context(), "x")
	wantError(t, "get", err, records.ErrUnavailable)
	if store.Connected() {
		t.Error("it is connected, and closed")
	}
}
