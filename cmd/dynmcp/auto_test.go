package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The surface auto shows every tool to a host that has a tool search of its own, and the
// three tools to any other host.

const autoConfig = `"expose": ["auto"], "startup_wait": "5m"`

// shakeHands returns a host of this name, after its handshake.
func (h *webHost) shakeHands(name string) *mcptest.Client {
	c := mcptest.NewClient(h.t, h.url+"/mcp")
	r := c.Post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + helloOf(name) + `}`)
	c.Session = r.Header.Get("Mcp-Session-Id")
	return c
}

func TestOneGatewayShowsEachHostWhatSuitsIt(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, mcptest.Config(t, document([]entry{fake(t, "alpha")}, autoConfig)))

	stateless := func(client, method, params string) string {
		meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":%q,"version":"1"}}`, client)
		headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}
		if name := mcptest.Parse(`{"params":{` + params + `}}`).Params; params != "" {
			headers = append(headers, "Mcp-Name", strings.Trim(string(mcptest.Message{Result: name}.Member("name")), `"`))
			params += ","
		}
		_, _, body := web.send("POST", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, meta), headers...)
		return body
	}
	claude, other := web.shakeHands("claude-code"), web.shakeHands("some-host")

	ofClaude := names(claude.Call("tools/list", nil).Member("tools"), "name")
	if !slices.Contains(ofClaude, "alpha__echo") || slices.Contains(ofClaude, "discover_tool") {
		t.Errorf("Claude Code sees %v", ofClaude)
	}
	ofOther := names(other.Call("tools/list", nil).Member("tools"), "name")
	if !slices.Equal(ofOther, []string{"discover_tool", "use_tool"}) {
		t.Errorf("another host sees %v", ofOther)
	}
	if got := claude.Tool("alpha__echo", `{"n":1}`).Text(); got != `{"n":1}` {
		t.Errorf("got %s", got)
	}
	contains(t, string(claude.Tool("use_tool", `{"tool_name":"alpha/echo"}`).Raw), "Unknown tool: use_tool")
	if got := other.Tool("use_tool", `{"tool_name":"alpha/echo","tool_input":{"n":2}}`).Text(); got != `{"n":2}` {
		t.Errorf("got %s", got)
	}
	contains(t, string(other.Tool("alpha__echo", `{}`).Raw), "Call it through use_tool")

	contains(t, stateless("claude-code", "tools/list", ""), `"alpha__echo"`)
	lacks(t, stateless("some-host", "tools/list", ""), `"alpha__echo"`)
	contains(t, stateless("claude-code", "tools/call", `"name":"alpha__echo","arguments":{"n":3}`), `{\"n\":3}`)
	contains(t, stateless("some-host", "tools/call", `"name":"use_tool","arguments":{"tool_name":"alpha/echo","tool_input":{"n":4}}`), `{\"n\":4}`)
}

// The instructions match the surface. A new config that gives the host another surface is
// announced, even where the list is stable otherwise.
func TestAutoOverStdio(t *testing.T) {
	t.Parallel()
	alpha := fake(t, "alpha")
	path := mcptest.Config(t, document([]entry{alpha}, autoConfig))
	l := &live{mcptest.StartDynmcp(t, "-c", path), t, path}
	m := l.Call("initialize", helloOf("claude-code"))
	contains(t, string(m.Member("instructions")), "are added when they have started: alpha.")
	l.Notify("notifications/initialized", nil)
	if got := tools(l.Host); !slices.Contains(got, "alpha__echo") {
		t.Errorf("got %v", got)
	}
	l.write(document([]entry{alpha}, autoConfig, `"host": "other"`), true)
	l.WaitMethod(toolsChanged, 1)
	if got := tools(l.Host); !slices.Equal(got, []string{"discover_tool", "use_tool"}) {
		t.Errorf("got %v", got)
	}
	l.write(document([]entry{alpha}, autoConfig), true)
	l.WaitMethod(toolsChanged, 2)
	if got := tools(l.Host); !slices.Contains(got, "alpha__echo") {
		t.Errorf("got %v", got)
	}
}

// Each host gets names within its limit, and calls tools by them: two names that differ only
// beyond the limit stay distinct.
func TestNamesOfToolsFitEachHost(t *testing.T) {
	t.Parallel()
	stem := strings.Repeat("very_", 11)
	tool := func(name string) string { return `{"name":` + quote(name) + `,"inputSchema":{"type":"object"}}` }
	alpha := fake(t, "alpha", "-bare", "-tool", tool(stem+"one"), "-tool", tool(stem+"two"), "-tool", tool("short"))
	for _, surface := range []string{`"expose": ["direct"]`, `"pin": [` + quote("alpha/"+stem+"one") + `, ` + quote("alpha/"+stem+"two") + `, "alpha/short"]`} {
		web := serveHTTP(t, mcptest.Config(t, document([]entry{alpha}, surface, `"startup_wait": "5m"`)))
		for client, longest := range map[string]int{"claude-code": 51, "Visual Studio Code": 53, "some-host": 64} {
			host := web.shakeHands(client)
			var shown []string
			for _, name := range names(host.Call("tools/list", nil).Member("tools"), "name") {
				if !strings.HasPrefix(name, "alpha__") {
					continue
				}
				shown = append(shown, name)
				if len(name) > longest {
					t.Errorf("%s, %s: %s has %d characters", surface, client, name, len(name))
				}
				if got := host.Tool(name, `{"n":1}`).Text(); got != `{"n":1}` {
					t.Errorf("%s, %s: %s answers %s", surface, client, name, got)
				}
			}
			slices.Sort(shown)
			if len(slices.Compact(shown)) != 3 || !slices.Contains(shown, "alpha__short") {
				t.Errorf("%s, %s: got %v", surface, client, shown)
			}
		}
	}
}
