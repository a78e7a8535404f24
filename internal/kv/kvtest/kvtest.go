// Package kvtest says what every store does, as tests.
package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// A Connection is a store that a test cuts off from its state, and heals.
type Connection interface {
	kv.Store
	Cut()
	Heal()
}

// Run tests the stores that connect returns. All have one state, which is empty at
// first; each is closed by the test that asked for it.
func Run(t *testing.T, connect func(t *testing.T) Connection) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, func() Connection)
	}{
		{"records", records},
		{"keys", keys},
		{"values", values},
		{"buckets", buckets},
		{"revisions", revisions},
		{"create-once", createOnce},
		{"update-once", updateOnce},
		{"end", end},
		{"watch", watch},
		{"watch-prefix", watchPrefix},
		{"watch-all-alike", watchAllAlike},
		{"list-while-records-change", listWhileRecordsChange},
		{"cut", cut},
		{"watch-over-a-cut", watchOverACut},
		{"large", large},
		{"large-is-whole", largeIsWhole},
		{"large-watched", largeWatched},
		{"close", closed},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, func() Connection {
				c := connect(t)
				t.Cleanup(func() {
					if err := c.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				})
				return c
			})
		})
	}
}

// patience is how long anything may take on a machine that is busy.
const patience = 90 * time.Second

// bucket returns the bucket of a test.
func bucket(t *testing.T, store kv.Store) kv.Bucket {
	t.Helper()
	name := strings.NewReplacer("/", "_").Replace(t.Name())
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		b, err := store.Bucket(t.Context(), name)
		if err == nil {
			return b
		}
		if !errors.Is(err, kv.ErrUnavailable) || time.Now().After(deadline) {
			t.Fatalf("bucket %s: %v", name, err)
		}
	}
}

func create(t *testing.T, b kv.Bucket, key, value string) uint64 {
	t.Helper()
	revision, err := b.Create(t.Context(), key, []byte(value))
	if err != nil {
		t.Fatalf("create %s: %v", key, err)
	}
	return revision
}

func put(t *testing.T, b kv.Bucket, key, value string) uint64 {
	t.Helper()
	revision, err := b.Put(t.Context(), key, []byte(value))
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return revision
}

func remove(t *testing.T, b kv.Bucket, key string, revision uint64) {
	t.Helper()
	if err := b.Delete(t.Context(), key, revision); err != nil {
		t.Fatalf("delete %s at %d: %v", key, revision, err)
	}
}

func want(t *testing.T, b kv.Bucket, key, value string, revision uint64) {
	t.Helper()
	e, err := b.Get(t.Context(), key)
	if err != nil || e.Key != key || string(e.Value) != value || e.Revision != revision || e.Value == nil {
		t.Fatalf("get %s: got %q at %d of %q (%v), want %q at %d", key, clip(e.Value), e.Revision, e.Key, err, clip([]byte(value)), revision)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got %v, want %v", what, err, want)
	}
}

func clip(value []byte) []byte { return value[:min(len(value), 40)] }

// A list has every record, also those that are changed while it is made.
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
		err := b.Watch(watching, "", func(e kv.Entry) { listed[e.Key] = true }, func() { ready = true; enough() })
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

func records(t *testing.T, connect func() Connection) {
	a, b := bucket(t, connect()), bucket(t, connect())
	ctx := t.Context()
	_, err := b.Get(ctx, "x")
	wantError(t, "get what is not there", err, kv.ErrNotFound)
	_, err = b.Update(ctx, "x", []byte("1"), 1)
	wantError(t, "update what is not there", err, kv.ErrConflict)
	_, err = b.Update(ctx, "x", []byte("1"), 0)
	wantError(t, "update what is not there at 0", err, kv.ErrConflict)
	wantError(t, "delete what is not there", b.Delete(ctx, "x", 1), kv.ErrConflict)
	remove(t, b, "x", 0)

	first := create(t, a, "x", "1")
	want(t, b, "x", "1", first)
	_, err = b.Create(ctx, "x", []byte("2"))
	wantError(t, "create what is there", err, kv.ErrConflict)
	second, err := b.Update(ctx, "x", []byte("2"), first)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Update(ctx, "x", []byte("3"), first)
	wantError(t, "update at an older revision", err, kv.ErrConflict)
	_, err = a.Update(ctx, "x", []byte("3"), 0)
	wantError(t, "update at 0", err, kv.ErrConflict)
	wantError(t, "delete at an older revision", a.Delete(ctx, "x", first), kv.ErrConflict)
	want(t, a, "x", "2", second)
	third := put(t, a, "x", "")
	want(t, b, "x", "", third)

	remove(t, b, "x", third)
	_, err = a.Get(ctx, "x")
	wantError(t, "get what was deleted", err, kv.ErrNotFound)
	_, err = a.Update(ctx, "x", []byte("4"), third)
	wantError(t, "update what was deleted", err, kv.ErrConflict)
	again := create(t, a, "x", "4")
	want(t, b, "x", "4", again)
	remove(t, a, "x", 0)
	fifth := put(t, b, "x", "5")
	want(t, a, "x", "5", fifth)
	if !(first < second && second < third && third < again && again < fifth) {
		t.Errorf("revisions are not in the order of changes: %d %d %d %d %d", first, second, third, again, fifth)
	}
}

func keys(t *testing.T, connect func() Connection) {
	b := bucket(t, connect())
	for _, key := range []string{"a", "member/AZaz09-_", "a.b", "a=", "/", "a//b", strings.Repeat("k", 512)} {
		want(t, b, key, key, create(t, b, key, key))
	}
	for _, key := range []string{"", ".", ".a", "a.", "a..b", "a b", "a*", "a>", "ä", "a\n", strings.Repeat("k", 513)} {
		_, err := b.Get(t.Context(), key)
		if err == nil || errors.Is(err, kv.ErrNotFound) || errors.Is(err, kv.ErrUnavailable) {
			t.Errorf("get %q: got %v", key, err)
		}
		if _, err := b.Put(t.Context(), key, nil); err == nil || errors.Is(err, kv.ErrUnavailable) {
			t.Errorf("put %q: got %v", key, err)
		}
	}
}

func values(t *testing.T, connect func() Connection) {
	b := bucket(t, connect())
	value := []byte("value")
	revision, err := b.Create(t.Context(), "x", value)
	if err != nil {
		t.Fatal(err)
	}
	value[0] = 'V'
	got, err := b.Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	got.Value[1] = 'A'
	want(t, b, "x", "value", revision)
	if _, err := b.Put(t.Context(), "x", make([]byte, kv.MaxValue+1)); err == nil || errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("put more than a value may have: got %v", err)
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	want(t, b, "all", string(all), create(t, b, "all", string(all)))
}

func buckets(t *testing.T, connect func() Connection) {
	store := connect()
	a := bucket(t, store)
	other, err := store.Bucket(t.Context(), strings.ReplaceAll(t.Name(), "/", "_")+"-other")
	if err != nil {
		t.Fatal(err)
	}
	create(t, a, "x", "1")
	_, err = other.Get(t.Context(), "x")
	wantError(t, "get from another bucket", err, kv.ErrNotFound)
}

func revisions(t *testing.T, connect func() Connection) {
	all := []kv.Bucket{bucket(t, connect()), bucket(t, connect())}
	last := uint64(0)
	for i := range 40 {
		key := fmt.Sprint("k", i%5)
		revision := put(t, all[i%2], key, fmt.Sprint(i))
		if revision <= last {
			t.Fatalf("change %d has revision %d, after %d", i, revision, last)
		}
		want(t, all[(i+1)%2], key, fmt.Sprint(i), revision)
		last = revision
	}
}

// each runs work as eight writers, two for each of four connections.
func each(t *testing.T, connect func() Connection, work func(i int, b kv.Bucket) error) {
	t.Helper()
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range 4 {
		b := bucket(t, connect())
		for j := range 2 {
			wg.Go(func() {
				<-begin
				if err := work(2*i+j, b); err != nil {
					t.Errorf("writer %d: %v", 2*i+j, err)
				}
			})
		}
	}
	close(begin)
	wg.Wait()
}

func createOnce(t *testing.T, connect func() Connection) {
	var mu sync.Mutex
	var winners []string
	each(t, connect, func(i int, b kv.Bucket) error {
		_, err := b.Create(t.Context(), "x", []byte(strconv.Itoa(i)))
		if errors.Is(err, kv.ErrConflict) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		winners = append(winners, strconv.Itoa(i))
		return err
	})
	e, err := bucket(t, connect()).Get(t.Context(), "x")
	if len(winners) != 1 || err != nil || string(e.Value) != winners[0] {
		t.Errorf("%q have made the record, which has %q, %v", winners, e.Value, err)
	}
}

func updateOnce(t *testing.T, connect func() Connection) {
	create(t, bucket(t, connect()), "x", "0")
	each(t, connect, func(_ int, b kv.Bucket) error {
		for done := 0; done < 10; {
			e, err := b.Get(t.Context(), "x")
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(string(e.Value))
			if err != nil {
				return err
			}
			_, err = b.Update(t.Context(), "x", []byte(strconv.Itoa(n+1)), e.Revision)
			switch {
			case err == nil:
				done++
			case !errors.Is(err, kv.ErrConflict):
				return err
			}
		}
		return nil
	})
	if e, err := bucket(t, connect()).Get(t.Context(), "x"); err != nil || string(e.Value) != "80" {
		t.Errorf("after 80 increments the record has %q, %v", e.Value, err)
	}
}

// A watcher is what Watch has told.
type watcher struct {
	t    *testing.T
	end  context.CancelFunc
	done chan error

	mu      sync.Mutex
	news    chan struct{} // closed when something was told, then another
	isReady int
	told    []kv.Entry
}

func watching(t *testing.T, b kv.Bucket, prefix string) *watcher {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{t: t, end: cancel, done: make(chan error, 1), news: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.done <- b.Watch(ctx, prefix, func(e kv.Entry) { w.note(func() { w.told = append(w.told, e) }) }, func() { w.note(func() { w.isReady++ }) })
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

// until waits until what was told is enough.
func (w *watcher) until(what string, enough func(ready int, told []kv.Entry) bool) {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		ok, news := enough(w.isReady, w.told), w.news
		told := slices.Clone(w.told)
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-news:
		case err := <-w.done:
			w.t.Fatalf("the watch ended: %v", err)
		case <-deadline:
			w.t.Fatalf("not in time: %s; told was %s", what, texts(told))
		}
	}
}

func (w *watcher) ready() {
	w.t.Helper()
	w.until("ready", func(ready int, _ []kv.Entry) bool { return ready == 1 })
}

// sees waits for a change, of which all is known but maybe the revision.
func (w *watcher) sees(text string) {
	w.t.Helper()
	w.until(text, func(_ int, told []kv.Entry) bool { return slices.Contains(texts(told), text) })
}

func texts(entries []kv.Entry) []string {
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

// inOrder ends the watch and checks what holds of every one.
func (w *watcher) inOrder() []kv.Entry {
	w.t.Helper()
	w.end()
	if err := <-w.done; !errors.Is(err, context.Canceled) {
		w.t.Errorf("the watch ended with %v", err)
	}
	w.done <- nil
	for i, e := range w.told {
		if i > 0 && e.Revision <= w.told[i-1].Revision {
			w.t.Errorf("%s at %d was told after %d", e.Key, e.Revision, w.told[i-1].Revision)
		}
	}
	if w.isReady != 1 {
		w.t.Errorf("it was ready %d times", w.isReady)
	}
	return w.told
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
	var before []kv.Entry
	for _, e := range w.told {
		if e.Value != nil {
			before = append(before, e)
		}
	}
	w.mu.Unlock()
	if got := texts(before); !slices.Equal(got, []string{"one=1", "two=2"}) || before[0].Revision != one || before[1].Revision != two {
		t.Errorf("at first it was told %s, %v", got, before)
	}
	put(t, a, "one", "")
	w.sees("one=")
	remove(t, a, "two", two)
	w.sees("no two")
	last := create(t, a, "two", "2 again")
	w.sees("two=2 again")
	empty.sees("two=2 again")
	told := w.inOrder()
	empty.inOrder()
	if e := told[len(told)-1]; e.Revision != last {
		t.Errorf("a change made at %d is told at %d", last, e.Revision)
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
		t.Errorf("it was told %s", got)
	}
}

// watchAllAlike: whoever watches sees the same last state, and each a part of one order.
func watchAllAlike(t *testing.T, connect func() Connection) {
	var all []*watcher
	for range 3 {
		all = append(all, watching(t, bucket(t, connect()), ""))
	}
	var mu sync.Mutex
	made := map[uint64]string{} // what change a revision is
	each(t, connect, func(i int, b kv.Bucket) error {
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
			if text := texts([]kv.Entry{e})[0]; e.Key != "end" && made[e.Revision] != text {
				t.Errorf("at %d was %s, it was told %s", e.Revision, made[e.Revision], text)
			}
			last[e.Key] = e.Revision
		}
		b := bucket(t, connect())
		for key, revision := range last {
			if e, err := b.Get(t.Context(), key); err != nil || e.Revision != revision {
				t.Errorf("%s: the last change it was told of is %d, and is %d, %v", key, revision, e.Revision, err)
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
				t.Fatalf("it was not told that connected is %t", connected)
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
	wantError(t, "get", err, kv.ErrUnavailable)
	_, err = b.Create(t.Context(), "y", nil)
	wantError(t, "create", err, kv.ErrUnavailable)
	_, err = b.Update(t.Context(), "x", nil, revision)
	wantError(t, "update", err, kv.ErrUnavailable)
	_, err = b.Put(t.Context(), "x", nil)
	wantError(t, "put", err, kv.ErrUnavailable)
	wantError(t, "delete", b.Delete(t.Context(), "x", revision), kv.ErrUnavailable)
	store.Heal()
	wait(true)
	// What failed while it was cut off was not sent later.
	want(t, b, "x", "1", revision)
	_, err = b.Get(t.Context(), "y")
	wantError(t, "get what was made while cut off", err, kv.ErrNotFound)
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
	told := texts(w.inOrder())
	if n := len(slices.DeleteFunc(told, func(text string) bool { return text != "stays=1" })); n != 1 {
		t.Errorf("what did not change was told %d times", n)
	}
}

// end: records that were written for a time are gone after it, small and large ones, if
// nobody has written them again.
func end(t *testing.T, connect func() Connection) {
	a, b := bucket(t, connect()), bucket(t, connect())
	ctx := t.Context()
	short, long := a.WithTTL(time.Second), a.WithTTL(time.Hour)
	large := string(pattern(2<<20, 5))
	const written, asked = "written", "asked"
	for _, key := range []string{written, asked} { // each may have ended when it is written again
		put(t, short, key, "1")
	}
	put(t, a, written, "2")
	renewed := put(t, b, asked, large)
	if _, err := long.Update(ctx, asked, []byte("2"), renewed); err != nil {
		t.Fatal(err)
	}
	kept := create(t, long, "kept", large)

	created := create(t, short, "created", "1")
	put(t, short, "put", large)
	at := create(t, a, "updated", "1")
	if _, err := short.Update(ctx, "updated", []byte("2"), at); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"created", "put", "updated"} {
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			_, err := b.Get(ctx, key)
			if errors.Is(err, kv.ErrNotFound) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is still there (%v)", key, err)
			}
		}
	}
	_, err := a.Update(ctx, "created", []byte("2"), created)
	wantError(t, "update what has ended", err, kv.ErrConflict)
	wantError(t, "delete what has ended", a.Delete(ctx, "created", created), kv.ErrConflict)
	want(t, b, "created", "again", create(t, a, "created", "again"))
	want(t, b, "kept", large, kept)
	for _, key := range []string{written, asked} {
		if e, err := b.Get(ctx, key); err != nil || string(e.Value) != "2" || e.Written.IsZero() {
			t.Errorf("%s was written again: it is %q of %s, %v", key, clip(e.Value), e.Written, err)
		}
	}
	w := watching(t, b, "")
	w.ready()
	w.sees("created=again")
	w.sees("written=2")
}

// pattern returns a value in which no two parts of it are alike.
func pattern(n int, seed byte) []byte {
	value := make([]byte, n)
	for i := range value {
		value[i] = seed + byte(i) + byte(i>>8) + byte(i>>16)
	}
	return value
}

func large(t *testing.T, connect func() Connection) {
	a, b := bucket(t, connect()), bucket(t, connect())
	big, other := string(pattern(4<<20+1, 1)), string(pattern(2<<20, 9))
	first := create(t, a, "x", big)
	want(t, b, "x", big, first)
	_, err := b.Create(t.Context(), "x", []byte(other))
	wantError(t, "create what is there", err, kv.ErrConflict)
	want(t, a, "x", big, first)
	second, err := b.Update(t.Context(), "x", []byte(other), first)
	if err != nil {
		t.Fatal(err)
	}
	want(t, a, "x", other, second)
	third, err := a.Update(t.Context(), "x", []byte("small"), second)
	if err != nil {
		t.Fatal(err)
	}
	want(t, b, "x", "small", third)
	fourth := put(t, b, "x", big)
	want(t, a, "x", big, fourth)
	remove(t, a, "x", fourth)
	_, err = b.Get(t.Context(), "x")
	wantError(t, "get what was deleted", err, kv.ErrNotFound)
}

// largeIsWhole: a value is one that was put, never parts of two.
func largeIsWhole(t *testing.T, connect func() Connection) {
	writers := []kv.Bucket{bucket(t, connect()), bucket(t, connect())}
	b := bucket(t, connect())
	put(t, b, "x", "")
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	var wg sync.WaitGroup
	for i, w := range writers {
		wg.Go(func() {
			for n := range 6 {
				if _, err := w.Put(ctx, "x", bytes.Repeat([]byte{byte(2*n + i)}, 3<<20)); err != nil {
					t.Errorf("put: %v", err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for over := false; !over; {
		select {
		case <-done:
			over = true // once more: the last
		default:
		}
		e, err := b.Get(t.Context(), "x")
		if err != nil {
			t.Errorf("get: %v", err)
			break
		}
		if n := len(e.Value); n != 0 && (n != 3<<20 || bytes.Count(e.Value, e.Value[:1]) != n) {
			t.Errorf("got a mix of %d bytes", n)
			break
		}
	}
	<-done
}

func largeWatched(t *testing.T, connect func() Connection) {
	a, b := bucket(t, connect()), bucket(t, connect())
	sums := func(told []kv.Entry, value string) bool {
		return slices.ContainsFunc(told, func(e kv.Entry) bool { return string(e.Value) == value })
	}
	before, after := string(pattern(3<<20, 3)), string(pattern(5<<20, 4))
	create(t, a, "x", before)
	w := watching(t, b, "")
	w.until("the large value", func(_ int, told []kv.Entry) bool { return sums(told, before) })
	w.ready()
	put(t, a, "x", after)
	w.until("the next large value", func(_ int, told []kv.Entry) bool { return sums(told, after) })
	put(t, a, "x", "small")
	w.sees("x=small")
	w.inOrder()
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
	wantError(t, "get", err, kv.ErrUnavailable)
	if store.Connected() {
		t.Error("it is connected, and closed")
	}
}
