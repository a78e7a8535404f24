package internode

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/transports/gateway"
	"github.com/dynmcp/dynmcp/transports/host"
)

// answered answers a request with the name of the replica.
func answered(at *node, r *host.Request) {
	r.Reply(fmt.Appendf(nil, `{"content":[],"at":%q}`, at.id), nil)
}

func three(t testing.TB, handle func(at *node, r *host.Request)) (a, b, c *node) {
	cluster := newTestCluster(t, handle)
	k := keys(t, secret(1))
	return cluster.add("a", k), cluster.add("b", k), cluster.add("c", k)
}

func TestAnyReplicaTakesAnyRequest(t *testing.T) {
	a, b, c := three(t, answered)
	id := a.begin()
	if got := b.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id); got.status != 202 || got.body != "" {
		t.Errorf("initialized: %+v", got)
	}
	// inTime repeats a call until its answer comes within a second. A later answer is a stream.
	inTime := func(n *node) answer {
		t.Helper()
		for range 20 {
			if got := n.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id); got.header.Get("Content-Type") != "text/event-stream" {
				return got
			}
		}
		t.Fatal("no answer came within a second")
		return answer{}
	}
	direct, passed := inTime(a), inTime(c)
	if passed.status != 200 || passed.body != direct.body || !strings.Contains(passed.body, `"at":"a"`) {
		t.Errorf("forwarded: got %+v, from the owner %+v", passed, direct)
	}
	for name, values := range direct.header {
		if name != "Date" && strings.Join(passed.header[name], ",") != strings.Join(values, ",") {
			t.Errorf("header %s: got %q, from the owner %q", name, passed.header[name], values)
		}
	}
	for name := range passed.header {
		if direct.header[name] == nil {
			t.Errorf("header %s: got %q, from the owner none", name, passed.header[name])
		}
	}
	if got := b.do("POST", "/mcp", initialize, "Mcp-Session-Id", id); got.status != 409 {
		t.Errorf("second initialize: %+v", got)
	}
	if got := b.do("DELETE", "/mcp", "", "Mcp-Session-Id", id); got.status != 204 {
		t.Errorf("DELETE: %+v", got)
	}
	for _, n := range []*node{a, b, c} {
		if got := n.do("POST", "/mcp", call(2, "x"), "Mcp-Session-Id", id); got.status != 404 || !strings.Contains(got.body, `"id":2`) {
			t.Errorf("after DELETE at %s: %+v", n.id, got)
		}
	}
	if a.opened.Load() != 1 || b.opened.Load() != 0 || c.opened.Load() != 0 {
		t.Errorf("%d, %d and %d sessions were opened, want 1, 0 and 0", a.opened.Load(), b.opened.Load(), c.opened.Load())
	}
	if got := a.peers.count(); got != 2 {
		t.Errorf("two replicas made %d connections to the third, want one for each", got)
	}
}

func TestStreamContinuesThroughAnotherReplica(t *testing.T) {
	calls := make(chan *host.Request, 1)
	a, b, c := three(t, func(_ *node, r *host.Request) {
		r.Peer.Notify("notifications/progress", json.RawMessage(`{"progressToken":1,"progress":1}`))
		r.Peer.Notify("notifications/progress", json.RawMessage(`{"progressToken":1,"progress":2}`))
		calls <- r
	})
	id := a.begin()
	ctx, lose := context.WithCancel(t.Context())
	defer lose()
	resp, err := b.cluster.hosts.Do(b.request(ctx, "POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-11-25"))
	if err != nil {
		t.Fatal(err)
	}
	last := eventsOf(t, resp).want(`"progress":1`)
	lose()
	resp.Body.Close()
	running := <-calls
	resp = c.stream("GET", "/mcp", "", "Mcp-Session-Id", id, "Accept", "text/event-stream", "Last-Event-ID", last)
	defer resp.Body.Close()
	more := eventsOf(t, resp)
	more.want(`"progress":2`) // sent at once, before there is an answer
	running.Reply(json.RawMessage(`{"content":[]}`), nil)
	more.want(`"id":1,"result"`)
	if _, data, ok := more.next(); ok {
		t.Errorf("after the answer came %s", data)
	}

	// With the older HTTP with SSE, the stream and the messages may be at two replicas.
	resp = b.stream("GET", "/mcp/git", "", "Accept", "text/event-stream")
	defer resp.Body.Close()
	old := eventsOf(t, resp)
	_, where, _ := old.next()
	if got := c.do("POST", where, initialize); got.status != 202 {
		t.Fatalf("got %+v", got)
	}
	old.want(`"id":0,"result"`)
}

// A cancellation reaches the call through any replica. So does the end of a request of the
// stateless era.
func TestCancelsReachTheCall(t *testing.T) {
	cancelled := make(chan string, 9)
	calls := make(chan *host.Request, 1)
	a, b, c := three(t, func(at *node, r *host.Request) {
		r.OnCancel(func(json.RawMessage) { cancelled <- at.id + string(r.ID) })
		calls <- r
	})
	want := func(which string) {
		t.Helper()
		for got := ""; got != which; {
			select {
			case got = <-cancelled:
			case <-time.After(patience):
				t.Fatalf("%s was not cancelled", which)
			}
		}
	}
	id := a.begin()
	done := make(chan answer, 1)
	go func() { done <- b.do("POST", "/mcp", call(8, "x"), "Mcp-Session-Id", id) }()
	<-calls
	c.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`, "Mcp-Session-Id", id)
	want("a8")
	if got := <-done; strings.Contains(got.body, "result") || strings.Contains(got.body, "error") {
		t.Errorf("got %+v", got)
	}

	body, headers := modern(9, "of a")
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		if resp, err := c.cluster.hosts.Do(c.request(ctx, "POST", "/mcp", body, headers...)); err == nil {
			resp.Body.Close()
		}
	}()
	<-calls
	leave()
	<-left
	want("a9")
}

func TestCallContinuesAtItsReplica(t *testing.T) {
	_, b, c := three(t, answered)
	body, headers := modern(1, "of b")
	if got := c.do("POST", "/mcp", body, headers...); got.status != 200 || !strings.Contains(got.body, `"at":"b"`) {
		t.Errorf("got %+v", got)
	}
	// With the state of an unknown replica, or none of ours, the receiving replica answers.
	for _, state := range []string{"of nobody", "what an upstream gave"} {
		body, headers := modern(1, state)
		if got := c.do("POST", "/mcp", body, headers...); got.status != 200 || !strings.Contains(got.body, `"at":"c"`) {
			t.Errorf("%s: got %+v", state, got)
		}
	}
	b.kill()
	body, headers = modern(1, "of b")
	mcptest.Eventually(t, "the end of b is known", func() bool { // until then the call may have run at b
		got := c.do("POST", "/mcp", body, headers...)
		return got.status == 200 && strings.Contains(got.body, `"at":"c"`)
	})
}

func TestLargeBodiesAreUnchanged(t *testing.T) {
	t.Parallel()
	a, b, _ := three(t, func(_ *node, r *host.Request) { r.Reply(append([]byte(nil), r.Params...), nil) })
	id := a.begin()
	params := `{"name":"x","arguments":{"text":"` + strings.Repeat("0123456789abcdef", 10<<20/16) + `"}}`
	got := b.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`, "Mcp-Session-Id", id)
	if want := `{"jsonrpc":"2.0","id":1,"result":` + params + `}`; got.status != 200 || got.body != want {
		t.Errorf("%d: %d bytes came back, want %d", got.status, len(got.body), len(want))
	}
	if got := b.do("POST", "/mcp", call(2, strings.Repeat("x", 17<<20)), "Mcp-Session-Id", id); got.status != 413 || !strings.Contains(got.body, "max_request_bytes") {
		t.Errorf("a body over max_request_bytes: got %d %.300s", got.status, got.body)
	}
}

// When a replica dies, calls in flight in its sessions have the outcome unknown, and later
// requests find no session.
func TestDeadReplicaLosesItsSessions(t *testing.T) {
	t.Parallel()
	calls := make(chan *host.Request, 2)
	a, b, c := three(t, func(_ *node, r *host.Request) {
		if strings.Contains(string(r.Params), "stream") {
			r.Peer.Notify("notifications/progress", json.RawMessage(`{"progressToken":1,"progress":1}`))
		}
		calls <- r
	})
	id := a.begin()
	waiting := make(chan answer, 1)
	go func() { waiting <- b.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id) }()
	first := <-calls
	resp := c.stream("POST", "/mcp", call(2, "stream"), "Mcp-Session-Id", id)
	defer resp.Body.Close()
	streamed := eventsOf(t, resp)
	streamed.want("progress")
	second := <-calls
	a.kill()
	defer second.Reply(nil, nil) // so that the gateway's shutdown does not wait for it
	defer first.Reply(nil, nil)
	const unknown = `"outcome":"unknown"`
	if got := <-waiting; got.status != 200 || !strings.Contains(got.body, `"id":1,"error"`) || !strings.Contains(got.body, unknown) {
		t.Errorf("the call in flight: %+v", got)
	}
	streamed.want(unknown)
	for _, n := range []*node{b, c} {
		if got := n.do("POST", "/mcp", call(3, "x"), "Mcp-Session-Id", id); got.status != 404 || !strings.Contains(got.body, `"id":3`) {
			t.Errorf("at %s: %+v", n.id, got)
		}
	}
	if got := b.begin(); got == id {
		t.Error("a new session has the id of the old one")
	}
}

// A replica does not forward a forwarded request again, such as one that came to it because it
// has the address of a replica that is gone.
func TestForwardedRequestIsNotForwardedAgain(t *testing.T) {
	a, b, c := three(t, answered)
	id := a.begin()
	a.cluster.mu.Lock()
	a.cluster.nodes["a"] = &node{address: c.address}
	a.cluster.mu.Unlock()
	if got := b.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id); got.status != 404 {
		t.Errorf("got %+v", got)
	}
	if got := a.peers.count(); got != 0 {
		t.Errorf("the owner had %d connections", got)
	}
}

// A forged session id, or that of another principal's session, reaches no session.
func TestForgedSessionIDs(t *testing.T) {
	cluster := newTestCluster(t, answered)
	k := keys(t, secret(1))
	a := cluster.add("a", k)
	b := cluster.add("b", k)
	guarded := cluster.add("c", k, func(o *gateway.GatewayOptions) { o.Token = "secret" }) // its hosts are another principal
	id := a.begin()
	attack := func(at *node, id string, headers ...string) {
		t.Helper()
		before := a.calls.Load() + b.calls.Load() + guarded.calls.Load()
		for _, method := range []string{"POST", "GET", "DELETE"} {
			body := map[string]string{"POST": call(1, "x")}[method]
			got := at.do(method, "/mcp", body, append([]string{"Mcp-Session-Id", id, "Accept", "application/json, text/event-stream"}, headers...)...)
			if got.status != 404 {
				t.Errorf("%s with %q: %+v", method, id, got)
			}
		}
		if got := at.do("POST", "/mcp/git/message?sessionId="+id, call(1, "x"), headers...); got.status != 404 {
			t.Errorf("a message with %q: %+v", id, got)
		}
		if after := a.calls.Load() + b.calls.Load() + guarded.calls.Load(); after != before {
			t.Errorf("%d calls were made with %q", after-before, id)
		}
	}
	for i := range id {
		changed := []byte(id)
		if changed[i]++; changed[i] == id[i] || strings.ContainsRune("{:[^@`/", rune(changed[i])) {
			changed[i] = 'A'
		}
		if string(changed) == id {
			continue
		}
		attack(b, string(changed))
		if i > 0 {
			attack(b, id[:i])
		}
	}
	plain := append(make([]byte, 16), "a"...)
	for what, forged := range map[string]string{
		"another cluster's key": keys(t, secret(9)).SealText("session", plain),
		"another purpose":       k.SealText("requestState", plain),
		"a session nobody has":  k.SealText("session", plain),
		"of nobody":             k.SealText("session", append(make([]byte, 16), "nobody"...)),
		"too short":             k.SealText("session", []byte("a")),
		"with more behind it":   id + "A",
	} {
		t.Run(what, func(t *testing.T) { attack(b, forged) })
	}
	attack(guarded, id, "Authorization", "Bearer secret")
	// A host cannot choose its principal with a header.
	if got := b.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id, headerPrincipal, "root"); got.status != 200 {
		t.Errorf("its own host: %+v", got)
	}
}

func FuzzSessionIDs(f *testing.F) {
	cluster := newTestCluster(f, func(at *node, r *host.Request) { panic("reached") })
	k := seal.Random()
	cluster.add("a", k)
	b := cluster.add("b", k)
	id := cluster.node("a").begin()
	for _, s := range []string{id[1:], id + "=", "", "a", k.SealText("session", nil), strings.Repeat("A", 1000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, guess string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/mcp", strings.NewReader(call(1, "x")))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "Mcp-Session-Id": {guess}}
		resp, err := cluster.hosts.Do(r)
		if err != nil {
			return // not a valid header value
		}
		resp.Body.Close()
		if resp.StatusCode != 404 && resp.StatusCode != 400 {
			t.Errorf("%q is answered with %s", guess, resp.Status)
		}
	})
}
