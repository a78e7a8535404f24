package kvtest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
)

// end tests that records with a time to live expire, small and large ones, unless they are
// rewritten.
func end(t *testing.T, connect func() Connection) {
	a, b := bucket(t, connect()), bucket(t, connect())
	ctx := t.Context()
	short, long := a.WithTTL(time.Second), a.WithTTL(time.Hour)
	large := string(pattern(2<<20, 5))
	const written, asked = "written", "asked"
	for _, key := range []string{written, asked} { // each may have expired when it is rewritten
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
			if errors.Is(err, records.ErrNotFound) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is still there (%v)", key, err)
			}
		}
	}
	_, err := a.Update(ctx, "created", []byte("2"), created)
	wantError(t, "update what has ended", err, records.ErrConflict)
	wantError(t, "delete what has ended", a.Delete(ctx, "created", created), records.ErrConflict)
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
	wantError(t, "create what is there", err, records.ErrConflict)
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
	wantError(t, "get what was deleted", err, records.ErrNotFound)
}

// largeIsWhole tests that a value is never a mix of two.
func largeIsWhole(t *testing.T, connect func() Connection) {
	writers := []records.Bucket{bucket(t, connect()), bucket(t, connect())}
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
			over = true // read the last value once more
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
	has := func(delivered []records.Record, value string) bool {
		return slices.ContainsFunc(delivered, func(e records.Record) bool { return string(e.Value) == value })
	}
	before, after := string(pattern(3<<20, 3)), string(pattern(5<<20, 4))
	create(t, a, "x", before)
	w := watching(t, b, "")
	w.until("the large value", func(_ int, delivered []records.Record) bool { return has(delivered, before) })
	w.ready()
	put(t, a, "x", after)
	w.until("the next large value", func(_ int, delivered []records.Record) bool { return has(delivered, after) })
	put(t, a, "x", "small")
	w.sees("x=small")
	w.inOrder()
}
