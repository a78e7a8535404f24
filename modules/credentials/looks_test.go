package credentials_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
)

// looks are when a bucket was read.
type looks struct {
	records.Bucket
	mu *sync.Mutex
	at *[]time.Time
}

func (l looks) WithTTL(life time.Duration) records.Bucket {
	return looks{l.Bucket.WithTTL(life), l.mu, l.at}
}

func (l looks) Get(ctx context.Context, key string) (records.Record, error) {
	l.mu.Lock()
	*l.at = append(*l.at, time.Now())
	l.mu.Unlock()
	return l.Bucket.Get(ctx, key)
}

// However many connections were opened with the values of a user, one look at a time tells that they
// have changed: all of them then have the new ones.
func TestOneLookForAllConnectionsOfAUser(t *testing.T) {
	entry := `"isolation": "principal", "headers": {"Authorization": "none", "X-Key": "${user:KEY}"}`
	w := newWorldOf(t, time.Hour, `"startup_wait": "20s"`, entry, entry, entry, entry, entry)
	var mu sync.Mutex
	var at []time.Time
	w.watched = func(b records.Bucket) records.Bucket { return looks{b, &mu, &at} }
	w.replicas[0].Load().close()
	w.start(0)
	w.setKey("ann", "0")
	ann := w.reader("ann")
	call := func() (as string) {
		for _, s := range w.services {
			if m := answered.FindStringSubmatch(ann.call(t.Context(), 0, s)); m != nil {
				as += m[1] + " "
			}
		}
		return as
	}
	if got, want := call(), strings.Repeat("ann ", 5); got != want {
		t.Fatalf("called as %q, want %q", got, want)
	}
	mu.Lock()
	begin := len(at)
	mu.Unlock()
	eventually(t, "nobody looks", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(at) >= begin+3
	})
	mu.Lock()
	for i, next := range at[begin+1 : begin+3] {
		if gap := next.Sub(at[begin+i]); gap < 2*time.Second {
			t.Errorf("a look came %v after another", gap)
		}
	}
	mu.Unlock()
	if _, err := w.store.SetValue(t.Context(), w.principal("ann"), "KEY", "key-bob/1"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a server has the old value", func() bool { return call() == strings.Repeat("bob ", 5) })
}
