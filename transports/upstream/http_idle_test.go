package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// As many connections are kept as there were concurrent calls.
func TestHTTPConnectionsAreKept(t *testing.T) {
	t.Parallel()
	const atOnce = 150
	var made atomic.Int32
	var mu sync.Mutex
	waiting, all := 0, make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := wire.Parse(body)
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		case m.Method == "tools/call": // the calls of a batch are answered together
			mu.Lock()
			if waiting++; waiting == atOnce {
				close(all)
				waiting, all = 0, make(chan struct{})
				mu.Unlock()
				break
			}
			wait := all
			mu.Unlock()
			<-wait
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`, m.ID)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := dial(t, schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: server.URL}, Options{})
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
