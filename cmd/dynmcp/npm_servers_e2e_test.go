//go:build unix && e2e

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Servers of npm that hosts share, each in the first session of an empty state.

// npmServer is a config with a program of npm.
func npmServer(t *testing.T, name string, command []string, more ...string) string {
	return mcptest.Config(t, document([]entry{{name: name, fields: map[string]any{"command": command[0], "args": command[1:]}}}, more...))
}

// viaGateway connects a host with a root to the gateway. It returns the texts of answers to calls.
func viaGateway(t *testing.T, era, config string) (use func(tool, input string) string) {
	t.Helper()
	web := serveHTTP(t, config)
	root := "file://" + t.TempDir()
	if era == handshake {
		client := mcp.NewClient(&mcp.Implementation{Name: "mcptest", Version: "1"}, nil)
		//lint:ignore SA1019 hosts have roots until all have migrated
		client.AddRoots(&mcp.Root{URI: root})
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.url + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: handshake})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Close() })
		return func(tool, input string) string {
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "use_tool", Arguments: map[string]any{"tool_name": tool, "tool_input": json.RawMessage(input)}})
			if err != nil {
				t.Fatal(err)
			}
			return string(mcptest.Raw(result))
		}
	}
	return func(tool, input string) string {
		more := ""
		for {
			_, _, body := web.send("POST", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":%q,"tool_input":%s}%s,%s}}`,
				tool, input, more, mcptest.ModernMeta(`{"roots":{}}`)), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "use_tool")
			m := lastMessage(body)
			if string(m.Member("resultType")) != `"input_required"` {
				return m.Raw
			}
			var answers []string
			for key := range wire.Members(m.Member("inputRequests")) {
				answers = append(answers, fmt.Sprintf(`%s:{"roots":[{"uri":%q}]}`, key, root))
			}
			more = `,"inputResponses":{` + strings.Join(answers, ",") + `},"requestState":` + string(m.Member("requestState"))
		}
	}
}

// lastMessage returns the last message of a body, in JSON or in events.
func lastMessage(body string) mcptest.Message {
	if at := strings.LastIndex(body, "data: "); at >= 0 {
		body, _, _ = strings.Cut(body[at+len("data: "):], "\n")
	}
	return mcptest.Parse(body)
}

// A browser shows the page that it opened before, though its server asks for the roots of the host in
// the first call, and hosts with other roots have other processes.
func TestPlaywrightKeepsItsPage(t *testing.T) {
	t.Parallel()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("chromium is needed: ", err)
	}
	command := mcptest.Npm(t, "@playwright/mcp@0.0.83", "--headless", "--isolated", "--no-sandbox", "--executable-path", chromium)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<title>Kept</title><h1>The kept page</h1>")
	}))
	t.Cleanup(page.Close)
	for _, era := range []string{handshake, stateless} {
		for _, way := range []string{"socket", "gateway"} {
			t.Run(way+", "+era, func(t *testing.T) { // one browser at a time
				config := npmServer(t, "pw", command)
				var use func(tool, input string) string
				if way == "gateway" {
					use = viaGateway(t, era, config)
				} else {
					socket := socketPath(t)
					serveOn(t, socket, config)
					h := joinWithRoot(t, socket, era, t.TempDir())
					use = func(tool, input string) string { return h.use(tool, input).Raw }
				}
				contains(t, use("pw/browser_navigate", fmt.Sprintf(`{"url":%q}`, page.URL)), "Kept")
				contains(t, use("pw/browser_tabs", `{"action":"list"}`), page.URL)
				contains(t, use("pw/browser_snapshot", `{}`), "The kept page")
			})
		}
	}
}

// A host sees the tools that the server lists to it alone, though it shares the server with hosts
// that can do more.
func TestEverythingListsWhatAHostCanUse(t *testing.T) {
	t.Parallel()
	command := mcptest.Npm(t, "@modelcontextprotocol/server-everything@2026.8.31", "stdio")
	socket := socketPath(t)
	serveOn(t, socket, npmServer(t, "all", command, `"expose": ["direct"]`))
	web := serveHTTP(t, npmServer(t, "all", command, `"expose": ["direct"]`))
	for declared := range hostsOfEachKind {
		alone := mcptest.Start(t, mcptest.HostOptions{Args: command})
		alone.Initialize(handshake, declared)
		var want []string
		for _, name := range names(alone.Call("tools/list", nil).Member("tools"), "name") {
			if name != "simulate-research-query" { // it runs only as a task
				want = append(want, "all__"+name)
			}
		}
		slices.Sort(want)
		alone.Kill()
		same := func(where string, list func() []string) {
			mcptest.Eventually(t, where+" with "+declared, func() bool {
				got := slices.Sorted(slices.Values(list()))
				return slices.Equal(got, want)
			})
		}
		for _, era := range []string{handshake, stateless} {
			shared := joinDeclaring(t, socket, era, declared)
			same("socket, "+era, func() []string { return names(shared.ask("tools/list", "").Member("tools"), "name") })
		}
		c := mcptest.NewClient(t, web.url+"/mcp")
		c.Initialize(handshake, declared)
		same("gateway, "+handshake, func() []string { return names(c.Call("tools/list", nil).Member("tools"), "name") })
		same("gateway, "+stateless, func() []string {
			_, _, body := web.send("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+mcptest.ModernMeta(declared)+`}}`, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
			return names(lastMessage(body).Member("tools"), "name")
		})
	}
}
