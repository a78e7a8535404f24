//go:build e2e

package natskv

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dynmcp/dynmcp/internal/mcptest/natstest"
	"github.com/dynmcp/dynmcp/internal/records"
)

// startCluster starts nodes that know each other, and returns them by their names.
func startCluster(t *testing.T) map[string]*natstest.Server {
	t.Helper()
	var routes [nodes]*proxy // to the nodes, whose ports are unknown until they run
	for i := range routes {
		routes[i] = newProxy(t)
		t.Cleanup(routes[i].end)
	}
	all := map[string]*natstest.Server{}
	for i, route := range routes {
		var others []string
		for _, other := range routes {
			if other != route { // one to itself would count as another node
				others = append(others, fmt.Sprintf("%q", "nats://"+other.listener.Addr().String()))
			}
		}
		name := fmt.Sprint("n", i)
		all[name] = natstest.Start(t, fmt.Sprintf("server_name: %s\ncluster { name: c, listen: \"127.0.0.1:-1\", routes: [%s] }\n", name, strings.Join(others, ", ")))
		route.forwardTo(strings.TrimPrefix(all[name].Routes, "nats://"))
	}
	return all
}

// A bucket that was created on one node is moved to three when they are available, and then
// survives the loss of its leader.
func TestAcknowledgedOutlivesTheLeader(t *testing.T) {
	all := startCluster(t)
	var urls []string
	for _, node := range all {
		urls = append(urls, node.URL)
	}
	s, err := Open(StoreOptions{URLs: urls, retry: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	few := &bucket{name: "dynmcp_state"}
	eventually(t, "a bucket on one node", func() error {
		_, err := s.js.CreateStream(t.Context(), few.config(1))
		return err
	})
	b := open(t, s)
	eventually(t, "the bucket on three nodes", func() error {
		info, err := b.stream.Info(t.Context())
		if err == nil && (len(info.Cluster.Replicas) != nodes-1 || slices.ContainsFunc(info.Cluster.Replicas, func(r *jetstream.PeerInfo) bool { return !r.Current })) {
			err = fmt.Errorf("it is on %d nodes, or they do not have all of it: %+v", info.Config.Replicas, info.Cluster)
		}
		return err
	})

	watched := make(chan records.Record, 1000)
	ended := make(chan error, 1)
	go func() { ended <- b.Watch(t.Context(), "", func(e records.Record) { watched <- e }, nil) }()

	acknowledged := map[string]string{}
	write := func(from, to int) {
		for i := from; i < to; i++ {
			key, value := fmt.Sprint("k", i), strings.Repeat(fmt.Sprint(i, " "), 200)
			eventually(t, "create "+key, func() error {
				_, err := b.Create(t.Context(), key, []byte(value))
				if errors.Is(err, records.ErrConflict) {
					return nil // an answer was lost
				}
				return err
			})
			acknowledged[key] = value
		}
	}
	write(0, 50)
	large := strings.Repeat("large ", 500_000)
	eventually(t, "put", func() error { _, err := b.Put(t.Context(), "large", []byte(large)); return err })
	acknowledged["large"] = large

	// A list has every acknowledged record, whichever node answers.
	for i := range 20 {
		value := fmt.Sprint(i)
		eventually(t, "put", func() error { _, err := b.Put(t.Context(), "last", []byte(value)); return err })
		list, err := records.List(t.Context(), b, "")
		if got := string(list["last"].Value); err != nil || got != value {
			t.Fatalf("after %s was acknowledged a list has %q (%v)", value, got, err)
		}
		acknowledged["last"] = value
	}

	info, err := b.stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leader := all[info.Cluster.Leader]
	if leader == nil {
		t.Fatalf("no node is the leader %q", info.Cluster.Leader)
	}
	leader.Stop()
	write(50, 100)
	for key, value := range acknowledged {
		eventually(t, "get "+key, func() error {
			e, err := b.Get(t.Context(), key)
			if errors.Is(err, records.ErrNotFound) {
				t.Fatalf("%s was acknowledged, and is gone", key)
			}
			if err == nil && string(e.Value) != value {
				t.Fatalf("%s has another value than was acknowledged", key)
			}
			return err
		})
	}
	// The watch continued in order and missed nothing.
	deadline := time.After(patience)
	missing := maps.Clone(acknowledged)
	for last := uint64(0); len(missing) > 0; {
		select {
		case e := <-watched:
			is := string(e.Value) == acknowledged[e.Key]
			if e.Revision <= last || !is && e.Key != "last" {
				t.Fatalf("%s at %d was delivered after %d", e.Key, e.Revision, last)
			}
			last = e.Revision
			if is {
				delete(missing, e.Key)
			}
		case err := <-ended:
			t.Fatalf("the watch ended: %v", err)
		case <-deadline:
			t.Fatalf("%d records were not delivered", len(missing))
		}
	}
}
