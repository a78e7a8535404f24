package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// eachStateless runs a test against a stateless upstream over pipes and over HTTP.
func eachStateless(t *testing.T, test func(t *testing.T, server schema.Server, ledger mcptest.Ledger), args ...string) {
	for name, entry := range map[string]func(*testing.T, ...string) schema.Server{"stdio": fake, "http": remote} {
		t.Run(name, func(t *testing.T) {
			ledger := mcptest.NewLedger(t)
			test(t, entry(t, append([]string{"-era", "new", "-ledger", ledger.Path}, args...)...), ledger)
		})
	}
}

func TestStatelessHandshake(t *testing.T) {
	t.Parallel()
	eachStateless(t, func(t *testing.T, server schema.Server, ledger mcptest.Ledger) {
		c := dial(t, server, ConnOptions{Info: Info{Name: "us", Version: "7"}})
		if info := c.ServerInfo(); c.Era() != transports.Stateless || info.ProtocolVersion != transports.StatelessVersion || !info.Has("tools") || wire.Get(info.Implementation, "name") == nil {
			t.Errorf("got %+v", info)
		}
		if n := ledger.Count("initialize"); n != 0 {
			t.Errorf("initialize was called %d times", n)
		}
		mustEcho(t, c)
	})
}

// A refusal of the first request that names its version as supported leads to one more try.
func TestStatelessVersionRetried(t *testing.T) {
	t.Parallel()
	eachStateless(t, func(t *testing.T, server schema.Server, ledger mcptest.Ledger) {
		c := dial(t, server, ConnOptions{})
		if c.Era() != transports.Stateless || ledger.Count("server/discover") != 2 {
			t.Errorf("era %d after asking %d times", c.Era(), ledger.Count("server/discover"))
		}
		mustEcho(t, c)
	}, "-fault", "unsupported", "-fault-times", "1")
}

// Every request has our protocol version. A host's own members of _meta are kept.
func TestStatelessRequests(t *testing.T) {
	t.Parallel()
	eachStateless(t, func(t *testing.T, server schema.Server, _ mcptest.Ledger) {
		c := dial(t, server, ConnOptions{Info: Info{Name: "us", Version: "7"}})
		result, err := c.Call(t.Context(), "tools/call", json.RawMessage(
			`{"name":"received","_meta":{"x":1.0,"io.modelcontextprotocol/clientInfo":{"name":"host"}},"arguments":{"n":9}}`))
		if err != nil {
			t.Fatal(err)
		}
		call := receivedCall(t, result)
		for _, want := range []string{`"x":1.0`, `"io.modelcontextprotocol/clientInfo":{"name":"host"}`, `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{}`} {
			if !strings.Contains(call, want) {
				t.Errorf("got %s, want %s in it", call, want)
			}
		}
	})
}

// receivedCall returns the tools/call from the result of the tool "received". Over HTTP the
// upstream receives other requests at the same time.
func receivedCall(t *testing.T, result json.RawMessage) string {
	t.Helper()
	var lines []string
	if err := json.Unmarshal([]byte(mcptest.Message{Result: result}.Text()), &lines); err != nil {
		t.Fatalf("%v in %s", err, result)
	}
	for _, line := range lines {
		if mcptest.Parse(line).Method == "tools/call" {
			return line
		}
	}
	t.Fatalf("no tools/call in %q", lines)
	return ""
}

// A tool's name that is not a valid header value is encoded.
func TestStatelessNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"é", "=?base64?x", " a", "a\tb", "日本"} {
		server := remote(t, "-era", "new", "-tool", fmt.Sprintf(`{"name":%s,"inputSchema":{"type":"object"}}`, wire.Quote(name)))
		c := dial(t, server, ConnOptions{})
		if _, err := tool(t, c, name, "{}"); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Arguments that a tool's schema marks are copied to headers, from any depth.
func TestStatelessArgumentHeaders(t *testing.T) {
	t.Parallel()
	server := remote(t, "-era", "new", "-tool", `{"name":"headers","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"bad":{"x-mcp-header":"a b"}}}}`)
	c := dial(t, server, ConnOptions{})
	if _, err := c.List(t.Context(), "tools/list", "tools", nil); err != nil {
		t.Fatal(err)
	}
	result, err := tool(t, c, "headers", `{"r":"eu-ü","deep":{"n":42},"bad":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	var headers http.Header
	if err := json.Unmarshal([]byte(mcptest.Message{Result: result}.Text()), &headers); err != nil {
		t.Fatal(err)
	}
	if headers.Get("Mcp-Param-Region") != "=?base64?ZXUtw7w=?=" || headers.Get("Mcp-Param-N") != "42" || headers.Get("Mcp-Name") != "headers" || headers.Get("Mcp-Method") != "tools/call" {
		t.Errorf("got %v", headers)
	}
	for name := range headers {
		if strings.HasPrefix(name, "Mcp-Param-") && name != "Mcp-Param-Region" && name != "Mcp-Param-N" {
			t.Errorf("got %s", name)
		}
	}
}

// Notifications come on a notification stream, which is reopened when it ends. They are
// delivered without the id of our subscription.
func TestStatelessListens(t *testing.T) {
	t.Parallel()
	eachStateless(t, func(t *testing.T, server schema.Server, ledger mcptest.Ledger) {
		const changed = "notifications/tools/list_changed {" // those that we make have no params
		peer := &recorder{}
		c := dial(t, server, ConnOptions{Peer: peer})
		ledger.WaitFor("listening", 1)
		if _, err := tool(t, c, "add_tool", `{"name":"later"}`); err != nil {
			t.Fatal(err)
		}
		if got := peer.waitFor(t, changed, 1)[0]; strings.Contains(got, "subscriptionId") {
			t.Errorf("got %s", got)
		}
		if _, err := tool(t, c, "end_listen", "{}"); err != nil {
			t.Fatal(err)
		}
		ledger.WaitFor("listening", 2)
		if _, err := tool(t, c, "remove_tool", `{"name":"later"}`); err != nil {
			t.Fatal(err)
		}
		peer.waitFor(t, changed, 2)
	})
}

func TestStatelessSubscribes(t *testing.T) {
	t.Parallel()
	eachStateless(t, func(t *testing.T, server schema.Server, ledger mcptest.Ledger) {
		peer := &recorder{}
		c := dial(t, server, ConnOptions{Peer: peer})
		ledger.WaitFor("listening", 1)
		const params = `{"uri":"fake://a"}`
		if err := c.Subscribe(t.Context(), json.RawMessage(params)); err != nil {
			t.Fatal(err)
		}
		ledger.WaitFor("listening", 2)
		if _, err := tool(t, c, "touch", params); err != nil {
			t.Fatal(err)
		}
		if got := peer.waitFor(t, "notifications/resources/updated", 1)[0]; !strings.Contains(got, "fake://a") {
			t.Errorf("got %s", got)
		}
		if err := c.Unsubscribe(t.Context(), json.RawMessage(params)); err != nil {
			t.Fatal(err)
		}
		ledger.WaitFor("listening", 3)
		if err := c.Subscribe(t.Context(), json.RawMessage(`{}`)); err == nil {
			t.Error("without a uri: no error")
		}
	})
}
