package main_test

import (
	"net/http"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// When a session ends its running calls are answered, and cancelled at their server. Calls of
// another session go on.
func TestASessionEndsWhileItsCallsRun(t *testing.T) {
	t.Parallel()
	e, gate := fake(t, "alpha"), mcptest.NewGate(t)
	web := serveHTTP(t, mcptest.Config(t, document([]entry{e})))
	const each = 5
	begin := func(input any) (*mcptest.Client, chan mcptest.Reply) {
		c, replies := mcptest.NewClient(t, web.url+"/mcp"), make(chan mcptest.Reply, each)
		c.Initialize(handshake, nil)
		for id := range each {
			go func() { replies <- c.Post(toolCall(id+1, "alpha/sleep", input)) }()
		}
		return c, replies
	}
	leaves, cut := begin(nil)
	_, goOn := begin(map[string]string{"until": gate.Path})
	e.WaitFor("call sleep", 2*each)
	if r := leaves.Do(t.Context(), http.MethodDelete, ""); r.Status != http.StatusNoContent {
		t.Fatalf("the end of the session: %d %s", r.Status, r.Body)
	}
	for range each {
		r := <-cut
		contains(t, r.Last().Raw, `"isError":true`, "outcome unknown: ")
	}
	e.WaitFor("cancelled", each)
	gate.Open()
	for range each {
		if r := <-goOn; r.Last().Text() != "slept" {
			t.Errorf("another session's call: %v %s", r.Err, r.Body)
		}
	}
	if got := e.Count("cancelled"); got != each {
		t.Errorf("%d calls were cancelled, want %d", got, each)
	}
	for what, r := range map[string]mcptest.Reply{
		"a call in it": leaves.Post(toolCall(9, "alpha/echo", `{}`)), "its end once more": leaves.Do(t.Context(), http.MethodDelete, ""), "its stream": leaves.Do(t.Context(), http.MethodGet, ""),
	} {
		if r.Status != http.StatusNotFound {
			t.Errorf("%s: %d %s", what, r.Status, r.Body)
		}
	}
}
