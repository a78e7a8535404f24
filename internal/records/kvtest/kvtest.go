// Package kvtest tests implementations of records.Store.
package kvtest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
)

// A Connection is a store that a test can disconnect from its state and reconnect.
type Connection interface {
	records.Store
	Cut()
	Heal()
}

// Run tests the stores that connect returns. They share one state, which is empty at first. Each
// test closes its stores.
func Run(t *testing.T, connect func(t *testing.T) Connection) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, func() Connection)
	}{
		{"records", changes},
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

// patience is how long a step may take on a busy machine.
const patience = 90 * time.Second

// bucket returns the bucket of a test.
func bucket(t *testing.T, store records.Store) records.Bucket {
	t.Helper()
	name := strings.NewReplacer("/", "_").Replace(t.Name())
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		b, err := store.Bucket(t.Context(), name)
		if err == nil {
			return b
		}
		if !errors.Is(err, records.ErrUnavailable) || time.Now().After(deadline) {
			t.Fatalf("bucket %s: %v", name, err)
		}
	}
}

func create(t *testing.T, b records.Bucket, key, value string) uint64 {
	t.Helper()
	revision, err := b.Create(t.Context(), key, []byte(value))
	if err != nil {
		t.Fatalf("create %s: %v", key, err)
	}
	return revision
}

func put(t *testing.T, b records.Bucket, key, value string) uint64 {
	t.Helper()
	revision, err := b.Put(t.Context(), key, []byte(value))
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return revision
}

func remove(t *testing.T, b records.Bucket, key string, revision uint64) {
	t.Helper()
	if err := b.Delete(t.Context(), key, revision); err != nil {
		t.Fatalf("delete %s at %d: %v", key, revision, err)
	}
}

func want(t *testing.T, b records.Bucket, key, value string, revision uint64) {
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

func changes(t *testing.T, connect func() Connection) {
	a, b := bucket(t, connect()), bucket(t, connect())
	ctx := t.Context()
	_, err := b.Get(ctx, "x")
	wantError(t, "get what is not there", err, records.ErrNotFound)
	_, err = b.Update(ctx, "x", []byte("1"), 1)
	wantError(t, "update what is not there", err, records.ErrConflict)
	_, err = b.Update(ctx, "x", []byte("1"), 0)
	wantError(t, "update what is not there at 0", err, records.ErrConflict)
	wantError(t, "delete what is not there", b.Delete(ctx, "x", 1), records.ErrConflict)
	remove(t, b, "x", 0)

	first := create(t, a, "x", "1")
	want(t, b, "x", "1", first)
	_, err = b.Create(ctx, "x", []byte("2"))
	wantError(t, "create what is there", err, records.ErrConflict)
	second, err := b.Update(ctx, "x", []byte("2"), first)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Update(ctx, "x", []byte("3"), first)
	wantError(t, "update at an older revision", err, records.ErrConflict)
	_, err = a.Update(ctx, "x", []byte("3"), 0)
	wantError(t, "update at 0", err, records.ErrConflict)
	wantError(t, "delete at an older revision", a.Delete(ctx, "x", first), records.ErrConflict)
	want(t, a, "x", "2", second)
	third := put(t, a, "x", "")
	want(t, b, "x", "", third)

	remove(t, b, "x", third)
	_, err = a.Get(ctx, "x")
	wantError(t, "get what was deleted", err, records.ErrNotFound)
	_, err = a.Update(ctx, "x", []byte("4"), third)
	wantError(t, "update what was deleted", err, records.ErrConflict)
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
		if err == nil || errors.Is(err, records.ErrNotFound) || errors.Is(err, records.ErrUnavailable) {
			t.Errorf("get %q: got %v", key, err)
		}
		if _, err := b.Put(t.Context(), key, nil); err == nil || errors.Is(err, records.ErrUnavailable) {
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
	if _, err := b.Put(t.Context(), "x", make([]byte, records.MaxValue+1)); err == nil || errors.Is(err, records.ErrUnavailable) {
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
	wantError(t, "get from another bucket", err, records.ErrNotFound)
}

func revisions(t *testing.T, connect func() Connection) {
	all := []records.Bucket{bucket(t, connect()), bucket(t, connect())}
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
func each(t *testing.T, connect func() Connection, work func(i int, b records.Bucket) error) {
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
	each(t, connect, func(i int, b records.Bucket) error {
		_, err := b.Create(t.Context(), "x", []byte(strconv.Itoa(i)))
		if errors.Is(err, records.ErrConflict) {
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
	each(t, connect, func(_ int, b records.Bucket) error {
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
			case !errors.Is(err, records.ErrConflict):
				return err
			}
		}
		return nil
	})
	if e, err := bucket(t, connect()).Get(t.Context(), "x"); err != nil || string(e.Value) != "80" {
		t.Errorf("after 80 increments the record has %q, %v", e.Value, err)
	}
}
