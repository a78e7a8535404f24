package lazy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// The next use replaces a connection whose session was forgotten, while a call on it is still
// in flight. Close does not wait for that call.
func TestCloseEndsReplacedConnection(t *testing.T) {
	came, goOn := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := wire.Parse(body)
		switch {
		case m.Method == "initialize":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Mcp-Session-Id", "s")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x"}}}`, m.ID)
		case m.Method == "tools/call" && calls.Add(1) == 1:
			close(came)
			<-goOn
		case m.Method == "tools/call":
			w.WriteHeader(http.StatusNotFound)
		case m.Method != "":
			w.WriteHeader(http.StatusAccepted)
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}))
	defer server.Close()
	defer close(goOn)
	set := NewSet(SetOptions{
		Changed: func(*Upstream) {},
		Load: func(ctx context.Context, u *Upstream) (*upstream.Conn, error) {
			conn, err := upstream.Open(u.Server, upstream.ConnOptions{HandshakeOnly: true})
			if err != nil {
				return nil, err
			}
			return conn, conn.Handshake(ctx, nil)
		},
	})
	set.Apply([]schema.Server{{Name: "one", Transport: schema.StreamableHTTP, URL: server.URL}})
	u := set.Get("one")
	first, release := use(t, u)
	failed := make(chan error, 2)
	call := func() {
		first.Start(&upstream.Call{Method: "tools/call", Done: func(_ json.RawMessage, err error) { failed <- err }})
	}
	call()
	<-came
	call()
	if err := <-failed; !errors.Is(err, upstream.ErrSessionLost) {
		t.Fatalf("got %v", err)
	}
	release()
	second, release := use(t, u)
	release()
	select {
	case <-first.Done():
		t.Error("the first connection ended with a call in flight")
	default:
	}
	if second == first {
		t.Error("a connection without a session was used again")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		set.Close()
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("Close waits for the call")
	}
	if err := <-failed; err == nil {
		t.Error("the unanswered call did not fail")
	}
}
