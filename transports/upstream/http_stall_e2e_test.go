//go:build e2e

package upstream

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A handshake or a list that stalls fails before the load timeout.
func TestHTTPStallsInStart(t *testing.T) {
	t.Parallel()
	for _, test := range stalls {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var stuck atomic.Value
			stuck.Store("initialize")
			s := &scripted{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if m, _ := wire.Parse(body); m.Method == stuck.Load() {
					test.answer(t, w, r, string(m.ID))
					return
				}
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				s.ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			entry := schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: server.URL}
			_, err := tryDial(t, entry, hurried)
			wantStalled(t, err, transports.NotSent)
			stuck.Store("tools/list")
			c := dial(t, entry, hurried)
			_, err = c.List(t.Context(), "tools/list", "tools")
			wantStalled(t, err, transports.Unknown)
		})
	}
}

// The GET stream is reopened if it stalls.
func TestHTTPListenStalls(t *testing.T) {
	t.Parallel()
	for _, test := range stalls {
		if strings.Contains(test.name, "JSON") {
			continue // not a stream
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var opened atomic.Int32
			s := &scripted{get: func(w http.ResponseWriter, r *http.Request) {
				if opened.Add(1) == 1 {
					test.answer(t, w, r, "1")
					return
				}
				events(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
				<-r.Context().Done()
			}}
			peer := &recorder{}
			opts := hurried
			opts.Peer = peer
			c := dial(t, script(t, s), opts)
			if peer.waitFor(t, "notifications/x", 1); c.Err() != nil {
				t.Error(c.Err())
			}
		})
	}
}

func TestSSEStallsInStart(t *testing.T) {
	t.Parallel()
	for _, test := range stalls {
		if strings.Contains(test.name, "JSON") {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { test.answer(t, w, r, "1") }))
			t.Cleanup(server.Close)
			_, err := tryDial(t, schema.Server{Name: "up", Transport: schema.SSE, URL: server.URL}, hurried)
			var f *transports.Failure // of another code if the stream ended after its header
			if !errors.As(err, &f) || !errors.Is(f, errStalled) || f.Outcome != transports.NotSent {
				t.Errorf("got %v, want %v", err, errStalled)
			}
		})
	}
}
