//go:build unix

package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
	for way, connect := range map[string]func(t *testing.T, config, era string) toolCaller{"alone": alone, "shared": shared, "gateway": overHTTP} {
		for _, era := range []string{handshake, stateless} {
			t.Run(way+", "+era, func(t *testing.T) {
				t.Parallel()
				call := connect(t, mcptest.Config(t, document([]entry{fake(t, "a")}, expose)), era)
				for surface, spell := range surfaces {
					for n := range 12 { // 7 are announced behind the answer, 2 before it, 3 never
						tool := fmt.Sprintf("%s%d", surface, n)
						added := call("use_tool", fmt.Sprintf(`{"tool_name":"a/add_tool","tool_input":{"name":%q,"late":%t,"quiet":%t}}`, tool, n < 7, n >= 9))
						contains(t, added.Raw, "added "+tool)
						name, arguments := spell(tool)
						if m := inTime(call, name, arguments); m.IsError() || !strings.Contains(m.Raw, "nonce") || !strings.Contains(m.Raw, tool) {
							t.Errorf("%s: a tool that was just added is refused: %s", surface, m.Raw)
						}
					}
				}
			})
		}
	}
}

// A toolCaller calls a tool of dynmcp as a host does.
type toolCaller func(tool, arguments string) mcptest.Message

// inTime calls a tool again as long as the answer took the two seconds that a call waits for lists: on a
// busy machine none is listed in that time.
func inTime(call toolCaller, tool, arguments string) (m mcptest.Message) {
	for range 30 {
		began := time.Now()
		if m = call(tool, arguments); !m.IsError() || time.Since(began) < 2*time.Second {
			break
		}
	}
	return m
}

func alone(t *testing.T, config, era string) toolCaller {
	return onConn(mcptest.StartDynmcp(t, "-c", config).Conn, era)
}

func shared(t *testing.T, config, era string) toolCaller {
	socket := socketPath(t)
	serveOn(t, socket, config)
	return onConn(dial(t, socket), era)
}

func onConn(host *mcptest.Conn, era string) toolCaller {
	if era == handshake {
		host.Initialize(era, `{}`)
	}
	return func(tool, arguments string) mcptest.Message {
		return host.Call("tools/call", mcptest.ToolParams(tool, arguments, metaOf(era)...))
	}
}

func overHTTP(t *testing.T, config, era string) toolCaller {
	web := serveHTTP(t, config)
	if era == handshake {
		web = web.begin("/mcp")
	}
	return func(tool, arguments string) mcptest.Message {
		var headers []string
		if era == stateless {
			headers = []string{"MCP-Protocol-Version", stateless, "Mcp-Method", "tools/call", "Mcp-Name", tool}
		}
		return web.call("/mcp", 1, "tools/call", string(mcptest.ToolParams(tool, arguments, metaOf(era)...)), headers...)
	}
}

// metaOf returns what each request of an era holds besides.
func metaOf(era string) []string {
	if era == handshake {
		return nil
	}
	return []string{mcptest.ModernMeta(`{}`)}
}
