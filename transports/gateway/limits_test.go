package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/transports/host"
)

func TestLargeMessagesAreDenied(t *testing.T) {
	t.Parallel()
	large := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 4<<10) + `"}]}`)
	tg := newTestGateway(t, GatewayOptions{MaxResponseBytes: 2 << 10}, func(r *host.Request) { r.Reply(large, nil) })
	id := tg.begin("/mcp")
	if a := tg.do("POST", "/mcp", call(1, strings.Repeat("x", 2<<20)), "Mcp-Session-Id", id); a.status != 413 || !strings.Contains(a.body, "max_request_bytes") {
		t.Errorf("a large request: %d %.300s", a.status, a.body)
	}
	if a := tg.do("POST", "/mcp", call(2, "x"), "Mcp-Session-Id", id); a.status != 500 || !strings.Contains(a.body, `"id":2,"error"`) || !strings.Contains(a.body, "max_response_bytes") {
		t.Errorf("a large answer: %d %.300s", a.status, a.body)
	}
	if a := tg.do("POST", "/mcp", `{"jsonrpc":"2.0","id":3,"method":"ping"}`, "Mcp-Session-Id", id); a.status != 200 {
		t.Errorf("after that: %+v", a)
	}
}

func TestEventStreamsAreLimitedByServer(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{MaxConnections: 2}, nil)
	var open []*http.Response
	for range 2 {
		resp := tg.open("GET", "/mcp/git", "", "Accept", "text/event-stream")
		defer resp.Body.Close()
		newEventReader(t, resp.Body).want("/mcp/git/message?sessionId=")
		open = append(open, resp)
	}
	if a := tg.do("GET", "/mcp/git", "", "Accept", "text/event-stream"); a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("above the limit: got %+v", a)
	}
	id := tg.begin("/mcp") // another namespace has its own limit
	resp := tg.open("GET", "/mcp", "", "Mcp-Session-Id", id, "Accept", "text/event-stream")
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("on another path: %s", resp.Status)
	}
	open[0].Body.Close()
	mcptest.Soon(t, "a closed stream frees its place", func() bool {
		resp := tg.open("GET", "/mcp/git", "", "Accept", "text/event-stream")
		defer resp.Body.Close()
		return resp.StatusCode == 200
	})
}

// A connection is closed if its request does not arrive in time.
func TestSlowRequests(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, nil, func(g *Gateway) { g.headerTimeout, g.bodyTimeout = time.Second, time.Second })
	var requests sync.WaitGroup
	for what, text := range map[string]string{
		"a header without an end":    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: 1\r\n",
		"a header that is too large": "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Large: " + strings.Repeat("x", 2*maxHeader),
		"a body without an end":      "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json\r\nContent-Length: 100\r\n\r\n{",
		"a body that nobody reads":   "POST /mcp HTTP/1.1\r\nHost: elsewhere.example\r\nContent-Length: 100\r\n\r\n{",
	} {
		requests.Go(func() {
			got := tg.raw(text) // returns when the connection is closed
			if strings.HasPrefix(got, "HTTP/1.1 2") {
				t.Errorf("%s: got %s", what, got)
			}
		})
	}
	requests.Go(func() { // no memory is allocated for a large Content-Length
		got := tg.raw(fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
			int64(1)<<50, call(1, strings.Repeat("x", tg.g.opts.MaxRequestBytes))))
		if !strings.HasPrefix(got, "HTTP/1.1 413 ") || !strings.Contains(got, "max_request_bytes") {
			t.Errorf("a large Content-Length: got %q", got)
		}
	})
	requests.Wait()
	mcptest.Soon(t, "others are answered", func() bool { // a request that is slow itself is repeated
		resp, err := tg.client.Get(tg.url + "/health")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// A host reads the answer to a request that is too large, also if it sends all of it first, with a
// length or in chunks.
func TestAnswersToLargeRequestsAreRead(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{MaxRequestBytes: 1 << 20, OpenTree: func(Edge, string) (*host.Session, func(context.Context)) {
		panic("it was served")
	}}, nil)
	body := call(1, strings.Repeat("x", 20<<20))
	for name, head := range map[string]string{
		"length": fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)),
		"chunks": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(body)),
	} {
		end := map[string]string{"chunks": "\r\n0\r\n\r\n"}[name]
		for _, path := range []string{"/mcp", "/meta_call"} {
			got := tg.raw("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n" + head + body + end) // fails if sending does
			if !strings.HasPrefix(got, "HTTP/1.1 413 ") || !strings.Contains(got, "max_request_bytes") {
				t.Errorf("%s to %s: got %.200q", name, path, got)
			}
		}
	}
}

func TestAbandonedSessionsAreReclaimed(t *testing.T) {
	t.Parallel()
	count := 2_000
	if mcptest.RaceEnabled {
		count = 1_000
	}
	tg := newTestGateway(t, GatewayOptions{SessionIdle: time.Hour}, nil)
	var begun atomic.Int64
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for begun.Add(1) <= int64(count) {
				if a := tg.do("POST", "/mcp", initialize); a.status != 200 {
					t.Errorf("got %+v", a)
					return
				}
			}
		})
	}
	work.Wait()
	if got := len(tg.g.sessions.all()); got != count {
		t.Fatalf("there are %d sessions", got)
	}
	kept := tg.begin("/mcp")
	resp := tg.open("GET", "/mcp", "", "Mcp-Session-Id", kept, "Accept", "text/event-stream")
	defer resp.Body.Close()
	tg.endIdle(time.Now().Add(2 * time.Hour)) // what the ticker does
	if got := len(tg.g.sessions.all()); got != 1 {
		t.Errorf("%d sessions are left, want the one in use", got)
	}
	if open, closed := tg.opened.Load(), tg.closed.Load(); open-closed != 1 {
		t.Errorf("%d sessions were opened, %d ended", open, closed)
	}
	if a := tg.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", kept); a.status != 200 {
		t.Errorf("the session in use: %+v", a)
	}
}

func TestAnIdleSessionEndsByItself(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{SessionIdle: 50 * time.Millisecond}, nil)
	if a := tg.do("POST", "/mcp", initialize); a.status != 200 {
		t.Fatalf("got %+v", a)
	}
	mcptest.Soon(t, "the session ends", func() bool { return len(tg.g.sessions.all()) == 0 })
}

// A session with a call in flight is not idle, even if its host has lost the connection,
// because the host may still fetch the answer.
func TestASessionIsNotIdleWhileACallRuns(t *testing.T) {
	t.Parallel()
	calls := make(chan *host.Request, 1)
	tg := newTestGateway(t, GatewayOptions{SessionIdle: time.Hour}, func(r *host.Request) { calls <- r })
	id := tg.begin("/mcp")
	ctx, lose := context.WithCancel(t.Context())
	lost := make(chan error, 1)
	go func() {
		r := tg.request(ctx, "POST", "/mcp", call(1, "x"))
		r.Header.Set("Mcp-Session-Id", id)
		_, err := tg.client.Do(r)
		lost <- err
	}()
	running := <-calls
	lose()
	if err := <-lost; err == nil {
		t.Fatal("the request was answered")
	}
	s := tg.g.sessions.all()[0]
	mcptest.Soon(t, "the session has no HTTP request", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.users == 0
	})
	tg.endIdle(time.Now().Add(2 * time.Hour))
	if a := tg.do("POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", id); a.status != 200 {
		t.Errorf("while the call runs: %+v", a)
	}
	running.Reply(json.RawMessage(`{"content":[]}`), nil)
	tg.endIdle(time.Now())
	if got := len(tg.g.sessions.all()); got != 1 {
		t.Errorf("the session ended with the call")
	}
	tg.endIdle(time.Now().Add(2 * time.Hour))
	if got := len(tg.g.sessions.all()); got != 0 {
		t.Errorf("%d sessions are left", got)
	}
}

// At the shutdown, requests in progress are finished and streams are closed.
func TestDrain(t *testing.T) {
	t.Parallel()
	calls := make(chan *host.Request, 100)
	tg := newTestGateway(t, GatewayOptions{}, func(r *host.Request) { calls <- r })
	id := tg.begin("/mcp")
	const n = 50
	answers := make(chan answer, n)
	for i := range n {
		go func() { answers <- tg.do("POST", "/mcp", call(i+1, "x"), "Mcp-Session-Id", id) }()
	}
	stream := tg.open("GET", "/mcp", "", "Mcp-Session-Id", id, "Accept", "text/event-stream")
	defer stream.Body.Close()
	var running []*host.Request
	for range n {
		running = append(running, <-calls)
	}
	tg.stop()
	<-tg.g.ending
	for _, r := range running {
		r.Reply(json.RawMessage(`{"content":[]}`), nil)
	}
	for range n {
		if a := <-answers; a.status != 200 || !strings.Contains(a.body, `"result"`) {
			t.Errorf("got %+v", a)
		}
	}
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Errorf("the stream does not end regularly: %v", err)
	}
	select {
	case <-tg.ended:
	case <-time.After(patience):
		t.Fatal("Serve does not return")
	}
}

// A request that exceeds the drain timeout is answered with an error, with or without a session.
func TestDrainAnswersWhatTakesTooLong(t *testing.T) {
	t.Parallel()
	calls := make(chan *host.Request, 2)
	tg := newTestGateway(t, GatewayOptions{}, func(r *host.Request) { calls <- r })
	tg.g.drainTimeout = 10 * time.Millisecond
	id := tg.begin("/mcp")
	got := make(chan answer, 2)
	go func() { got <- tg.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id) }()
	go func() { got <- tg.do("POST", "/mcp/git/message", call(1, "x")) }()
	<-calls
	<-calls
	tg.stop()
	for range 2 {
		if a := <-got; !strings.Contains(a.body, "shutting down") || !strings.Contains(a.body, `"id":1`) {
			t.Errorf("got %+v", a)
		}
	}
}

// A host that does not read delays nobody: it loses messages, and finally its session.
func TestAHostThatDoesNotRead(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{MaxResponseBytes: 1 << 20}, nil)
	conn := tg.dial("GET /mcp/git HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
	head := make([]byte, 4<<10)
	for n := 0; !bytes.Contains(head[:n], []byte("sessionId=")) || !bytes.Contains(head[:n], []byte("ping")); {
		read, err := conn.Read(head[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += read
	}
	_, id, _ := strings.Cut(string(head), "sessionId=")
	id, _, _ = strings.Cut(id, "\n")
	if a := tg.do("POST", "/mcp/git/message?sessionId="+id, initialize); a.status != 202 {
		t.Fatalf("got %+v", a)
	}
	slow := <-tg.sessions
	id = tg.begin("/mcp")
	progress := json.RawMessage(`{"progressToken":1,"progress":1,"message":"` + strings.Repeat("x", 64<<10) + `"}`)
	for range 200 { // 12 MB for a host that reads none of it
		slow.Notify("notifications/progress", progress)
	}
	if got := len(tg.g.sessions.all()); got != 2 {
		t.Errorf("progress alone ended a session: %d are left", got)
	}
	answers := make(chan answer, 20)
	for i := range 20 {
		go func() { answers <- tg.do("POST", "/mcp", call(i+1, "x"), "Mcp-Session-Id", id) }()
	}
	for range 20 {
		if a := <-answers; a.status != 200 {
			t.Errorf("another host: %+v", a)
		}
	}
	essential := json.RawMessage(fmt.Sprintf(`{"requestId":1,"reason":%q}`, strings.Repeat("x", 512<<10)))
	mcptest.Soon(t, "its session ends", func() bool {
		slow.Notify("notifications/cancelled", essential)
		return len(tg.g.sessions.all()) == 1
	})
}
