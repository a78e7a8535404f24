//go:build e2e

package mcptest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// readyWeb starts a fake that serves HTTP and performs the handshake.
func readyWeb(t *testing.T, args ...string) *mcptest.Client {
	t.Helper()
	c := mcptest.NewClient(t, mcptest.ServeFake(t, args...).URL)
	c.Initialize(version, nil)
	return c
}

func TestStreamableHTTP(t *testing.T) {
	t.Parallel()
	c := readyWeb(t)
	if !strings.HasPrefix(c.Session, "sess-") {
		t.Errorf("got session %q", c.Session)
	}
	r := c.Post(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"progress","arguments":{"steps":2},"_meta":{"progressToken":1}}}`)
	if got := r.Header.Get("Content-Type"); got != "text/event-stream" || len(r.Messages) != 3 {
		t.Errorf("got %s and %d messages", got, len(r.Messages))
	}
	if m := r.Last(); string(m.ID) != `"a"` || m.Text() != "2 steps" {
		t.Errorf("got %s", m.Raw)
	}
	if got := c.Tool("headers", nil).Text(); !strings.Contains(got, `"Mcp-Protocol-Version":["2025-11-25"]`) {
		t.Errorf("got %s", got)
	}
}

func TestPlainAnswers(t *testing.T) {
	t.Parallel()
	c := readyWeb(t, "-json")
	r := c.Post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw","arguments":{"result":{"f":1.0}}}}`)
	if got := r.Header.Get("Content-Type"); got != "application/json" || r.Body != `{"result":{"f":1.0},"jsonrpc":"2.0","id":1}` {
		t.Errorf("got %s %s", got, r.Body)
	}
	r = c.Post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"log"}}`)
	if got := r.Header.Get("Content-Type"); got != "text/event-stream" || len(r.Messages) != 2 {
		t.Errorf("got %s and %d messages", got, len(r.Messages))
	}
}

// TestLineBreaksSurviveEvents receives a message with line breaks, which an event carries as several
// data fields.
func TestLineBreaksSurviveEvents(t *testing.T) {
	t.Parallel()
	c := readyWeb(t)
	const result = "{\n  \"f\": 1.0\n}"
	r := c.Post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw","arguments":{"result":` + result + `}}}`)
	if got := string(r.Last().Result); got != result {
		t.Errorf("got %q, want %q", got, result)
	}
}

func TestSessionsAreKnown(t *testing.T) {
	t.Parallel()
	c := mcptest.NewClient(t, mcptest.ServeFake(t).URL)
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if got := c.Post(ping).Status; got != 400 {
		t.Errorf("without a session: got status %d", got)
	}
	c.Session = "unknown"
	if got := c.Post(ping).Status; got != 404 {
		t.Errorf("unknown session: got status %d", got)
	}
	c.Session = ""
	c.Initialize(version, nil)
	if got := c.Do(context.Background(), http.MethodPut, "").Status; got != 405 {
		t.Errorf("PUT: got status %d", got)
	}
	if got := c.Do(context.Background(), http.MethodDelete, "").Status; got != 200 {
		t.Errorf("DELETE: got status %d", got)
	}
	if got := c.Post(ping).Status; got != 404 {
		t.Errorf("deleted session: got status %d", got)
	}
}

func TestGetStreamCarriesTheRest(t *testing.T) {
	t.Parallel()
	c := readyWeb(t)
	c.Tool("notify", `{"method":"notifications/early"}`)
	messages, stop := c.Listen()
	if m := <-messages; m.Method != "notifications/early" {
		t.Errorf("got %s", m.Raw)
	}
	c.Tool("add_tool", `{"name":"x"}`)
	if m := <-messages; m.Method != "notifications/tools/list_changed" {
		t.Errorf("got %s", m.Raw)
	}
	stop()
	if _, open := <-messages; open {
		t.Error("a message came after stop")
	}
}

func TestAskOverHTTP(t *testing.T) {
	t.Parallel()
	c := readyWeb(t)
	messages, _ := c.Stream(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"method":"roots/list"}}}`)
	asked := <-messages
	if asked.Method != "roots/list" {
		t.Fatalf("got %s", asked.Raw)
	}
	c.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[],"f":1.0}}`, asked.ID))
	if got := (<-messages).Text(); got != `{"roots":[],"f":1.0}` {
		t.Errorf("got %s", got)
	}
}

func TestBearer(t *testing.T) {
	t.Parallel()
	c := mcptest.NewClient(t, mcptest.ServeFake(t, "-bearer", "s3cret").URL)
	r := c.Post(initialize)
	if r.Status != 401 || !strings.Contains(r.Header.Get("WWW-Authenticate"), "resource_metadata=") {
		t.Errorf("got status %d and %q", r.Status, r.Header.Get("WWW-Authenticate"))
	}
	c.Header.Set("Authorization", "Bearer s3cret")
	c.Initialize(version, nil)
}

func TestLegacySSE(t *testing.T) {
	t.Parallel()
	server := mcptest.ServeFake(t, "-sse")
	c := mcptest.NewClient(t, server.URL)
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	events := mcptest.Events(resp.Body)
	first := <-events
	if first.Name != "endpoint" || !strings.HasPrefix(first.Data, "/messages?sessionId=") {
		t.Fatalf("got %+v", first)
	}
	c.URL = strings.TrimSuffix(server.URL, "/sse") + first.Data
	if r := c.Post(initialize); r.Status != 202 {
		t.Errorf("got status %d", r.Status)
	}
	if got := <-events; got.Name != "message" || !strings.Contains(got.Data, `"protocolVersion"`) {
		t.Errorf("got %+v", got)
	}
	c.URL = server.URL + "?sessionId=unknown"
	if r := c.Post(initialize); r.Status != 404 {
		t.Errorf("got status %d", r.Status)
	}
}
