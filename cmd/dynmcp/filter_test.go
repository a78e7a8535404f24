package main_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A tool that a filter hides is unknown on every surface, and no call of it reaches the
// server.
func TestHiddenToolIsUnknownOnEverySurface(t *testing.T) {
	t.Parallel()
	e := fake(t, "git").with("tool_filter", []string{"!echo", "!secret*"})
	web := serveHTTP(t, mcptest.Config(t, document([]entry{e}, `"expose": ["discover", "direct", "tree", "browser", "proxy"]`)))
	call := func(path, name, arguments string) mcptest.Message {
		return web.begin(path).call(path, 1, "tools/call", string(mcptest.ToolParams(name, arguments)))
	}
	for _, c := range []struct{ path, tool, arguments string }{
		{"/mcp/git", "echo", `{}`},
		{"/mcp", "git__echo", `{}`},
		{"/mcp", "echo", `{}`},
		{"/mcp", "use_tool", `{"tool_name": "git/echo"}`},
		{"/mcp", "discover_tool", `{"tool_name": "git/echo"}`},
		{"/mcp", "meta_call", `{"path": "/git/echo"}`},
		{"/mcp", "meta_desc", `{"path": "/git/echo"}`},
		{"/mcp", "mcp_call", `{"method": "tools/call", "params": {"name": "git/echo", "arguments": {}}}`},
		{"/mcp", "mcp_call", `{"method": "tools/call", "params": {"name": "git__echo", "arguments": {}}}`},
		{"/mcp", "mcp_call", `{"method": "tools/call", "params": {"name": "mcp_call", "arguments": {"method": "tools/call", "params": {"name": "git/echo"}}}}`},
		{"/mcp", "proxy", `{"action": "call", "type": "tool", "path": "git/echo"}`},
		{"/mcp", "proxy", `{"action": "info", "type": "tool", "path": "git/echo"}`},
		{"/mcp", "proxy", `{"action": "batch", "operations": [{"action": "call", "type": "tool", "path": "git/echo"}]}`},
	} {
		name := fmt.Sprint(c.path, " ", c.tool, " ", c.arguments)
		if m := call(c.path, c.tool, c.arguments); !m.IsError() && m.Error == nil && c.arguments[:18] != `{"action": "batch"` {
			t.Errorf("%s: got %s", name, m.Raw)
		}
	}
	for _, c := range []struct{ path, tool, arguments string }{
		{"/mcp", "discover_tool", `{"server": "git"}`},
		{"/mcp", "discover_tool", `{"query": "Return the arguments as text"}`},
		{"/mcp", "meta_tree", `{"path": "/git"}`},
		{"/mcp", "mcp_discover", `{"jsonpath": "$.tools[*].name"}`},
		{"/mcp", "proxy", `{"action": "list", "type": "tool"}`},
	} {
		lacks(t, call(c.path, c.tool, c.arguments).Raw, "git/echo", "git__echo")
	}
	for path, name := range map[string]string{"/mcp/git": `"echo"`, "/mcp": "git__echo"} {
		lacks(t, web.begin(path).call(path, 1, "tools/list", `{}`).Raw, name)
	}
	if n := e.Count("call"); n > 0 {
		t.Errorf("%d calls reached the server: %q", n, e.Events())
	}
}

// The config says how much a list holds, whether the default is that for a model or for a
// program.
func TestListsHoldWhatTheConfigSays(t *testing.T) {
	t.Parallel()
	for limit, cut := range map[int]bool{1 << 20: false, 8 << 10: true} {
		config := document([]entry{fake(t, "alpha", "-tools", "300")}, `"expose": ["browser", "proxy"]`, fmt.Sprintf(`"catalog": {"max_list_bytes": %d}`, limit))
		host := mcptest.StartDynmcp(t, "-c", mcptest.Config(t, config))
		host.Initialize(handshake, nil)
		for tool, arguments := range map[string]string{"mcp_discover": `{"jsonpath":"$.tools[*]"}`, "proxy": `{"action":"list","type":"tool"}`} {
			var content []json.RawMessage
			if err := json.Unmarshal(host.Tool(tool, arguments).Member("content"), &content); err != nil {
				t.Fatal(err)
			}
			if got := len(content) > 1; got != cut || len(content[0]) < limit/2 && cut {
				t.Errorf("with %d bytes %s answered %d contents, the first of %d bytes", limit, tool, len(content), len(content[0]))
			}
		}
	}
}
