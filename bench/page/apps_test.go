//go:build e2e

package page

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// view is a view of MCP Apps without a library. When it has the result of its tool, it calls a tool that
// only views may call, another server's, and what it must not reach, and reports how that ended.
const view = `<!doctype html><html><body><script>
let last = 0; const waiting = {};
const request = (method, params) => new Promise((y, x) => { waiting[++last] = [y, x]; window.parent.postMessage({ jsonrpc: "2.0", id: last, method, params }, "*") });
const outcome = async f => { try { return JSON.stringify(await f()) } catch (e) { return "refused" } };
addEventListener("message", async e => {
  const m = e.data;
  if (e.source !== window.parent) return;
  if (!m.method && waiting[m.id]) return m.error ? waiting[m.id][1](m.error) : waiting[m.id][0](m.result);
  if (m.method !== "ui/notifications/tool-result") return;
  const call = (name, args) => request("tools/call", { name, arguments: args });
  const own = await outcome(async () => (await call("poll", {})).structuredContent.server);
  const read = await outcome(async () => (await request("resources/read", { uri: "ui://card/view.html" })).contents[0].uri);
  const theirs = await outcome(() => call("wipe", {}));
  const page = await outcome(() => fetch(document.referrer || "/"));
  const storage = await outcome(async () => localStorage.length);
  const above = await outcome(async () => window.top.document.title);
  await call("report", { text: [own, read, theirs, page, storage, above, m.params.structuredContent.server].join(" ") });
});
(async () => {
  await request("ui/initialize", { protocolVersion: "2026-01-26", appInfo: { name: "view", version: "1" }, appCapabilities: {} });
  window.parent.postMessage({ jsonrpc: "2.0", method: "ui/notifications/initialized", params: {} }, "*");
})();
</script></body></html>`

// An appServer is a server with the view, over HTTP. It records its calls.
type appServer struct {
	name, own string // own is a tool that only its views may call, and no other server has

	mu     sync.Mutex
	called []string
}

func (s *appServer) answer(m mcptest.Message) string {
	tool := func(name, visibility string) string {
		return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://card/view.html","visibility":%s}}}`, name, visibility)
	}
	result := `{}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"app","version":"1"}}`
	case "tools/list":
		result = `{"tools":[` + strings.Join([]string{tool("show", `["model","app"]`), tool("poll", `["app"]`), tool("report", `["app"]`), tool(s.own, `["app"]`)}, ",") + `]}`
	case "resources/list":
		result = `{"resources":[]}`
	case "resources/templates/list":
		result = `{"resourceTemplates":[]}`
	case "resources/read":
		result = fmt.Sprintf(`{"contents":[{"uri":"ui://card/view.html","mimeType":"text/html;profile=mcp-app","text":%s}]}`, wire.Quote(view))
	case "tools/call":
		name, _ := wire.Text(wire.Get(m.Params, "name"))
		text, _ := wire.Text(wire.Get(m.Params, "arguments", "text"))
		s.mu.Lock()
		s.called = append(s.called, strings.TrimSpace(name+" "+text))
		s.mu.Unlock()
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"done"}],"structuredContent":{"server":%q}}`, s.name)
	}
	return result
}

func (s *appServer) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.called)
}

// The view of a result runs in the page whose address the result has. Of two servers with one URI and the same
// names it calls its own, and reaches nothing else.
func TestViewInAPage(t *testing.T) {
	servers := []*appServer{{name: "a", own: "own"}, {name: "b", own: "wipe"}}
	var entries []string
	for _, s := range servers {
		web := httptest.NewServer(mcptest.Answers(s.answer))
		t.Cleanup(web.Close)
		entries = append(entries, fmt.Sprintf(`%q:{"url":%q,"load":"eager"}`, s.name, web.URL))
	}
	dir := t.TempDir()
	config := mcptest.Config(t, `{"mcp":{`+strings.Join(entries, ",")+`}}`)
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config}, Env: private(dir)})
	host.Initialize("2025-11-25", nil)
	result := host.Tool("use_tool", map[string]any{"tool_name": "a/show", "tool_input": map[string]any{}}).Result
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/[A-Z0-9]+/`).FindString(string(result))
	if address == "" {
		t.Fatalf("no address in %s", result)
	}
	p := openTab(t, address)
	p.wait(`document.title === "show of a"`)
	want := []string{"show", "poll", `report "a" "ui://card/view.html" refused refused refused refused a`}
	mcptest.Eventually(t, "the view has reported", func() bool { return len(servers[0].calls()) == len(want) })
	if got := servers[0].calls(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := servers[1].calls(); got != nil {
		t.Errorf("the other server got %q", got)
	}
}
