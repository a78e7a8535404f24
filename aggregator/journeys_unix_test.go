//go:build unix

package aggregator

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest/drawing"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/gateway"
	"github.com/dynmcp/dynmcp/transports/host"
)

const oneLazy = `{"mcpServers": {"up": {"command": "none", "description": "echoes"}}}`

const callOfEcho = `{"name":"use_tool","arguments":{"tool_name":"up/echo","tool_input":{}}}`

// A call of a tool of a server that does not run waits while another goroutine starts the server. The goroutines of
// other tests are not to be met: none of these tests is parallel.
func TestLoadIsAsDrawn(t *testing.T) {
	var waits, starts []string
	r := startDrawn(t, configOf(t, oneLazy), func() {
		for end := time.Now().Add(time.Minute); waits == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
			waits = drawing.Waiting("wait.listed ", "Upstream.acquire ")
		}
		starts = drawing.Stack("Upstream.load ", "Placer.Connect ")
	})
	r.ask("tools/call", callOfEcho)
	drawing.Compare(t, "../lazy/doc.go", waits, starts)
}

// After a notification one goroutine fetches the list, and another tells the hosts.
func TestListChangeIsAsDrawn(t *testing.T) {
	r := startDrawn(t, configOf(t, oneLazy), nil)
	r.ask("tools/call", callOfEcho)
	r.ask("tools/list", `{}`)
	r.toUpstream.trace("Cache.fetchAll ")
	r.toHost.trace("Aggregator.announce ")
	for n := 1; n <= 100 && (r.toUpstream.taken() == nil || r.toHost.taken() == nil); n++ { // another goroutine may have written for one
		fmt.Fprintln(r.fromUpstream, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		r.await("a changed list", func(m wire.Message) bool { return m.Method == "notifications/tools/list_changed" })
	}
	drawing.Compare(t, "internal/listing/list.go", r.toUpstream.taken(), r.toHost.taken())
}

// A request over HTTP becomes one of a session on the goroutine of its POST.
func TestHTTPCallIsAsDrawn(t *testing.T) {
	r := startDrawn(t, configOf(t, oneLazy), nil)
	r.ask("tools/call", callOfEcho)
	server := httptest.NewServer(gateway.New(gateway.GatewayOptions{
		Open: func(edge gateway.Edge, user, server string, lasts bool) (*host.Session, func(context.Context)) {
			return r.agg.Open(edge, Identity{User: user, Account: edge.Account(), Server: server, Persistent: lasts})
		},
		AllowedHosts: []string{"127.0.0.1"}, MaxRequestBytes: 1 << 20, MaxResponseBytes: 1 << 20, MaxConnections: 10,
	}))
	defer server.Close()
	session := ""
	ask := func(method, body string) {
		q, err := http.NewRequest(method, server.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if session != "" {
			q.Header["Mcp-Session-Id"] = []string{session}
		}
		a, err := server.Client().Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		if text, err := io.ReadAll(a.Body); err != nil || a.StatusCode > 299 {
			t.Fatalf("%s %s: %s %s %v", method, body, a.Status, text, err)
		}
		session = cmp.Or(session, a.Header.Get("Mcp-Session-Id"))
	}
	ask("POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"host","version":"1"}}}`)
	defer ask("DELETE", "")
	ask("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	r.toUpstream.trace("Gateway.ServeHTTP ")
	for id := 2; id <= 100 && r.toUpstream.taken() == nil; id++ { // a call may wait for lists on a goroutine of its own
		ask("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, id, callOfEcho))
	}
	drawing.Compare(t, "../transports/gateway/doc.go", r.toUpstream.taken())
}
