//go:build e2e

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

// SIGTERM while hosts of all kinds have calls in flight: each call is answered, with its
// result or its outcome, and no new call is accepted.
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
					return postStateless(mcptest.NewClient(t, web.url+"/mcp"), "tools/call", "use_tool", `{"name":"use_tool","arguments":{"tool_name":"alpha/sleep","tool_input":`+input+`}}`)
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
		r := late.Do(context.Background(), http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+hello+`}`)
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
	leaves(t, web.dynmcp)
}
