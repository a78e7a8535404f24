package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/transports/host"
)

// endIdle does what the ticker does, and waits for it.
func (tg *testGateway) endIdle(now time.Time) {
	r := &reaper{g: tg.g, busy: make(chan struct{}, endsAtOnce)}
	r.endIdle(now)
	r.work.Wait()
}

// One user who opens all sessions that there may be keeps nobody out: those that never
// called anything go first, and then the longest unused of who has the most.
func TestOneUserCannotTakeAllSessions(t *testing.T) {
	t.Parallel()
	const most = 16
	of := newIssuer(t)
	tg := newTestGateway(t, Options{OAuth: &OAuth{Issuers: []string{of.url}, Audience: "tests"}}, nil)
	tg.g.sessions.most = most
	token := func(user string) string {
		return "Bearer " + of.sign(jose.ES256, of.key, map[string]any{"iss": of.url, "sub": user, "aud": "tests", "exp": time.Now().Add(time.Hour).Unix()})
	}
	greedy, other := token("greedy"), token("other")
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
		t.Fatal("a session does not call")
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
		t.Error("a session that has called ended before those that never did")
	}
	for range most/2 - 1 { // until both have half
		mine = begin(other)
	}
	if !lives(kept, greedy) || !lives(mine, other) {
		t.Error("one that has called ended")
	}
	tg.g.sessions.mu.Lock()
	defer tg.g.sessions.mu.Unlock()
	for who, of := range tg.g.sessions.of {
		if of.count != most/2 {
			t.Errorf("%s has %d sessions, want %d", who, of.count, most/2)
		}
	}
}

// A session that takes long to end keeps the reaper from no other.
func TestASessionThatDoesNotEndKeepsNoOther(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, Options{SessionIdle: 20 * time.Millisecond}, func(r *host.Request) { r.Reply(json.RawMessage(`{}`), nil) })
	ending, release := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(release) })
	t.Cleanup(goOn) // the gateway ends after it
	first := true
	inner := tg.g.opts.Open
	tg.g.opts.Open = func(edge Edge, who, namespace string, lasts bool) (*host.Session, func(context.Context)) {
		s, end := inner(edge, who, namespace, lasts)
		if !first {
			return s, end
		}
		first = false
		return s, func(ctx context.Context) {
			close(ending)
			<-release
			end(ctx)
		}
	}
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
