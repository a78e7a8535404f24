package upstream

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// As many connections are kept as there were concurrent calls.
func TestHTTPConnectionsAreKept(t *testing.T) {
	t.Parallel()
	const atOnce = 150
	var made atomic.Int32
	var used sync.Map // remote addresses
	var mu sync.Mutex
	waiting, all := 0, make(chan struct{})
	s := &scripted{call: func(w http.ResponseWriter, r *http.Request, id string) {
		if _, again := used.LoadOrStore(r.RemoteAddr, true); !again {
			made.Add(1)
		}
		mu.Lock() // the calls of a batch are answered together
		wait := all
		if waiting++; waiting == atOnce {
			close(all)
			waiting, all = 0, make(chan struct{})
		}
		mu.Unlock()
		<-wait
		fine(w, id)
	}}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
	batch := func() (connections int32) {
		before := made.Load()
		var calls sync.WaitGroup
		for range atOnce {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := c.Call(ctx, "tools/call", json.RawMessage(`{}`)); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		return made.Load() - before
	}
	// A connection becomes idle a moment after its answer has arrived.
	for end := time.Now().Add(30 * time.Second); batch() > 0 && !t.Failed(); {
		if time.Now().After(end) {
			t.Fatal("every batch of calls makes new connections")
		}
	}
}
