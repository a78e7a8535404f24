package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// Queued events are sent at once, with consecutive ids. In versions with an initial event, that
// event has the id before them.
func TestEventsThatWaited(t *testing.T) {
	tg := newTestGateway(t, GatewayOptions{}, nil)
	for version, primed := range map[string]bool{"2025-06-18": false, "2025-11-25": true} {
		id := tg.begin("/mcp")
		s := <-tg.sessions
		for n := range 3 {
			s.Notify("notifications/cancelled", json.RawMessage(fmt.Sprintf(`{"requestId":%d}`, n)))
		}
		resp := tg.open("GET", "/mcp", "", "Mcp-Session-Id", id, "Accept", "text/event-stream", "MCP-Protocol-Version", version)
		defer resp.Body.Close()
		events := newEventReader(t, resp.Body)
		if primed {
			if ev, _ := events.next(); ev.id != "0-0" || ev.data != "" {
				t.Errorf("%s: the first event is %+v", version, ev)
			}
		}
		for n := range 3 {
			if ev := events.want(fmt.Sprintf(`{"requestId":%d}`, n)); ev.id != fmt.Sprint("0-", n+1) {
				t.Errorf("%s: event %d has the id %s", version, n, ev.id)
			}
		}
		for last := range 2 { // the host resumes the stream
			again := tg.open("GET", "/mcp", "", "Mcp-Session-Id", id, "Accept", "text/event-stream", "Last-Event-ID", fmt.Sprint("0-", last))
			defer again.Body.Close()
			newEventReader(t, again.Body).want(fmt.Sprintf(`{"requestId":%d}`, last))
		}
	}
}

// While nobody reads the standalone stream of a session, its newest events are kept.
func TestTheNewestEventsAreKept(t *testing.T) {
	const size, count = 64 << 10, 40
	tg := newTestGateway(t, GatewayOptions{MaxResponseBytes: 4 << 20}, nil)
	id := tg.begin("/mcp")
	s := <-tg.sessions
	for n := range count {
		s.Notify("notifications/cancelled", json.RawMessage(fmt.Sprintf(`{"requestId":%d,"reason":%q}`, n, strings.Repeat("x", size))))
	}
	resp := tg.open("GET", "/mcp", "", "Mcp-Session-Id", id, "Accept", "text/event-stream")
	defer resp.Body.Close()
	events := newEventReader(t, resp.Body)
	first, _ := events.next()
	if n := string(wire.Get([]byte(first.data), "params", "requestId")); n != fmt.Sprint(count-maxReplay/(size+100)) {
		t.Errorf("the first kept event is %s of %d", n, count)
	}
}

// In the stateless era, the HTTP status of an error depends on its code.
func TestStatusesByCode(t *testing.T) {
	codes := map[int64]int{
		wire.CodeInvalidParams: 400, wire.CodeInvalidRequest: 400, wire.CodeMethodNotFound: 404, wire.CodeInternal: 200, wire.CodeParse: 200, -32000: 200,
		-32019: 200, -32020: 400, -32021: 400, -32022: 400, -32023: 200, transports.CodeExited: 200,
	}
	var answer atomic.Int64
	tg := newTestGateway(t, GatewayOptions{}, func(r *host.Request) { r.Reply(nil, &wire.Error{Code: answer.Load(), Message: "no"}) })
	body, headers := modern(1, "tools/call", `"name":"x",`)
	for code, status := range codes {
		answer.Store(code)
		if a := tg.do("POST", "/mcp", body, headers...); a.status != status || !strings.Contains(a.body, fmt.Sprintf(`"code":%d`, code)) {
			t.Errorf("code %d: got %+v, want %d", code, a, status)
		}
	}
}

// The status of an error does not depend on the length of the id.
func TestStatusWithALongID(t *testing.T) {
	tg := newTestGateway(t, GatewayOptions{}, func(r *host.Request) { r.Reply(nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: "no"}) })
	id := strings.Repeat("x", 600)
	body, headers := modern(1, "no/such", "")
	if a := tg.do("POST", "/mcp", strings.Replace(body, `"id":1`, fmt.Sprintf(`"id":%q`, id), 1), headers...); a.status != 404 {
		t.Errorf("got %d %.300s", a.status, a.body)
	}
}

// The body of a message determines its era, even if headers are missing. On the route for
// messages, a message needs neither headers nor a handshake.
func TestTheEraOfAMessage(t *testing.T) {
	eras := make(chan transports.Era, 1)
	tg := newTestGateway(t, GatewayOptions{}, func(r *host.Request) {
		eras <- r.Era
		r.Reply(json.RawMessage(`{"content":[]}`), nil)
	})
	body, _ := modern(1, "tools/call", `"name":"x",`)
	if a := tg.do("POST", "/mcp", body); a.status != 400 || !strings.Contains(a.body, "MCP-Protocol-Version is missing") {
		t.Errorf("without headers: got %+v", a)
	}
	for line, want := range map[string]transports.Era{body: transports.Stateless, call(1, "x"): transports.Handshake} {
		if a := tg.do("POST", "/mcp/git/message", line); a.status != 202 || !strings.Contains(a.body, `"id":1,"result"`) {
			t.Fatalf("got %+v", a)
		}
		if got := <-eras; got != want {
			t.Errorf("%s: got era %d, want %d", line, got, want)
		}
	}
}

// An initialize without a session may omit members; the present ones are used.
func TestAHandshakeIsCompleted(t *testing.T) {
	tg := newTestGateway(t, GatewayOptions{}, nil)
	for params, want := range map[string]string{``: "2025-03-26", `,"params":{}`: "2025-03-26", `,"params":{"protocolVersion":"2024-11-05"}`: "2024-11-05"} {
		a := tg.do("POST", "/mcp/git/message", `{"jsonrpc":"2.0","id":1,"method":"initialize"`+params+`}`)
		if a.status != 202 || !strings.Contains(a.body, `"protocolVersion":"`+want+`"`) {
			t.Errorf("%s: got %+v", params, a)
		}
	}
}

// The result of a failed tool of the tree is returned unchanged. A path that is no tool is denied.
func TestAToolOfTheTreeFails(t *testing.T) {
	tg := newTestGateway(t, GatewayOptions{TreeKind: func(_, path string) string { return strings.TrimPrefix(path, "/a-") }}, func(r *host.Request) {
		r.Reply(json.RawMessage(`{"content":[{"type":"text","text":"no"}],"isError":true}`), nil)
	})
	tg.g.opts.OpenTree = func(edge Edge, principal string) (*host.Session, func(context.Context)) {
		return tg.g.opts.Open(edge, principal, "", false)
	}
	for _, row := range []struct {
		tool, path string
		status     int
	}{
		{"meta_call", "/a-tool", 200}, {"meta_call", "/a-node", 400}, {"meta_call", "", 404},
		{"meta_tree", "/a-node", 400}, {"meta_tree", "/a-tool", 400}, {"meta_tree", "", 404},
	} {
		a := tg.do("POST", "/"+row.tool, fmt.Sprintf(`{"path":%q}`, row.path))
		if a.status != row.status || (row.status == 200) != strings.Contains(a.body, `"isError":true`) {
			t.Errorf("%s of %q: got %+v, want %d", row.tool, row.path, a, row.status)
		}
	}
}

// A gateway without trees has no API of one.
func TestNoTree(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, nil)
	for _, path := range []string{"/meta_tree", "/meta_desc", "/meta_call"} {
		resp, err := tg.client.Post(tg.url+path, "application/json", strings.NewReader(`{"path":"/"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got the status %d", path, resp.StatusCode)
		}
	}
}

// A panic in the end of a session is logged, and affects no other session.
func TestASessionWhoseEndPanics(t *testing.T) {
	var log lockedBuffer
	tg := newTestGateway(t, GatewayOptions{SessionIdle: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))}, nil)
	tg.endFirst(func(end func()) {
		end()
		panic("as asked")
	})
	tg.begin("/mcp")
	tg.begin("/mcp")
	tg.endIdle(time.Now().Add(2 * time.Hour))
	if tg.closed.Load() != 2 || strings.Count(log.String(), "as asked") != 1 || strings.Count(log.String(), "level=ERROR") != 1 {
		t.Errorf("%d sessions ended, the log is %s", tg.closed.Load(), log.String())
	}
	mcptest.Soon(t, "both sessions are gone", func() bool { return len(tg.g.sessions.all()) == 0 })
}

// slow is called if the host leaves the response unread, and not if the host is gone.
func TestASlowResponse(t *testing.T) {
	for _, err := range []error{nil, io.ErrClosedPipe, fmt.Errorf("write: %w", os.ErrDeadlineExceeded)} {
		slow := 0
		for _, e := range []*response{{}, {slow: func() { slow++ }}} {
			if got := e.failed(err); !errors.Is(got, err) {
				t.Errorf("got %v, want %v", got, err)
			}
		}
		if (slow == 1) != errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v: slow was called %d times", err, slow)
		}
	}
}
