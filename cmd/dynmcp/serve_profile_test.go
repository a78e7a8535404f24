package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A session of a profile sees only its servers, with its overrides, although the gateway
// serves all.
func TestASessionOfAProfileSeesItsServersAlone(t *testing.T) {
	t.Parallel()
	git, docs, diary := deferred(t, "git", "Versions."), deferred(t, "docs", "Documents."), deferred(t, "diary", "What was.")
	config := mcptest.Config(t, document([]entry{git, docs, diary}, `"profiles": {
		"work": {"servers": ["git", "docs"], "overrides": {"git": {"description": "Versions of the team.", "tool_filter": ["echo"]}}},
		"home": {"servers": ["diary", "git"], "expose": ["direct"]}}`))
	web := serveHTTP(t, config)
	work, home := web.begin("/mcp/@work"), web.begin("/mcp/@home")
	list := work.call("/mcp/@work", 1, "tools/list", `{}`).Raw
	if !strings.Contains(list, "Versions of the team.") || !strings.Contains(list, "docs") || strings.Contains(list, "diary") {
		t.Errorf("a model of work reads %s", list)
	}
	for _, test := range []struct{ tool, input, want string }{
		{"use_tool", `{"tool_name": "diary/echo", "tool_input": {}}`, "unknown tool"},
		{"load_mcp", `{"mcp_name": "diary"}`, "diary"},
		{"discover_tool", `{"server": "diary"}`, "diary"},
		{"discover_tool", `{"tool_name": "diary/echo"}`, "diary"},
		{"discover_tool", `{"tool_name": "git/read"}`, "git/read"},
	} {
		m := work.call("/mcp/@work", 2, "tools/call", string(mcptest.ToolParams(test.tool, test.input)))
		if !strings.Contains(m.Raw, `"isError":true`) || !strings.Contains(strings.ToLower(m.Text()), test.want) || strings.Contains(m.Text(), "What was") {
			t.Errorf("%s %s: got %s", test.tool, test.input, m.Raw)
		}
	}
	if m := work.call("/mcp/@work", 3, "tools/call", string(mcptest.ToolParams("use_tool", `{"tool_name": "git/echo", "tool_input": {"x": 1.0}}`))); m.Text() != `{"x": 1.0}` {
		t.Errorf("got %s", m.Raw)
	}
	if n := diary.Count("start"); n != 0 {
		t.Errorf("a server of another profile was started %d times", n)
	}
	if m := home.call("/mcp/@home", 1, "tools/call", string(mcptest.ToolParams("git__echo", `{"x":1}`))); m.Text() != `{"x":1}` {
		t.Errorf("home, which exposes tools as themselves: got %s", m.Raw)
	}
	if n := git.Count("start"); n > 1 {
		t.Errorf("two profiles share git, which was started %d times", n)
	}
	all := web.begin("/mcp").call("/mcp", 1, "tools/list", `{}`).Raw
	if !strings.Contains(all, "diary") || strings.Contains(all, "Versions of the team.") {
		t.Errorf("without a profile: %s", all)
	}
	if status, _, text := web.send("POST", "/mcp/@wrok", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); status != 404 || !strings.Contains(text, "did you mean work?") {
		t.Errorf("an unknown profile: %d %s", status, text)
	}
}

// A server outside the profile starts no process and appears in no answer, whatever the
// profile.
func TestServersOutsideAProfileCostNothing(t *testing.T) {
	t.Parallel()
	names := []string{"alphaone", "betatwo", "gammathree"}
	surfaces := []string{"discover", "tree", "browser", "proxy", "direct", "auto"}
	for in := 1; in < 1<<len(names); in++ {
		expose := surfaces[in%len(surfaces)]
		t.Run(fmt.Sprintf("%03b %s", in, expose), func(t *testing.T) {
			var entries []entry
			var patterns []string
			for i, name := range names {
				e := fake(t, name)
				if expose != "direct" && (in*5)>>i&1 == 1 {
					e = e.with("description", "Words about "+name+".")
				}
				entries = append(entries, e)
				if in>>i&1 == 1 {
					patterns = append(patterns, fmt.Sprintf("%q", name))
				}
			}
			config := mcptest.Config(t, document(entries, fmt.Sprintf(`"profiles": {"p": {"servers": [%s], "expose": [%q]}}`, strings.Join(patterns, ","), expose)))
			host := mcptest.StartDynmcp(t, "--profile", "p", "-c", config)
			host.Initialize(handshake, nil)
			var said strings.Builder
			for _, method := range allLists {
				said.WriteString(host.Call(method, nil).Raw)
			}
			for _, call := range []string{
				`{"name": "discover_tool", "arguments": {"query": "echo"}}`, `{"name": "mcp_discover", "arguments": {"jsonpath": "$.servers[*]"}}`,
				`{"name": "proxy", "arguments": {"action": "list", "type": "tool"}}`, `{"name": "meta_tree", "arguments": {"path": "/"}}`,
			} {
				said.WriteString(host.Call("tools/call", json.RawMessage(call)).Raw)
			}
			for i, e := range entries {
				within := in>>i&1 == 1
				if n := e.Count("start"); !within && (n > 0 || strings.Contains(said.String(), names[i])) {
					t.Errorf("%s is outside, was started %d times, and the host read %s", names[i], n, said.String())
				}
				if within && !strings.Contains(said.String(), names[i]) {
					t.Errorf("%s is inside, and the host read %s", names[i], said.String())
				}
			}
		})
	}
}

// A changed profile starts the servers that join it and ends those that leave. The others are
// not restarted.
func TestReloadOfAProfile(t *testing.T) {
	t.Parallel()
	alpha, beta, gamma := fake(t, "alpha"), fake(t, "beta"), fake(t, "gamma")
	with := func(servers string) string {
		return document([]entry{alpha, beta, gamma}, `"profiles": {"p": [`+servers+`]}`)
	}
	path := mcptest.Config(t, with(`"alpha", "beta"`))
	l := &live{mcptest.StartDynmcp(t, "-c", path, "--profile", "p"), t, path}
	greet(l.Host)
	kept := l.pid("alpha")
	if n := gamma.Count("start"); n != 0 {
		t.Errorf("a server outside the profile was started %d times", n)
	}
	l.write(with(`"alpha", "gamma"`), false)
	l.await(1)
	gamma.WaitFor("start", 1)
	beta.WaitFor("exit", 1)
	if l.pid("alpha") != kept {
		t.Error("a server that stays was started again")
	}
	if m := use(l.Host, "beta/pid", nil); !m.IsError() {
		t.Errorf("a server that left the profile answers: %s", m.Raw)
	}
}
