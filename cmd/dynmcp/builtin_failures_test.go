package main_test

import (
	"cmp"
	"encoding/json"
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

// Every refusal of an unknown tool, server, resource, prompt, path or task says once that nothing
// was called: in the text that a model reads, or in the data of an error.
func TestRefusalsSayThatNothingWasCalled(t *testing.T) {
	t.Parallel()
	bad := entry{name: "bad", fields: map[string]any{"command": "no-such-command-anywhere"}}
	host := mcptest.StartDynmcp(t, "-c", mcptest.Config(t, document([]entry{bad, fake(t, "alpha"), deferred(t, "later", "Later")},
		`"expose": ["discover", "direct", "tree", "browser", "proxy", "script"]`)))
	greet(host)
	names := []string{"nobody/x", "nobody", "alpha/no", "alpha__no", "later/no", "bad/x", "alpha/ech", "no\nline", ""}
	asked := map[string][]string{}
	for _, name := range names {
		asked["use_tool"] = append(asked["use_tool"], fmt.Sprintf(`{"tool_name":%q,"tool_input":{}}`, name))
		asked["discover_tool"] = append(asked["discover_tool"], fmt.Sprintf(`{"tool_name":%q}`, cmp.Or(name, "x")))
		asked["mcp_call"] = append(asked["mcp_call"], fmt.Sprintf(`{"method":"tools/call","params":{"name":%q}}`, name))
		asked["meta_call"] = append(asked["meta_call"], fmt.Sprintf(`{"path":%q,"args":{}}`, "/"+name))
		asked["meta_desc"] = append(asked["meta_desc"], fmt.Sprintf(`{"path":%q}`, "/x"+name))
		for _, kind := range []string{"tool", "resource", "prompt"} {
			for _, action := range []string{"call", "info"} {
				asked["proxy"] = append(asked["proxy"], fmt.Sprintf(`{"action":%q,"type":%q,"path":%q}`, action, kind, name))
			}
		}
	}
	asked["discover_tool"] = append(asked["discover_tool"], `{"server":"nobody"}`, `{"server":"nobody","query":"x"}`)
	asked["load_mcp"] = []string{`{"mcp_name":"nobody"}`, `{"mcp_name":"al"}`}
	asked["mcp_call"] = append(asked["mcp_call"], `{"method":"tools/list","params":{"server":"nobody"}}`, `{"method":"vendor/x","params":{"server":"nobody"}}`,
		`{"method":"prompts/get","params":{"name":"no"}}`, `{"method":"resources/read","params":{"uri":"no:where"}}`)
	for tool, all := range asked {
		for _, arguments := range all {
			m := host.Tool(tool, arguments)
			if !m.IsError() || strings.Count(m.Raw, "not_sent") != 1 {
				t.Errorf("%s %s: got %s", tool, arguments, m.Raw)
			}
		}
	}
	for _, name := range []string{"nobody/x", "alpha/no", "later/no", "bad/x"} {
		source := "try { await call(" + quote(name) + ", {}) } catch (e) { throw new Error('it is ' + e.outcome) }"
		contains(t, host.Tool("run_script", `{"code":`+quote(source)+`}`).Raw, "it is not_sent")
	}
	for method, all := range map[string][]string{
		"tools/call":     {`{"name":"alpha__no","arguments":{}}`, `{"name":"nobody","arguments":{}}`, `{"name":"bad__x","arguments":{}}`},
		"prompts/get":    {`{"name":"no"}`},
		"resources/read": {`{"uri":"no:where"}`},
		"completion/complete": {
			`{"ref":{"type":"ref/prompt","name":"no"},"argument":{"name":"a","value":""}}`,
			`{"ref":{"type":"ref/resource","uri":"no:where"},"argument":{"name":"a","value":""}}`,
		},
	} {
		for _, params := range all {
			if m := host.Call(method, json.RawMessage(params)); !strings.Contains(m.Raw, `"outcome":"not_sent"`) {
				t.Errorf("%s %s: got %s", method, params, m.Raw)
			}
		}
	}
}
