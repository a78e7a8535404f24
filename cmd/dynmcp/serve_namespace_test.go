package main_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

func TestANamespaceIsOneServerAsItIs(t *testing.T) {
	t.Parallel()
	git, docs := fake(t, "git"), deferred(t, "docs", "Read documents.")
	web := serveHTTP(t, mcptest.Config(t, document([]entry{git, docs})))
	for path, e := range map[string]entry{"/mcp/git": git, "/mcp/docs/what/follows": docs} {
		host := web.begin(path)
		got := names(host.call(path, 1, "tools/list", `{}`).Member("tools"), "name")
		if len(got) == 0 || strings.Contains(strings.Join(got, " "), "use_tool") || strings.Contains(strings.Join(got, " "), "__") {
			t.Errorf("%s: the tools are %v", path, got)
		}
		if m := host.call(path, 2, "tools/call", string(mcptest.ToolParams("echo", `{"via":"`+path+`"}`))); m.Text() != `{"via":"`+path+`"}` {
			t.Errorf("%s: got %s", path, m.Raw)
		}
		if m := host.call(path, 3, "tools/call", string(mcptest.ToolParams("use_tool", `{}`))); m.Error == nil {
			t.Errorf("%s: use_tool is there: %s", path, m.Raw)
		}
		if n := e.Count("start"); n != 1 {
			t.Errorf("%s was started %d times", e.name, n)
		}
	}
	all := web.begin("/mcp")
	if got := names(all.call("/mcp", 1, "tools/list", `{}`).Member("tools"), "name"); len(got) != 3 {
		t.Errorf("of all servers the tools are %v", got)
	}
	if status, _, text := all.send("POST", "/mcp/git", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); status != 404 {
		t.Errorf("a session of another path: %d %s", status, text)
	}
	for _, path := range []string{"/mcp/nobody", "/mcp/GIT", "/mcp/..%2fgit", "/health/nobody"} {
		if status, _, text := web.send("GET", path, "", "Accept", "text/event-stream"); status != 404 || !strings.Contains(text, `"error"`) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// A server is reached by its name in the config, even if dynmcp would not allow that name.
func TestANamespaceIsCalledAsTheConfigCallsIt(t *testing.T) {
	t.Parallel()
	e := fake(t, "git")
	web := serveHTTP(t, mcptest.Config(t, fmt.Sprintf(`{"servers": {"Git2": %s}}`, mcptest.Raw(e.fields))))
	for _, name := range []string{"Git2", "git2"} {
		if m := web.call("/mcp/"+name+"/message", 1, "tools/call", string(mcptest.ToolParams("echo", `{"x":1.0}`))); m.Text() != `{"x":1.0}` {
			t.Errorf("%s: got %s", name, m.Raw)
		}
		host := web.begin("/mcp/" + name)
		if m := host.call("/mcp/"+name, 1, "tools/call", string(mcptest.ToolParams("echo", `{"x":1.0}`))); m.Text() != `{"x":1.0}` {
			t.Errorf("%s, in a session: got %s", name, m.Raw)
		}
		if status, _, text := web.send("GET", "/health/"+name, ""); status != 200 || !strings.Contains(text, `{"namespace":"`+name+`","status":"running"`) {
			t.Errorf("%s: got %d %s", name, status, text)
		}
	}
	if status, _, text := web.send("GET", "/health/GIT2", ""); status != 404 {
		t.Errorf("in another case: %d %s", status, text)
	}
	if got := e.Count("start"); got != 1 {
		t.Errorf("the server was started %d times", got)
	}
}

func TestHealthOfAServer(t *testing.T) {
	t.Parallel()
	e := deferred(t, "git", "Versions.")
	web := serveHTTP(t, mcptest.Config(t, document([]entry{e})))
	if _, _, text := web.send("GET", "/health/git", ""); strings.TrimSpace(text) != `{"namespace":"git","status":"no subprocess"}` {
		t.Errorf("before it was used: %s", text)
	}
	web.send("POST", "/mcp/git/message", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if _, _, text := web.send("GET", "/health/git", ""); !strings.HasPrefix(text, `{"namespace":"git","status":"running","pid":`) {
		t.Errorf("when it was used: %s", text)
	}
}

// HTTP with SSE as its hosts use it, with the header of the API's own example, and with the
// Accept header of clients that change an EventSource's headers.
func TestHTTPWithSSE(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, mcptest.Config(t, document([]entry{fake(t, "git")})))
	for _, header := range [][2]string{{"Accept", "text/event-stream"}, {"Content-Type", "text/event-stream"}, {"Accept", "*/*"}} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", web.url+"/mcp/git", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(header[0], header[1])
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewReader(resp.Body)
		next := func(event string) string {
			t.Helper()
			for name := ""; ; {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				line = strings.TrimSuffix(line, "\n")
				if text, ok := strings.CutPrefix(line, "event: "); ok {
					name = text
				}
				if data, ok := strings.CutPrefix(line, "data: "); ok && name == event {
					return data
				}
			}
		}
		endpoint := next("endpoint")
		if !strings.HasPrefix(endpoint, "/mcp/git/message?sessionId=") {
			t.Fatalf("the endpoint is %q", endpoint)
		}
		if ping := next("ping"); !strings.HasPrefix(ping, `{"time":"`) {
			t.Errorf("got ping %q", ping)
		}
		for i, line := range []string{
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + string(mcptest.ToolParams("echo", `{"message":"Hello"}`)) + `}`,
		} {
			if status, _, text := web.send("POST", endpoint, line); status != 202 || text != "" {
				t.Fatalf("got %d %q", status, text)
			}
			if i == 1 {
				continue
			}
			if got := next("message"); !strings.Contains(got, fmt.Sprintf(`"id":%d,"result"`, i/2)) {
				t.Errorf("got %s", got)
			}
		}
	}
	if status, _, _ := web.send("POST", "/mcp/git/message?sessionId=nobody", `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != 404 {
		t.Errorf("an unknown session: %d", status)
	}
}
