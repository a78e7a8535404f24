package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/transports/host"
)

// One user may have all listening streams until other users need some. Then the newest stream
// of the user with the most ends, but not a stream on which a call waits for its answer.
func TestStreamOfTheUserWithTheMostEnds(t *testing.T) {
	t.Parallel()
	calls := make(chan *host.Request, 1)
	of := newIssuer(t)
	tg := newTestGateway(t, GatewayOptions{MaxConnections: 4, OAuth: &OAuth{Issuers: []string{of.url}, Audience: "tests"}}, func(r *host.Request) { calls <- r })
	listen := func(user string, status int) (events *eventReader, address string) {
		t.Helper()
		resp := tg.open("GET", "/mcp/git", "", "Accept", "text/event-stream", "Authorization", of.bearer(user))
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != status {
			t.Fatalf("%s: got %d, want %d", user, resp.StatusCode, status)
		}
		if events = newEventReader(t, resp.Body); status == 200 {
			address = events.want("/mcp/git/message").data
			events.want("time")
		}
		return events, address
	}
	var ann [4]*eventReader
	var last string
	for i := range ann {
		ann[i], last = listen("ann", 200)
	}
	listen("ann", 503)
	for _, line := range []string{initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, call(1, "x")} {
		if a := tg.do("POST", last, line, "Authorization", of.bearer("ann")); a.status != 202 {
			t.Fatalf("got %+v", a)
		}
	}
	ann[3].want(`"id":0,"result"`)
	running := <-calls
	listen("bob", 200)
	listen("bob", 200)
	for i := 2; i > 0; i-- {
		if ev, more := ann[i].next(); more {
			t.Errorf("stream %d goes on with %+v", i, ev)
		}
	}
	listen("bob", 503)
	listen("ann", 503)
	running.Reply(json.RawMessage(`{"content":[]}`), nil)
	ann[3].want(`"id":1,"result"`)
	listen("eve", 200)
	listen("eve", 503)
}

// A host that lost the stream of a call can fetch the answer while the limit of listening
// streams is reached.
func TestAnswerIsFetchedAtTheStreamLimit(t *testing.T) {
	t.Parallel()
	calls := make(chan *host.Request, 1)
	tg := newTestGateway(t, GatewayOptions{MaxConnections: 1}, func(r *host.Request) {
		r.Peer.Notify("notifications/progress", json.RawMessage(`{"progressToken":1,"progress":1}`))
		calls <- r
	})
	listening := tg.open("GET", "/mcp", "", "Mcp-Session-Id", tg.begin("/mcp"), "Accept", "text/event-stream")
	defer listening.Body.Close()
	id := tg.begin("/mcp")
	ctx, lose := context.WithCancel(t.Context())
	resp, err := tg.client.Do(tg.request(ctx, "POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id))
	if err != nil {
		t.Fatal(err)
	}
	last := newEventReader(t, resp.Body).want(`"progress":1`).id
	lose()
	resp.Body.Close()
	(<-calls).Reply(json.RawMessage(`{"content":[]}`), nil)
	if a := tg.do("GET", "/mcp", "", "Mcp-Session-Id", id, "Accept", "text/event-stream", "Last-Event-ID", last); a.status != 200 || !strings.Contains(a.body, `"id":1,"result"`) {
		t.Errorf("got %+v", a)
	}
	if a := tg.do("GET", "/mcp", "", "Mcp-Session-Id", id, "Accept", "text/event-stream"); a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("a listening stream: got %+v", a)
	}
}
