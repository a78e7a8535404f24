//go:build e2e

package members

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/mcptest/natstest"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/natskv"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// On NATS, all replicas take all leases at once, and again after one of them is killed.
func TestLeasesOnNATS(t *testing.T) {
	node := natstest.Start(t, "")
	var all []*Replica
	for i := range 3 {
		store, err := natskv.Open(natskv.StoreOptions{URLs: []string{node.URL}})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		address := fmt.Sprint("r", i, ":1")
		r, err := Join(t.Context(), ReplicaOptions{Store: store, Name: fmt.Sprint("r", i), Address: address, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		all = append(all, r)
	}
	const servers = 20
	first := takeAll(t, all, "", servers)
	var survivors []*Replica
	for i, r := range all {
		if i == 0 {
			r.stop() // as if it were killed
		} else {
			survivors = append(survivors, r)
		}
	}
	for name, taken := range takeAll(t, survivors, all[0].ID(), servers) {
		before := first[name]
		if before.r == all[0] && taken.lease.Revision() <= before.lease.Revision() {
			t.Errorf("%s: revision %d after %d", name, taken.lease.Revision(), before.lease.Revision())
		}
		if before.r != all[0] && before.runs() && taken.r != before.r {
			t.Errorf("%s was taken from a replica that lives", name)
		}
	}
}

type taken struct {
	r     *Replica
	lease *Lease
}

// runs reports whether the lease is still held. A slow machine may have lost it.
func (t taken) runs() bool { return !isClosed(t.lease.Lost()) && t.r.Valid() }

// takeAll makes each replica take each name, after dead has expired, and returns the last holder
// of each. It checks that a name has one holder at a time.
func takeAll(t *testing.T, replicas []*Replica, dead string, names int) map[string]taken {
	t.Helper()
	got := map[string]taken{}
	var mu sync.Mutex
	var taking sync.WaitGroup
	for i := range names {
		for _, r := range replicas {
			taking.Go(func() {
				name := fmt.Sprint("server ", i)
				l, err := r.Take(t.Context(), name)
				held, ok := errors.AsType[*HeldError](err)
				for ; ok && held.Member.ID == dead || errors.Is(err, records.ErrUnavailable); held, ok = errors.AsType[*HeldError](err) {
					time.Sleep(tick)
					l, err = r.Take(t.Context(), name)
				}
				if ok {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
				go func() { // as a real holder does
					select {
					case <-l.Lost():
						l.Release()
					case <-t.Context().Done():
					}
				}()
				mu.Lock()
				defer mu.Unlock()
				if other, ok := got[name]; ok && other.runs() && (taken{r, l}).runs() {
					t.Errorf("%s was taken by %s and %s", name, other.r.options.Name, r.options.Name)
				}
				got[name] = taken{r, l}
			})
		}
	}
	taking.Wait()
	for i := range names {
		if name := fmt.Sprint("server ", i); got[name].r == nil {
			t.Errorf("nobody has %s", name)
		}
	}
	return got
}
