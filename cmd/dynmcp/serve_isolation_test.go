package main_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// pid returns the process id of the server that answers a host.
func pid(c *mcptest.Client, server string) string {
	return c.Call("tools/call", useParams(server+"/pid", nil)).Text()
}

// Two users have two sessions each. A server that isolates sessions has four processes, one
// that isolates users has two, any other one. Each process is told what its host can do, asks
// that host alone, and ends with it.
func TestIsolationOverHTTP(t *testing.T) {
	t.Parallel()
	alone := deferred(t, "alone", "One for each session.").with("isolation", "session").with("max_sessions", 4)
	users := deferred(t, "users", "One for each user.").with("isolation", "principal")
	run := serveUsers(t, []entry{alone, users, fake(t, "shared")})
	sessions := []struct {
		user, capabilities, method, params, answer string
		host                                       *mcptest.Client
	}{
		{"ann", `{"elicitation":{},"experimental":{"0":{}}}`, "elicitation/create", `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`, `{"action":"accept","content":{"of":"ann"}}`, nil},
		{"ann", `{"sampling":{},"experimental":{"1":{}}}`, "sampling/createMessage", `{"messages":[],"maxTokens":1}`, `{"role":"assistant","model":"m","content":{"type":"text","text":"of ann"}}`, nil},
		{"bob", `{"roots":{},"experimental":{"2":{}}}`, "roots/list", ``, `{"roots":[{"uri":"file:///of/bob"}]}`, nil},
		{"bob", `{"experimental":{"3":{}}}`, "", "", "", nil},
	}
	processes := map[string]map[string]bool{"alone": {}, "users": {}, "shared": {}}
	pids := make([]map[string]string, len(sessions)) // of each session, by server
	for i := range sessions {
		s := &sessions[i]
		s.host = run.client(s.user, "/mcp")
		s.host.Initialize(handshake, s.capabilities)
		pids[i] = map[string]string{}
		for server, all := range processes {
			pids[i][server] = pid(s.host, server)
			all[pids[i][server]] = true
		}
	}
	for server, want := range map[string]int{"alone": 4, "users": 2, "shared": 1} {
		if got := len(processes[server]); got != want {
			t.Errorf("%s: there are %d processes, want %d", server, got, want)
		}
	}
	if pids[0]["users"] != pids[1]["users"] || pids[2]["users"] != pids[3]["users"] {
		t.Errorf("a user's sessions do not share: %v", pids)
	}
	for i, s := range sessions {
		want := quote(`"capabilities":` + s.capabilities)
		if got := s.host.Call("tools/call", useParams("alone/received", `{"n":100}`)).Text(); strings.Count(got, `\"capabilities\":`) != 1 || !strings.Contains(got, want[1:len(want)-1]) {
			t.Errorf("the server of session %d was told %s", i, got)
		}
		for j, asker := range sessions {
			switch {
			case asker.method == "":
			case i == j:
				if _, m := asking(t, s.host, 50, "alone/ask", ask(s.method, s.params), s.answer, nil); !strings.Contains(m.Text(), "of") || m.IsError() {
					t.Errorf("session %d, %s: got %s", i, s.method, m.Raw)
				}
			default: // only the other session's process may ask this
				if m := s.host.Call("tools/call", useParams("alone/ask", ask(asker.method, asker.params))); !strings.Contains(m.Raw, "support") {
					t.Errorf("session %d, %s: got %s", i, asker.method, m.Raw)
				}
			}
		}
	}

	// The limit is reached until a session ends. That ends its own process and no other.
	fifth := run.client("bob", "/mcp")
	fifth.Initialize(handshake, `{}`)
	m := fifth.Call("tools/call", useParams("alone/pid", nil))
	if !m.IsError() {
		t.Errorf("a fifth has one: %s", m.Raw)
	}
	contains(t, m.Text(), "each session has a server of its own, and there are 4, the most that there may be", "not_sent", "max_sessions")
	if r := sessions[0].host.Do(t.Context(), http.MethodDelete, ""); r.Status != http.StatusNoContent {
		t.Fatalf("the end of a session: %d %s", r.Status, r.Body)
	}
	alone.WaitFor("exit", 1)
	for i, s := range sessions[1:] {
		for server, want := range pids[i+1] {
			if got := pid(s.host, server); got != want {
				t.Errorf("session %d has another %s now, %s and not %s", i+1, server, got, want)
			}
		}
	}
	if m := fifth.Call("tools/call", useParams("alone/pid", nil)); m.IsError() {
		t.Errorf("there is room, and the fifth has none: %s", m.Raw)
	}
	for e, want := range map[*entry][2]int{&alone: {5, 1}, &users: {2, 0}} {
		if starts, exits := e.Count("start"), e.Count("exit"); starts != want[0] || exits != want[1] {
			t.Errorf("%s was started %d times and ended %d times, want %v", e.name, starts, exits, want)
		}
	}
}

// Requests of the stateless era use their user's processes, since they have no session.
// Processes that nobody uses end.
func TestIsolationOfRequestsWithoutSession(t *testing.T) {
	t.Parallel()
	alone := deferred(t, "alone", "One for each session.").with("isolation", "session")
	brief := deferred(t, "brief", "One for each user.").with("isolation", "principal").with("idle_timeout", "1s")
	run := serveUsers(t, []entry{alone, brief})
	pids := map[string]map[string]bool{"ann": {}, "bob": {}}
	for user, own := range pids {
		for range 2 {
			m := postStateless(run.client(user, "/mcp"), "tools/call", "use_tool", `{"name":"use_tool","arguments":{"tool_name":"alone/pid"}}`).Last()
			own[m.Text()] = !m.IsError()
			postStateless(run.client(user, "/mcp"), "tools/call", "use_tool", `{"name":"use_tool","arguments":{"tool_name":"brief/pid"}}`)
		}
		m := run.client(user, "/mcp/alone/message").Post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pid"}}`).Last()
		own[m.Text()] = !m.IsError()
		if len(own) != 1 {
			t.Errorf("%s has the processes %v", user, own)
		}
	}
	if got := alone.Count("start"); got != 2 {
		t.Errorf("two users have %d processes", got)
	}
	brief.WaitFor("exit", 2)
	if got := alone.Count("exit"); got != 0 {
		t.Errorf("%d that are not idle for long have ended", got)
	}
}
