package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/dynmcp/dynmcp/transports/host"
)

// One of several users takes half of the streams that only listen, and no more.
func TestOneUserDoesNotTakeAllStreams(t *testing.T) {
	of := newIssuer(t)
	tg := newTestGateway(t, Options{MaxConnections: 4, OAuth: &OAuth{Issuers: []string{of.url}, Audience: "tests"}}, nil)
	listen := func(user string) int {
		token := of.sign(jose.ES256, of.key, map[string]any{"iss": of.url, "sub": user, "aud": "tests", "exp": time.Now().Add(time.Hour).Unix()})
		resp := tg.open("GET", "/mcp/git", "", "Accept", "text/event-stream", "Authorization", "Bearer "+token)
		t.Cleanup(func() { resp.Body.Close() })
		return resp.StatusCode
	}
	for i, want := range []struct {
		user   string
		status int
	}{{"ann", 200}, {"ann", 200}, {"ann", 503}, {"bob", 200}, {"bob", 200}, {"eve", 503}} {
		if got := listen(want.user); got != want.status {
			t.Errorf("stream %d, of %s: got %d, want %d", i, want.user, got, want.status)
		}
	}
}

// A host that lost the stream of a call comes back for the answer while all streams that
// there may be listen.
func TestTheAnswerToACallIsFetchedWhenAllStreamsListen(t *testing.T) {
	calls := make(chan *host.Request, 1)
	tg := newTestGateway(t, Options{MaxConnections: 1}, func(r *host.Request) {
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
		t.Errorf("one that only listens: got %+v", a)
	}
}
