package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/transports/host"
)

// endIdle does what the ticker does, and waits for it.
func (tg *testGateway) endIdle(now time.Time) {
	r := &reaper{g: tg.g, busy: make(chan struct{}, endsAtOnce)}
	r.endIdle(now)
	r.work.Wait()
}

// A user who opens sessions up to the limit keeps nobody out. Sessions without a call end
// first, then the longest unused sessions of the user with the most.
func TestOneUserCannotTakeAllSessions(t *testing.T) {
	t.Parallel()
	const most = 16
	of := newIssuer(t)
	tg := newTestGateway(t, GatewayOptions{OAuth: &OAuth{Issuers: []string{of.url}, Audience: "tests"}}, nil)
	tg.g.sessions.most = most
	greedy, other := of.bearer("greedy"), of.bearer("other")
	begin := func(auth string) string {
		t.Helper()
		a := tg.do("POST", "/mcp", initialize, "Authorization", auth)
		if a.status != 200 {
			t.Fatalf("initialize: %+v", a)
		}
		return a.header.Get("Mcp-Session-Id")
	}
	lives := func(id, auth string) bool {
		t.Helper()
		switch a := tg.do("POST", "/mcp", call(1, "x"), "Authorization", auth, "Mcp-Session-Id", id); a.status {
		case 200:
			return true
		case 404:
			return false
		default:
			t.Fatalf("got %+v", a)
			return false
		}
	}
	kept := begin(greedy)
	if !lives(kept, greedy) {
		t.Fatal("a session has ended early")
	}
	mine := begin(other)
	for range 3 * most {
		begin(greedy)
	}
	if len(tg.g.sessions.all()) != most {
		t.Errorf("there are %d sessions", len(tg.g.sessions.all()))
	}
	if !lives(mine, other) {
		t.Error("the session of another user ended")
	}
	if !lives(kept, greedy) {
		t.Error("a session with a call ended before those without one")
	}
	for range most/2 - 1 { // until both have half
		mine = begin(other)
	}
	if !lives(kept, greedy) || !lives(mine, other) {
		t.Error("a session with a call ended")
	}
	counts := func() map[string]int {
		tg.g.sessions.mu.Lock()
		defer tg.g.sessions.mu.Unlock()
		all := map[string]int{}
		for account, of := range tg.g.sessions.of {
			all[account] = of.count
		}
		return all
	}
	for account, count := range counts() {
		if count != most/2 {
			t.Errorf("%s has %d sessions, want %d", account, count, most/2)
		}
	}
	// A user with one session less than another takes none from the other.
	begin(of.bearer("third"))
	want := counts()
	if sorted := slices.Sorted(maps.Values(want)); !slices.Equal(sorted, []int{1, most/2 - 1, most / 2}) {
		t.Errorf("the three have %v sessions", want)
	}
	for _, auth := range []string{greedy, other} {
		begin(auth)
		if got := counts(); !maps.Equal(got, want) {
			t.Errorf("after one more the three have %v sessions, want %v", got, want)
		}
	}
}

// The table keeps nothing of a session that has ended or could not be opened.
func TestNothingIsLeftOfASession(t *testing.T) {
	tg := newTestGateway(t, GatewayOptions{}, nil)
	left := func(want int) {
		t.Helper()
		listed, holders := 0, 0
		tg.g.sessions.mu.Lock()
		defer tg.g.sessions.mu.Unlock()
		for _, of := range tg.g.sessions.of {
			holders++
			listed += of.fresh.Len() + of.called.Len()
		}
		if listed != want || tg.g.sessions.total != want || holders != min(want, 1) {
			t.Errorf("%d sessions of %d holders are listed, %d counted, want %d", listed, holders, tg.g.sessions.total, want)
		}
	}
	end := func(id string) {
		t.Helper()
		if a := tg.do("DELETE", "/mcp", "", "Mcp-Session-Id", id); a.status != 204 {
			t.Errorf("got %+v", a)
		}
	}
	called, fresh := tg.begin("/mcp"), tg.begin("/mcp")
	tg.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", called)
	left(2)
	end(called)
	left(1)
	end(fresh)
	left(0)
	inner := tg.g.opts.Open
	tg.g.opts.Open = func(Edge, string, string, bool) (*host.Session, func(context.Context)) { panic("as asked") }
	if a := tg.do("POST", "/mcp", initialize); a.status != 500 {
		t.Errorf("got %+v", a)
	}
	tg.g.opts.Open = inner
	left(0)
	tg.begin("/mcp")
	left(1)
}

// The messages for a host that does not read are charged until its session ends.
func TestQueuedMessagesStayChargedUntilTheEnd(t *testing.T) {
	const size = 100 << 10
	tg := newTestGateway(t, GatewayOptions{MaxResponseBytes: 1 << 20}, nil)
	id := tg.begin("/mcp")
	s := <-tg.sessions
	s.Notify("notifications/cancelled", json.RawMessage(fmt.Sprintf(`{"requestId":1,"reason":%q}`, strings.Repeat("x", size))))
	if got := tg.g.memory.Total(); got < size {
		t.Errorf("%d bytes are held, want %d", got, size)
	}
	tg.do("DELETE", "/mcp", "", "Mcp-Session-Id", id)
	mcptest.Soon(t, "nothing is held", func() bool { return tg.g.memory.Total() == 0 })
}

// An answer up to max_response_bytes is sent, even if the limit of unread bytes is lower.
func TestLargeAnswerIgnoresTheUnreadLimit(t *testing.T) {
	large := json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, strings.Repeat("x", 900<<10)))
	tg := newTestGateway(t, GatewayOptions{MaxResponseBytes: 1 << 20}, func(r *host.Request) { r.Reply(large, nil) }, func(g *Gateway) { g.maxUnread = 1 })
	id := tg.begin("/mcp")
	for n := range 2 {
		if a := tg.do("POST", "/mcp", call(n+1, "x"), "Mcp-Session-Id", id); a.status != 200 || len(a.body) < len(large) {
			t.Errorf("call %d: got %d %.300s", n, a.status, a.body)
		}
	}
}

// endFirst has the first session ended by a function, which gets its usual end function.
func (tg *testGateway) endFirst(by func(end func())) {
	first := true
	inner := tg.g.opts.Open
	tg.g.opts.Open = func(edge Edge, principal, namespace string, lasts bool) (*host.Session, func(context.Context)) {
		s, end := inner(edge, principal, namespace, lasts)
		if !first {
			return s, end
		}
		first = false
		return s, func(ctx context.Context) { by(func() { end(ctx) }) }
	}
}

// A session that takes long to end does not keep the reaper from the others.
func TestSlowEndDelaysNoOtherSession(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{SessionIdle: 20 * time.Millisecond}, func(r *host.Request) { r.Reply(json.RawMessage(`{}`), nil) })
	ending, release := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(release) })
	t.Cleanup(goOn) // runs before the gateway ends
	tg.endFirst(func(end func()) {
		close(ending)
		<-release
		end()
	})
	begin := func() {
		t.Helper()
		if a := tg.do("POST", "/mcp", initialize); a.status != 200 || !strings.Contains(a.body, "2025-11-25") {
			t.Fatalf("got %+v", a)
		}
	}
	begin()
	<-ending
	begin()
	begin()
	mcptest.Soon(t, "the others end", func() bool { return tg.closed.Load() == 2 })
	goOn()
	mcptest.Soon(t, "all end", func() bool { return tg.closed.Load() == 3 })
}
