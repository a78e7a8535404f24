package main_test

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The capabilities are the union of those of all servers, and the superset while a server is
// unknown.

const superset = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}`

func TestCapabilitiesOfASingleServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ no, want string }{
		{"", superset},
		{"resources,prompts,logging,completions", `{"tools":{"listChanged":true}}`},
		{"tools,prompts,completions", `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}}`},
		{"resources,logging", `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"completions":{}}`},
	} {
		var args []string
		if c.no != "" {
			args = []string{"-no", c.no}
		}
		host := mcptest.StartDynmcp(t, append([]string{"--", mcptest.Fake(t)}, args...)...)
		if got := string(host.Initialize(handshake, nil).Member("capabilities")); got != c.want {
			t.Errorf("without %s: got %s, want %s", c.no, got, c.want)
		}
	}
}

func TestCapabilitiesOfKnownServersAreTheirUnion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ first, second, want string }{
		{"resources,prompts,logging,completions", "resources,prompts,logging,completions", `{"tools":{"listChanged":true}}`},
		{"tools", "tools", superset},
		{"resources,logging", "prompts,completions", superset},
		{"resources,prompts", "resources,completions", `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}`},
	} {
		t.Run(c.first+" and "+c.second, func(t *testing.T) {
			t.Parallel()
			// Only a host without a handshake can ask again when all servers are known.
			host := start(t, fake(t, "a", "-no", c.first), deferred(t, "b", "Later", "-no", c.second))
			if got := string(host.Call("server/discover", modern()).Member("capabilities")); got != superset {
				t.Errorf("before: got %s, want %s", got, superset)
			}
			host.Call("tools/list", modern())
			host.Call("tools/call", mcptest.ToolParams("load_mcp", loadArguments("b"), era()))
			if got := string(host.Call("server/discover", modern()).Member("capabilities")); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestUnknownServersMeanTheSuperset(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]entry{
		"lazy":  deferred(t, "later", "Later", "-no", "resources,prompts"),
		"eager": fake(t, "hangs", "-fault", "hang-init"),
	} {
		host := start(t, e)
		if got := string(host.Initialize(handshake, nil).Member("capabilities")); got != superset {
			t.Errorf("%s: got %s, want %s", name, got, superset)
		}
	}
}

func TestMethodsThatNoServerHasAreRefused(t *testing.T) {
	t.Parallel()
	host := serve(t,
		fake(t, "a", "-no", "resources,prompts,logging,completions"),
		deferred(t, "b", "Later", "-no", "resources,prompts,logging,completions"))
	requests := map[string]string{
		"resources/list":           `{}`,
		"resources/templates/list": `{}`,
		"resources/read":           `{"uri":"fake://a/text"}`,
		"resources/subscribe":      `{"uri":"fake://a/text"}`,
		"prompts/list":             `{}`,
		"prompts/get":              `{"name":"greet"}`,
		"logging/setLevel":         `{"level":"info"}`,
		"completion/complete":      `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"x"}}`,
	}
	for _, list := range []string{"resources/list", "resources/templates/list", "prompts/list"} {
		if m := host.Call(list, nil); m.Error != nil {
			t.Errorf("%s while b is not known: got %s", list, m.Raw)
		}
	}
	load(host, "b")
	for method, params := range requests {
		if m := host.Call(method, params); m.Code() != -32601 {
			t.Errorf("%s: got %s, want an error -32601", method, m.Raw)
		}
	}
}
