//go:build unix

package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A tool that a running server has and has not announced is found by its name, on every surface:
// the server may name it in an answer before it announces it, or forget to. Tools that were announced
// meanwhile do not use up the requests for lists.
func TestToolThatIsNotAnnouncedIsCalled(t *testing.T) {
	t.Parallel()
	surfaces := map[string]func(tool string) (name, arguments string){
		"discover": func(tool string) (string, string) {
			return "use_tool", fmt.Sprintf(`{"tool_name":"a/%s","tool_input":{"nonce":%[1]q}}`, tool)
		},
		"direct": func(tool string) (string, string) { return "a__" + tool, fmt.Sprintf(`{"nonce":%q}`, tool) },
		"tree": func(tool string) (string, string) {
			return "meta_call", fmt.Sprintf(`{"path":"/a/%s","args":{"nonce":%[1]q}}`, tool)
		},
		"browser": func(tool string) (string, string) {
			return "mcp_call", fmt.Sprintf(`{"method":"tools/call","params":{"name":"a/%s","arguments":{"nonce":%[1]q}}}`, tool)
		},
		"proxy": func(tool string) (string, string) {
			return "proxy", fmt.Sprintf(`{"action":"call","type":"tool","path":"a/%s","args":{"nonce":%[1]q}}`, tool)
		},
		"script": func(tool string) (string, string) {
			return "run_script", fmt.Sprintf(`{"code":"return await tools.a.%s({nonce: '%[1]s'})"}`, tool)
		},
	}
	expose := `"expose": ["discover", "direct", "tree", "browser", "proxy"], "scripts": {"tools": ["*"]}`
	for _, shared := range []bool{false, true} {
		for _, era := range []string{handshake, stateless} {
			t.Run(fmt.Sprintf("shared %t, %s", shared, era), func(t *testing.T) {
				t.Parallel()
				config := mcptest.Config(t, document([]entry{fake(t, "a")}, expose))
				var host *mcptest.Conn
				if shared {
					socket := socketPath(t)
					serveOn(t, socket, config)
					host = dial(t, socket)
				} else {
					host = mcptest.StartDynmcp(t, "-c", config).Conn
				}
				var meta []string
				if era == handshake {
					host.Initialize(era, `{}`)
				} else {
					meta = append(meta, mcptest.ModernMeta(`{}`))
				}
				call := func(tool, arguments string) mcptest.Message {
					return host.Call("tools/call", mcptest.ToolParams(tool, arguments, meta...))
				}
				for surface, spell := range surfaces {
					for n := range 10 {
						tool := fmt.Sprintf("%s%d", surface, n)
						contains(t, call("use_tool", fmt.Sprintf(`{"tool_name":"a/add_tool","tool_input":{"name":%q,"quiet":%t}}`, tool, n >= 7)).Raw, "added "+tool)
						name, arguments := spell(tool)
						if m := call(name, arguments); m.IsError() || !strings.Contains(m.Raw, "nonce") || !strings.Contains(m.Raw, tool) {
							t.Errorf("%s: a tool that was just added is refused: %s", surface, m.Raw)
						}
					}
				}
			})
		}
	}
}
