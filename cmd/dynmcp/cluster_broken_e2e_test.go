//go:build e2e

package main_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/natskv"
)

// Damaged records of every kind do not stop calls. They are named, and replicas repair those
// that they can write again.
func TestBrokenRecordsStopNothing(t *testing.T) {
	t.Parallel()
	inACluster(t, brokenRecordsStopNothing)
}

func brokenRecordsStopNothing(c *testCluster) {
	one, idle := fake(c.t, "one"), fake(c.t, "idle").with("description", "A server that is seldom used.")
	a := c.replica("a")
	a.WaitStderr("there is no config in the cluster yet")
	c.push(one, idle)
	a.serving()
	b := c.replica("b").serving()
	first := c.process(useStateless(a.statelessHost(), "one/pid", `{}`))
	c.process(useStateless(b.statelessHost(), "one/pid", `{}`))
	c.state()

	store, err := natskv.Open(natskv.StoreOptions{URLs: []string{c.nats.URL}})
	if err != nil {
		c.t.Fatal(err)
	}
	defer store.Close()
	// Records that nothing here makes are filled with junk.
	damaged := map[string][]string{"state": {"lease/idle"}, "config": nil, "catalog": nil, "tasks": {"one.dGFzaw"}, "logins": {"login/0", "lock/0"}}
	buckets := map[string]records.Bucket{}
	for name := range damaged {
		if buckets[name], err = store.Bucket(c.t.Context(), name); err != nil {
			c.t.Fatal(err)
		}
		list, err := records.List(c.t.Context(), buckets[name], "")
		if err != nil {
			c.t.Fatal(err)
		}
		for key := range list {
			if name == "config" && key != "current" {
				continue // an older version to go on with
			}
			damaged[name] = append(damaged[name], key)
		}
	}

	calling, enough := context.WithCancel(c.t.Context())
	var calls sync.WaitGroup
	for _, r := range []*testReplica{a, b} {
		calls.Go(func() {
			for h := r.statelessHost(); calling.Err() == nil; time.Sleep(5 * time.Millisecond) { // so that the others can run
				if got := c.process(useStateless(h, "one/pid", `{}`)); got != first {
					c.errorf("another process answers: %d, not %d", got, first)
				}
			}
		})
	}
	broken := 0
	for name, keys := range damaged {
		for _, key := range keys {
			for bit := range 3 {
				value := []byte("junk")
				if e, err := buckets[name].Get(c.t.Context(), key); err == nil {
					value = e.Value
					value[(bit+1)*len(value)/4] ^= 1 << bit
				}
				if _, err := buckets[name].Put(c.t.Context(), key, value); err != nil {
					c.t.Fatal(err)
				}
				broken++
			}
		}
	}
	if broken < 3*9 {
		c.errorf("only %d records were broken: %v", broken, damaged)
	}

	// Leases and members are repaired. The others are named until they are written again.
	shown := ""
	mcptest.Eventually(c.t, "leases and members are well", func() bool {
		shown, err = c.verb("--json")
		return err != nil && strings.Contains(shown, `"broken"`) && !strings.Contains(shown, `"state/`)
	})
	for name, keys := range damaged {
		for _, key := range keys {
			if name != "state" && !strings.Contains(shown, fmt.Sprintf("%q", name+"/"+key)) {
				c.errorf("%s/%s is not named: %s", name, key, shown)
			}
		}
	}
	for _, key := range slices.Concat(damaged["state"], []string{"current"}, damaged["catalog"]) {
		if key != "lease/idle" && !strings.Contains(a.Stderr(), key) && !strings.Contains(b.Stderr(), key) {
			c.errorf("no log names %s", key)
		}
	}
	if _, _, health := a.get("/health"); !strings.Contains(health, "degraded") {
		c.errorf("with a broken config: %s", health)
	}
	began := time.Now()
	if m := useStateless(b.statelessHost(), "idle/echo", `{"n":1}`); m.Text() != `{"n":1}` {
		c.errorf("a server whose lease is broken: %s after %v", m.Raw, time.Since(began))
	}
	enough()
	calls.Wait()

	// A replica that starts now goes on from the copy, and a push repairs the record.
	d := c.replica("d").serving()
	if got := c.process(useStateless(d.statelessHost(), "one/pid", `{}`)); got != first {
		c.errorf("at a new replica another process answers: %d, not %d", got, first)
	}
	for name, keys := range damaged {
		for _, key := range keys {
			if name == "tasks" || name == "logins" {
				if err := buckets[name].Delete(c.t.Context(), key, 0); err != nil {
					c.t.Fatal(err)
				}
			}
		}
	}
	c.push(one, idle)
	for _, r := range []*testReplica{a, b, d} {
		mcptest.Eventually(c.t, "the config is well", func() bool { _, _, health := r.get("/health"); return strings.Contains(health, `"ok"`) })
	}
	if n := one.Count("start"); n != 1 {
		c.errorf("the server was started %d times", n)
	}
}

func (r *testReplica) get(path string) (status int, header map[string][]string, text string) {
	r.t.Helper()
	h := &webHost{t: r.t, url: r.url}
	return h.send("GET", path, "")
}
