package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

func TestAHandshakeBeginsASession(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, nil)
	id := tg.begin("/mcp")
	a := tg.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-11-25")
	if a.status != 200 || a.body != `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}` || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %+v", a)
	}
	for _, c := range []struct {
		what    string
		method  string
		body    string
		headers []string
		status  int
	}{
		{"no session", "POST", call(2, "x"), nil, 400},
		{"an unknown session", "POST", call(2, "x"), []string{"Mcp-Session-Id", "nobody"}, 404},
		{"one that has begun", "POST", initialize, []string{"Mcp-Session-Id", id}, 409},
		{"an unknown version", "POST", call(2, "x"), []string{"Mcp-Session-Id", id, "MCP-Protocol-Version", "1999-01-01"}, 400},
		{"the session of another path", "POST", call(2, "x"), []string{"Mcp-Session-Id", id, "X-Path", "/mcp/git"}, 404},
		{"a stream of no session", "GET", "", []string{"Accept", "text/event-stream"}, 400},
		{"a stream that is not wanted", "GET", "", []string{"Mcp-Session-Id", id, "Accept", "text/html"}, 406},
		{"no JSON", "POST", `{"jsonrpc":`, []string{"Mcp-Session-Id", id}, 400},
		{"no message", "POST", `{"foo":1}`, []string{"Mcp-Session-Id", id}, 400},
		{"another content", "POST", call(2, "x"), []string{"Mcp-Session-Id", id, "Content-Type", "text/plain"}, 415},
		{"an answer in no form", "POST", call(2, "x"), []string{"Mcp-Session-Id", id, "Accept", "text/html"}, 406},
		{"a method of HTTP", "PUT", "", nil, 405},
	} {
		path := "/mcp"
		if len(c.headers) == 4 && c.headers[2] == "X-Path" {
			path = c.headers[3]
		}
		a := tg.do(c.method, path, c.body, c.headers...)
		var failure struct {
			JSONRPC string
			Error   *struct{ Code int }
		}
		if err := json.Unmarshal([]byte(a.body), &failure); err != nil || a.status != c.status || failure.Error == nil || failure.JSONRPC != "2.0" {
			t.Errorf("%s: got %+v", c.what, a)
		}
	}
	if a := tg.do("DELETE", "/mcp", "", "Mcp-Session-Id", id); a.status != 204 {
		t.Errorf("DELETE: got %+v", a)
	}
	if a := tg.do("POST", "/mcp", call(3, "x"), "Mcp-Session-Id", id); a.status != 404 {
		t.Errorf("after DELETE: got %+v", a)
	}
	if open, closed := tg.opened.Load(), tg.closed.Load(); open != 1 || closed != 1 {
		t.Errorf("%d sessions were opened, %d ended", open, closed)
	}
}

func TestAHandshakeThatFailsLeavesNoSession(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, nil)
	a := tg.do("POST", "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":7}`)
	if a.status != 200 || !strings.Contains(a.body, `"error"`) {
		t.Errorf("got %+v", a)
	}
	if got := len(tg.g.sessions.all()); got != 0 {
		t.Errorf("%d sessions are left", got)
	}
}

func TestMessagesOfACallComeBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, func(r *host.Request) {
		r.Peer.Notify("notifications/progress", json.RawMessage(`{"progressToken":1,"progress":1}`))
		go func() {
			got, err := r.Peer.Request(context.Background(), "elicitation/create", json.RawMessage(`{"message":"?"}`))()
			if err != nil {
				r.Reply(nil, err)
				return
			}
			r.Reply(got, nil)
		}()
	})
	id := tg.begin("/mcp")
	resp := tg.open("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id)
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("got %s", kind)
	}
	events := newEventReader(t, resp.Body)
	events.want("notifications/progress")
	asked := events.want("elicitation/create")
	var question struct{ ID int }
	if err := json.Unmarshal([]byte(asked.data), &question); err != nil {
		t.Fatal(err)
	}
	if a := tg.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`, "Mcp-Session-Id", id); a.status != 202 || question.ID != 1 {
		t.Fatalf("got %+v, %d", a, question.ID)
	}
	events.want(`"result":{"action":"accept"}`)
	if ev, more := events.next(); more {
		t.Errorf("after the answer came %+v", ev)
	}
}

// A host that ends its session while a call is on an event stream gets the outcome of the call
// on that stream.
func TestACallOnAStreamIsAnsweredWhenItsSessionEnds(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, func(*host.Request) {}, func(g *Gateway) { g.streamAfter = time.Millisecond })
	tg.endFirst(func(end func()) {
		time.Sleep(50 * time.Millisecond) // a stream that does not wait for the answer would end now
		end()
	})
	id := tg.begin("/mcp")
	resp := tg.open("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id)
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream" {
		t.Fatalf("got %d, %s", resp.StatusCode, got)
	}
	if a := tg.do("DELETE", "/mcp", "", "Mcp-Session-Id", id); a.status != 204 {
		t.Errorf("DELETE: got %+v", a)
	}
	events := newEventReader(t, resp.Body)
	events.want("the session was ended by its host")
	if ev, more := events.next(); more {
		t.Errorf("after the answer came %+v", ev)
	}
}

func TestAnswerIsAnEventIfAcceptNamesEventsFirst(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, func(r *host.Request) {
		if strings.Contains(string(r.Params), "refuse") {
			r.Reply(nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "no"})
			return
		}
		r.Reply(json.RawMessage(`{"content":[]}`), nil)
	})
	id := tg.begin("/mcp")
	const events, text = "text/event-stream", "application/json"
	for accept, want := range map[string]string{
		"text/event-stream, application/json":      events,
		"text/event-stream;q=0.9, */*":             events,
		"text/event-stream":                        events,
		"application/json, text/event-stream":      text,
		"*/*":                                      text,
		"application/json, text/*, image/png;q=.1": text,
	} {
		a := tg.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-11-25", "Accept", accept)
		if a.status != 200 || a.header.Get("Content-Type") != want || !strings.Contains(a.body, `"id":1,"result"`) {
			t.Errorf("%s: got %+v", accept, a)
		}
		if want == events && !strings.Contains(a.body, "\nretry: 1000\ndata: \n\nid: ") {
			t.Errorf("%s: the first event has no retry time: %s", accept, a.body)
		}
	}

	// An error with its own status is sent as JSON, and a failed handshake leaves no session.
	body, headers := modern(2, "tools/call", `"name":"refuse","arguments":{},`)
	if a := tg.do("POST", "/mcp", body, append(headers, "Accept", "text/event-stream, application/json")...); a.status != 400 || a.header.Get("Content-Type") != text {
		t.Errorf("an error of the stateless era: got %+v", a)
	}
	tg.do("POST", "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":7}`, "Accept", "text/event-stream, application/json")
	if got := len(tg.g.sessions.all()); got != 1 {
		t.Errorf("there are %d sessions", got)
	}
}

// Accept: */* includes events.
func TestAStreamForAHostThatAcceptsAnything(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, nil)
	for _, c := range []struct{ path, id string }{{"/mcp", tg.begin("/mcp")}, {"/mcp/git", tg.begin("/mcp/git")}, {"/mcp/git", ""}} {
		headers := []string{"Accept", "*/*"}
		if c.id != "" {
			headers = append(headers, "Mcp-Session-Id", c.id)
		}
		resp := tg.open("GET", c.path, "", headers...)
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream" {
			t.Errorf("%+v: got %d, %s", c, resp.StatusCode, got)
		}
		resp.Body.Close()
	}
}

func TestLostStreamIsResumed(t *testing.T) {
	t.Parallel()
	calls := make(chan *host.Request, 1)
	tg := newTestGateway(t, GatewayOptions{}, func(r *host.Request) {
		r.Peer.Notify("notifications/progress", json.RawMessage(`{"progressToken":1,"progress":1}`))
		r.Peer.Notify("notifications/progress", json.RawMessage(`{"progressToken":1,"progress":2}`))
		calls <- r
	})
	id := tg.begin("/mcp")
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := tg.client.Do(tg.request(ctx, "POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-11-25"))
	if err != nil {
		t.Fatal(err)
	}
	events := newEventReader(t, resp.Body)
	if first, ok := events.next(); !ok || first.id == "" || first.data != "" {
		t.Errorf("the first event is %+v, want an id and nothing else", first)
	}
	last := events.want(`"progress":1`).id
	cancel()
	resp.Body.Close()
	(<-calls).Reply(json.RawMessage(`{"content":[]}`), nil)

	resp = tg.open("GET", "/mcp", "", "Mcp-Session-Id", id, "Accept", "text/event-stream", "Last-Event-ID", last)
	defer resp.Body.Close()
	events = newEventReader(t, resp.Body)
	events.want(`"progress":2`)
	events.want(`"id":1,"result"`)
	if ev, more := events.next(); more {
		t.Errorf("after the answer came %+v", ev)
	}
	if a := tg.do("GET", "/mcp", "", "Mcp-Session-Id", id, "Accept", "text/event-stream", "Last-Event-ID", "77-1"); a.status != 400 {
		t.Errorf("an unknown stream: %+v", a)
	}
}

func TestOtherMessagesComeOnTheStandaloneStream(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, nil)
	id := tg.begin("/mcp")
	s := <-tg.sessions
	s.Notify("notifications/tools/list_changed", nil) // before the host listens
	resp := tg.open("GET", "/mcp", "", "Mcp-Session-Id", id, "Accept", "text/event-stream")
	defer resp.Body.Close()
	events := newEventReader(t, resp.Body)
	last := events.want("tools/list_changed").id

	again := tg.open("GET", "/mcp", "", "Mcp-Session-Id", id, "Accept", "text/event-stream", "Last-Event-ID", last)
	defer again.Body.Close()
	if _, more := events.next(); more { // the new one replaces it
		t.Error("the old stream goes on")
	}
	s.Notify("notifications/prompts/list_changed", nil)
	newEventReader(t, again.Body).want("prompts/list_changed")
}

// modern returns the body and the headers of a request of the stateless era. params are members
// that end with a comma, or empty.
func modern(id int, method, params string) (string, []string) {
	name := ""
	var p struct{ Name string }
	if json.Unmarshal([]byte("{"+strings.TrimSuffix(params, ",")+"}"), &p) == nil {
		name = p.Name
	}
	return `{"jsonrpc":"2.0","id":` + string(rune('0'+id)) + `,"method":"` + method + `","params":{` + params + `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		[]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name}
}

func TestAStatelessRequestNeedsNoSession(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, nil)
	body, headers := modern(1, "tools/call", `"name":"x","arguments":{},`)
	a := tg.do("POST", "/mcp", body, headers...)
	if a.status != 200 || !strings.Contains(a.body, `"resultType":"complete"`) || a.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("got %+v", a)
	}
	for _, c := range []struct {
		what   string
		change func(h []string)
		status int
		code   string
	}{
		{"another version", func(h []string) { h[1] = "2026-08-01" }, 400, "-32020"},
		{"another method", func(h []string) { h[3] = "tools/list" }, 400, "-32020"},
		{"another name", func(h []string) { h[5] = "y" }, 400, "-32020"},
		{"a name in Base64", func(h []string) { h[5] = "=?base64?eA==?=" }, 200, "result"},
	} {
		h := append([]string(nil), headers...)
		c.change(h)
		if a := tg.do("POST", "/mcp", body, h...); a.status != c.status || !strings.Contains(a.body, c.code) {
			t.Errorf("%s: got %+v", c.what, a)
		}
	}
	for name, status := range map[string]int{"": 200, "t1": 200, "t2": 400} {
		body, headers := modern(1, "tasks/get", `"taskId":"t1",`)
		headers[5] = name
		if a := tg.do("POST", "/mcp", body, headers...); a.status != status {
			t.Errorf("the task %q in the header: got %+v", name, a)
		}
	}
	if a := tg.do("GET", "/mcp", "", "MCP-Protocol-Version", "2026-07-28", "Accept", "text/event-stream"); a.status != 405 {
		t.Errorf("GET: got %+v", a)
	}
	if got := len(tg.g.sessions.all()); got != 0 {
		t.Errorf("%d sessions are left", got)
	}
}

// In the stateless era, closing the connection cancels the request. In the handshake era it does
// not: the host may resume the stream, and cancels with a notification.
func TestClosedConnectionCancelsInTheStatelessEraOnly(t *testing.T) {
	t.Parallel()
	calls := make(chan *host.Request, 1)
	cancelled := make(chan string, 9)
	tg := newTestGateway(t, GatewayOptions{}, func(r *host.Request) {
		r.OnCancel(func(json.RawMessage) { cancelled <- string(r.ID) })
		calls <- r
	})
	leave := func(body string, headers ...string) *host.Request {
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			if resp, err := tg.client.Do(tg.request(ctx, http.MethodPost, "/mcp", body, headers...)); err == nil {
				resp.Body.Close()
			}
		}()
		r := <-calls
		cancel()
		<-left
		return r
	}
	body, headers := modern(7, "tools/call", `"name":"x","arguments":{},`)
	leave(body, headers...)
	select {
	case id := <-cancelled:
		if id != "7" {
			t.Errorf("%s was cancelled", id)
		}
	case <-time.After(patience):
		t.Fatal("the call was not cancelled")
	}

	id := tg.begin("/mcp")
	r := leave(call(8, "x"), "Mcp-Session-Id", id)
	if a := tg.do("POST", "/mcp", `{"jsonrpc":"2.0","id":9,"method":"ping"}`, "Mcp-Session-Id", id); a.status != 200 {
		t.Errorf("got %+v", a)
	}
	if !r.OnCancel(func(json.RawMessage) { cancelled <- string(r.ID) }) {
		t.Error("the call was cancelled with its connection")
	}
	if a := tg.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`, "Mcp-Session-Id", id); a.status != 202 {
		t.Errorf("got %+v", a)
	}
	for id := ""; id != "8"; { // the end of the first session cancels its request again
		select {
		case id = <-cancelled:
		case <-time.After(patience):
			t.Fatal("the cancel does not arrive")
		}
	}
}

// The response to a request that is cancelled on another connection ends without an answer.
func TestACancelledRequestEndsItsResponse(t *testing.T) {
	t.Parallel()
	calls := make(chan *host.Request, 1)
	tg := newTestGateway(t, GatewayOptions{}, func(r *host.Request) { calls <- r })
	id := tg.begin("/mcp")
	ended := make(chan answer, 1)
	go func() { ended <- tg.do("POST", "/mcp", call(8, "x"), "Mcp-Session-Id", id) }()
	<-calls
	tg.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`, "Mcp-Session-Id", id)
	if a := <-ended; strings.Contains(a.body, "result") || strings.Contains(a.body, "error") {
		t.Errorf("got %+v", a)
	}
}

func TestBatchIsAnsweredAsOne(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, nil)
	a := tg.do("POST", "/mcp", strings.Replace(initialize, "2025-11-25", "2025-03-26", 1))
	id := a.header.Get("Mcp-Session-Id")
	a = tg.do("POST", "/mcp", "["+call(1, "x")+","+call(2, "y")+`,{"jsonrpc":"2.0","method":"notifications/initialized"}]`, "Mcp-Session-Id", id)
	if a.status != 200 || !strings.HasPrefix(a.body, "[") || !strings.Contains(a.body, `"id":1`) || !strings.Contains(a.body, `"id":2`) {
		t.Errorf("got %+v", a)
	}
	if a := tg.do("POST", "/mcp", `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, "Mcp-Session-Id", id); a.status != 202 || a.body != "" {
		t.Errorf("notifications alone: got %+v", a)
	}
}

// The headers for arguments must have the same values as the body.
func TestArgumentsInHeaders(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},"in":{"type":"object","properties":{"deep":{"type":"boolean","x-mcp-header":"Deep"}}}}}`)
	tg := newTestGateway(t, GatewayOptions{InputSchema: func(_, namespace, tool string) json.RawMessage { return schema }}, nil)
	body, headers := modern(1, "tools/call", `"name":"x","arguments":{"region":"eu","n":1,"in":{"deep":true}},`)
	for _, c := range []struct {
		region, n, deep string
		status          int
	}{
		{"eu", "1", "true", 200},
		{"=?base64?ZXU=?=", "1.0", "true", 200},
		{"us", "1", "true", 400},
		{"=?base64?!?=", "1", "true", 400},
		{"eu", "2", "true", 400},
		{"eu", "1", "false", 400},
	} {
		a := tg.do("POST", "/mcp", body, append(headers[:6:6], "Mcp-Param-Region", c.region, "Mcp-Param-N", c.n, "Mcp-Param-Deep", c.deep)...)
		if a.status != c.status || c.status == 400 && !strings.Contains(a.body, "-32020") {
			t.Errorf("%+v: got %+v", c, a)
		}
	}
	if a := tg.do("POST", "/mcp", body, headers...); a.status != 400 {
		t.Errorf("without them: got %+v", a)
	}
}

// At the shutdown a subscription ends with its result, which tells its host that the end is
// meant.
func TestShutdownAnswersSubscriptions(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, nil)
	body, headers := modern(7, "subscriptions/listen", `"notifications":{"toolsListChanged":true},`)
	resp := tg.open("POST", "/mcp", body, headers...)
	defer resp.Body.Close()
	events := newEventReader(t, resp.Body)
	events.want("subscriptions/acknowledged")
	tg.stop()
	events.want(`{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`)
	if ev, ok := events.next(); ok {
		t.Errorf("after the result: %+v", ev)
	}
}

// A subscription needs an event stream.
func TestSubscriptionWithoutEvents(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, nil)
	body, headers := modern(7, "subscriptions/listen", `"notifications":{"toolsListChanged":true},`)
	if a := tg.do("POST", "/mcp", body, append(headers, "Accept", "application/json")...); a.status != 406 || !strings.Contains(a.body, `"id":7`) {
		t.Errorf("got %+v", a)
	}
}

// From 2026-07-28 on there are no sessions to read from or to end.
func TestStatelessHostsOnlyPost(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, nil)
	for _, method := range []string{"GET", "DELETE"} {
		if a := tg.do(method, "/mcp", "", "MCP-Protocol-Version", transports.StatelessVersion); a.status != 405 || a.header.Get("Allow") != "POST, OPTIONS" {
			t.Errorf("%s: got %+v", method, a)
		}
	}
}
