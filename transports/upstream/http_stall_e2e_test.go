//go:build e2e

package upstream

import (
	"errors"
	"fmt"
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
			_, err = c.List(t.Context(), "tools/list", "tools", nil)
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

// An upstream may be silent before the header of an answer and between events. The failure of
// another call, which stalls, shows that the time is over.
func TestHTTPMayBeSilent(t *testing.T) {
	t.Parallel()
	for _, begins := range []string{
		"", "HTTP/1.1 103 Early Hints\r\n\r\n", "HEADER", "HEADER: ping", "HEADER: ping\n", "HEADERretry: 10\n", "HEADERid: 1\n\n",
		"HEADERdata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n", "HEADERdata: {}\r\n\r\n", "HEADERdata: {}\r\r", "HEADERdata: {}\r\n\r",
	} {
		t.Run(begins, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			stalled := make(chan struct{})
			s := &scripted{call: func(w http.ResponseWriter, r *http.Request, id string) {
				if calls.Add(1) == 2 {
					partly(w, r, "{")
					return
				}
				const header = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
				conn := hijacked(t, w)
				defer conn.Close()
				_, _ = io.WriteString(conn, strings.Replace(begins, "HEADER", header, 1))
				<-stalled
				if !strings.HasPrefix(begins, "HEADER") {
					_, _ = io.WriteString(conn, header)
				}
				_, _ = fmt.Fprintf(conn, "\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", id)
			}}
			c := dial(t, script(t, s), hurried)
			answered := start(c, toolCall(`{}`))
			s.wait(t, "POST tools/call")
			_, err := tool(t, c, "x", "{}")
			wantStalled(t, err, transports.Unknown)
			close(stalled)
			if err := <-answered; err != nil {
				t.Errorf("got %v, want the answer", err)
			}
		})
	}
}
