package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The failure of a server to load is the answer itself, marked as an error, whichever tool of ours
// and method meets it: never a success whose text is a result.
func TestFailureOfALoadIsTheResultItself(t *testing.T) {
	t.Parallel()
	var calls [][2]string
	for _, method := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list", "vendor/x"} {
		calls = append(calls, [2]string{"mcp_call", fmt.Sprintf(`{"method":%q,"params":{"server":"bad"}}`, method)})
	}
	calls = append(calls,
		[2]string{"mcp_call", `{"method":"tools/call","params":{"name":"mcp_call","arguments":{"method":"tools/list","params":{"server":"bad"}}}}`},
		[2]string{"mcp_call", `{"method":"tools/call","params":{"name":"bad/x"}}`},
		[2]string{"load_mcp", `{"mcp_name":"bad"}`},
		[2]string{"use_tool", `{"tool_name":"bad/x","tool_input":{}}`},
		[2]string{"discover_tool", `{"tool_name":"bad/x"}`},
		[2]string{"meta_call", `{"path":"/bad/x","args":{}}`},
		[2]string{"proxy", `{"action":"call","type":"tool","path":"bad/x"}`},
		[2]string{"proxy", `{"action":"info","type":"tool","path":"bad/x"}`},
		[2]string{"proxy", `{"action":"list","type":"tool","filter":{"prefix":"bad/"}}`},
		[2]string{"proxy", `{"action":"batch","operations":[{"action":"list","type":"tool","filter":{"prefix":"bad_"}}]}`},
	)
	bad := entry{name: "bad", fields: map[string]any{"command": "no-such-command-anywhere", "description": "Breaks.", "load_budget": 0}}
	host := mcptest.StartDynmcp(t, "-c", mcptest.Config(t, document([]entry{bad, fake(t, "alpha")},
		`"expose": ["discover", "tree", "browser", "proxy"]`)))
	greet(host)
	for _, call := range calls {
		m := host.Tool(call[0], call[1])
		if !m.IsError() || !strings.Contains(m.Raw, "no-such-command-anywhere") || strings.Contains(m.Raw, `\"isError\"`) || strings.Contains(m.Raw, `\"content\"`) {
			t.Errorf("%s %s: got %s", call[0], call[1], m.Raw)
		}
	}
}

func TestProxyListsByThePrefixesThatCallTakes(t *testing.T) {
	t.Parallel()
	alpha, later := fake(t, "alpha-one"), deferred(t, "later", "Later")
	host := mcptest.StartDynmcp(t, "-c", mcptest.Config(t, document([]entry{alpha, later}, `"expose": ["proxy"]`)))
	greet(host)
	list := func(prefix string) string {
		return host.Tool("proxy", `{"action":"list","type":"tool","filter":{"prefix":`+quote(prefix)+`}}`).Raw
	}
	for _, prefix := range []string{"alpha-one/", "alpha_one_", "alpha-one__ec", "alpha-one.", "mcp__alpha-one__"} {
		contains(t, list(prefix), `alpha-one/echo`)
	}
	contains(t, list("nobody"), `"text":"[]"`, "Nothing of what is known matches. Servers of which nothing is known: later.")
	nothingStarted(t, later)
	contains(t, list("later_"), `later/echo`)
}
