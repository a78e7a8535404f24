package main_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dynmcp/internal/mcptest"
)

// discover_tool: what it answers for a tool, a query, a server, and for names
// that nobody has.

const fullTool = `{"outputSchema":{"type":"object","x":1.0},"name":"full","inputSchema":{"z":1e2,"type":"object","a":[9007199254740993]},` +
	`"annotations":{"readOnlyHint":true,"openWorldHint":false,"title":"Full <one>"},"description":"Does all.\nSecond line.","x-grease":{"f":1.0}}`

func discover(host *mcptest.Host, arguments string) mcptest.Message {
	return host.Tool("discover_tool", arguments)
}

func TestDetailsOfATool(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-tool", fullTool))
	m := discover(host, `{"tool_name":"alpha/full"}`)
	contains(t, m.Text(), "alpha/full", "Does all.\nSecond line.", "Output Schema:", `{"type":"object","x":1.0}`,
		`{"z":1e2,"type":"object","a":[9007199254740993]}`, "readOnlyHint: true", "openWorldHint: false", "title: Full <one>")
	want := strings.Replace(fullTool, `"full"`, `"alpha/full"`, 1)
	if got := string(m.Member("structuredContent")); got != want {
		t.Errorf("got structured content\n%s\nwant\n%s", got, want)
	}
	if n := len(names(m.Member("content"), "type")); n != 1 || m.IsError() {
		t.Errorf("got %s", m.Raw)
	}
	lacks(t, discover(host, `{"tool_name":"alpha/echo"}`).Text(), "Output Schema:")
}

func TestDetailsInSingleWrapAreTheUpstreamsBytes(t *testing.T) {
	t.Parallel()
	host := wrap(t, "-tool", fullTool)
	if got := string(discover(host, `{"tool_name":"full"}`).Member("structuredContent")); got != fullTool {
		t.Errorf("got\n%s\nwant\n%s", got, fullTool)
	}
}

func TestUnknownToolNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-bare", "-tools", "3"), deferred(t, "later", "Later"))
	for _, m := range []mcptest.Message{
		discover(host, `{"tool_name":"alpha/tool_01"}`),
		use(host, "alpha/tool_01", nil),
	} {
		contains(t, m.Text(), "Unknown tool: alpha/tool_01", "Did you mean: alpha/tool_001", "later", "load_mcp",
			"Available tools: alpha/tool_001, alpha/tool_002, alpha/tool_003")
		if !m.IsError() {
			t.Errorf("no isError in %s", m.Raw)
		}
	}
}

func TestBareNamesAreUnknownInConfigMode(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha"))
	contains(t, discover(host, `{"tool_name":"echo"}`).Text(), "Unknown tool: echo", "Did you mean: alpha/echo")
	contains(t, use(host, "echo", nil).Text(), "Unknown tool: echo", "Did you mean: alpha/echo")
}

func TestNamesOfOtherServersSayWhy(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-bare", "-tools", "2"), deferred(t, "later", "Later"),
		entry{name: "gone", fields: map[string]any{"command": "no-such-command-anywhere"}})
	contains(t, discover(host, `{"tool_name":"later/x"}`).Text(), `call load_mcp {"mcp_name": "later"}`)
	contains(t, discover(host, `{"tool_name":"gone/x"}`).Text(), "gone is not connected")
	contains(t, discover(host, `{"tool_name":"alpha/x"}`).Text(), `discover_tool {"server": "alpha"}`)
	contains(t, discover(host, `{"tool_name":"nobody/x"}`).Text(), "Unknown tool: nobody/x", "Available tools:")
}

func TestQueryFindsTools(t *testing.T) {
	t.Parallel()
	host := serve(t,
		fake(t, "alpha", "-bare", "-tools", "5",
			"-tool", `{"name":"send_mail","description":"Send a letter to someone.","inputSchema":{"type":"object"}}`),
		deferred(t, "post", "Letters on paper"))
	m := discover(host, `{"query":"letter"}`)
	contains(t, m.Text(), "- alpha/send_mail: Send a letter to someone.", "post", "load_mcp")
	if got := names(m.Member("structuredContent", "tools"), "name"); !slices.Equal(got, []string{"alpha/send_mail"}) {
		t.Errorf("got %q", got)
	}
	if got := names(discover(host, `{"query":"generated","limit":2}`).Member("structuredContent", "tools"), "name"); len(got) != 2 {
		t.Errorf("limit 2: got %q", got)
	}
	contains(t, discover(host, `{"query":"xyzzy"}`).Text(), "No tool matches", "post")
}

func TestListingIsPagedToTheEnd(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-bare", "-tools", "250"))
	seen := map[string]bool{}
	arguments := `{"server":"alpha"}`
	for pages := 0; arguments != ""; pages++ {
		m := discover(host, arguments)
		list := names(m.Member("structuredContent", "tools"), "name")
		if len(list) == 0 || pages > 10 {
			t.Fatalf("page %d holds nothing: %s", pages, m.Raw)
		}
		for _, name := range list {
			seen[name] = true
			contains(t, m.Text(), "- "+name+": ")
		}
		arguments = ""
		if next := m.Member("structuredContent", "next"); next != nil {
			contains(t, m.Text(), fmt.Sprintf(`Go on with discover_tool {"server": "alpha", "offset": %s}`, next))
			arguments = fmt.Sprintf(`{"server":"alpha","offset":%s}`, next)
		}
	}
	if len(seen) != 250 {
		t.Errorf("got %d tools, want 250", len(seen))
	}
}

func TestListingOfEverything(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-bare", "-tools", "2", "-instructions", "Mind the gap."), deferred(t, "later", "Later"))
	m := discover(host, `{}`)
	contains(t, m.Text(), "- alpha (2 tools)", "- later (not loaded, call load_mcp): Later", "- alpha/tool_002:")
	if got := names(m.Member("structuredContent", "servers"), "name"); !slices.Equal(got, []string{"alpha", "later"}) {
		t.Errorf("got servers %q", got)
	}
	if all := host.Tool("discover_tool", nil); string(all.Result) != string(m.Result) {
		t.Errorf("without arguments: got %s", all.Raw)
	}
	contains(t, discover(host, `{"server":"alpha"}`).Text(), "Mind the gap.")
	contains(t, discover(host, `{"server":"alpah"}`).Text(), "Unknown MCP server: alpah", "later", "alpha")
}

func TestWrongArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	host := serve(t, deferred(t, "later", "Later"))
	for _, c := range []struct{ tool, arguments, want string }{
		{"discover_tool", `{"tool_name":7}`, `"tool_name" must be a string`},
		{"discover_tool", `{"limit":"many"}`, `"limit" must be`},
		{"discover_tool", `[]`, "must be an object"},
		{"use_tool", `{}`, `"tool_name" is missing`},
		{"use_tool", `{"tool_name":7}`, `"tool_name" must be a string`},
		{"use_tool", `{"tool_name":"later/x","tool_input":[1]}`, `"tool_input" must be an object`},
		{"use_tool", `{"tool_name":"later/x","tool_input":"{"}`, `"tool_input" is a string that holds no JSON`},
		{"use_tool", `{"tool_name":"later/x","tool_input":"[1]"}`, `"tool_input" must be an object`},
		{"load_mcp", `{}`, `"mcp_name" is missing`},
		{"load_mcp", `{"mcp_name":["later"]}`, `"mcp_name" must be a string`},
	} {
		m := host.Tool(c.tool, c.arguments)
		if !m.IsError() || m.Error != nil {
			t.Errorf("%s %s: got %s, want a result with isError", c.tool, c.arguments, m.Raw)
		}
		contains(t, m.Text(), c.tool, c.want)
	}
	if m := host.Tool("no_such_tool", nil); m.Code() != -32602 {
		t.Errorf("got %s", m.Raw)
	}
}

func TestToolFilterHidesEverywhere(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha").with("tool_filter", []string{"e*", "!env"})
	host := serve(t, e)
	text := catalogue(t, host)
	contains(t, text, "- alpha/echo:")
	lacks(t, text, "alpha/env", "alpha/raw")
	for _, name := range []string{"alpha/env", "alpha/raw"} {
		contains(t, use(host, name, nil).Text(), "Unknown tool: "+name)
		contains(t, discover(host, `{"tool_name":`+quote(name)+`}`).Text(), "Unknown tool: "+name)
	}
	if n := e.Count("call env") + e.Count("call raw"); n > 0 {
		t.Errorf("%d hidden tools were called", n)
	}
}

func TestOverridesAndAliasesHoldEverywhere(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha").
		with("tool_overrides", map[string]any{"echo": map[string]string{"description": "Ours."}}).
		with("path_aliases", map[string]string{"echo": "say"})
	host := serve(t, e)
	contains(t, catalogue(t, host), "- alpha/say: Ours.")
	contains(t, discover(host, `{"tool_name":"alpha/say"}`).Text(), "Name: alpha/say", "Description: Ours.")
	if got := use(host, "alpha/say", `{"n":1}`).Text(); got != `{"n":1}` {
		t.Errorf("got %q", got)
	}
	contains(t, use(host, "alpha/echo", nil).Text(), "Unknown tool: alpha/echo")
}

func TestToolsWithOddEntriesAreSkipped(t *testing.T) {
	t.Parallel()
	host := wrap(t, "-fault", "bad-entry,dup-tool")
	if got := use(host, "echo", `{}`).Text(); got != "{}" {
		t.Errorf("got %q", got)
	}
	var listed struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(discover(host, `{}`).Member("structuredContent"), &listed); err != nil {
		t.Error(err)
	}
}
