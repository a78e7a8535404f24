package main_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// What hosts over HTTP do at a bad moment, and what we do at one of theirs.

// A session that ends while its calls run: they are answered, and cancelled at their
// server; another session's goes on.
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

// SIGTERM while hosts of all kinds have calls in flight: each is answered, with its result
// or with what became of it, and nothing new is taken.
func TestSIGTERMAnswersHostsOverHTTP(t *testing.T) {
	t.Parallel()
	e, gate := fake(t, "alpha"), mcptest.NewGate(t)
	web := serveHTTP(t, mcptest.Config(t, document([]entry{e})))
	ending := fmt.Sprintf(`{"until":%q}`, gate.Path)
	const each = 4
	replies, total := make(chan mcptest.Reply), 0
	session := mcptest.NewClient(t, web.url+"/mcp")
	session.Initialize(handshake, nil)
	for _, input := range []string{ending, `{}`} {
		for id := range each {
			for _, send := range []func() mcptest.Reply{
				func() mcptest.Reply { return session.Post(toolCall(len(input)*each+id, "alpha/sleep", input)) },
				func() mcptest.Reply {
					return once(mcptest.NewClient(t, web.url+"/mcp"), "tools/call", "use_tool", `{"name":"use_tool","arguments":{"tool_name":"alpha/sleep","tool_input":`+input+`}}`)
				},
				func() mcptest.Reply {
					return mcptest.NewClient(t, web.url+"/mcp/alpha/message").Post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + string(mcptest.ToolParams("sleep", input)) + `}`)
				},
				func() mcptest.Reply {
					return mcptest.NewClient(t, web.url+"/meta_call").Post(`{"path":"/alpha/sleep","args":` + input + `}`)
				},
			} {
				total++
				go func() { replies <- send() }()
			}
		}
	}
	e.WaitFor("call sleep", total)
	stream, _ := session.Listen()
	web.dynmcp.Signal(syscall.SIGTERM)
	late := mcptest.NewClient(t, web.url+"/mcp")
	mcptest.Eventually(t, "nothing new is taken", func() bool {
		r := late.Do(context.Background(), http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		return r.Err != nil || r.Status == http.StatusServiceUnavailable
	})
	gate.Open()
	for range total {
		r := <-replies
		switch text := r.Body; {
		case r.Err != nil:
			t.Errorf("not answered: %v, after %q", r.Err, text)
		case strings.Contains(text, "slept"):
		case strings.Contains(text, "shutting down") && strings.Contains(text, "unknown"): // the outcome
		default:
			t.Errorf("got %d %s", r.Status, text)
		}
	}
	for range stream { // until it ends
	}
	if code := web.dynmcp.Wait(); code != 0 {
		t.Errorf("got exit status %d", code)
	}
}
