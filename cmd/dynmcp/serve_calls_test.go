package main_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// listen opens an event stream without a call, leaves it open, and returns its status.
func (h *webHost) listen(path string) int {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", h.session)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { resp.Body.Close() })
	return resp.StatusCode
}

// Long calls are answered, and run once, while listening hosts hold all event streams. A
// refused call does not run.
func TestCallsAreAnsweredWhenAllStreamsListen(t *testing.T) {
	t.Parallel()
	bank := fake(t, "bank")
	web := serveHTTP(t, mcptest.Config(t, document([]entry{bank}, `"gateway": {"max_connections": 2}`)))
	for range 2 {
		if status := web.begin("/mcp").listen("/mcp"); status != 200 {
			t.Fatalf("a host that listens: %d", status)
		}
	}
	if status := web.begin("/mcp").listen("/mcp"); status != 503 {
		t.Fatalf("there is a place for a third host that listens: %d", status)
	}

	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	modern := []string{"MCP-Protocol-Version", stateless, "Mcp-Method", "tools/call", "Mcp-Name", "use_tool"}
	pay := func(nonce string, more ...string) string {
		return string(useParams("bank/sleep", fmt.Sprintf(`{"ms":1600,"nonce":%q}`, nonce), more...))
	}
	inSession := web.begin("/mcp")
	var calls sync.WaitGroup
	for nonce, call := range map[string]func(string) mcptest.Message{
		"session": func(nonce string) mcptest.Message { return inSession.call("/mcp", 7, "tools/call", pay(nonce)) },
		"stateless": func(nonce string) mcptest.Message {
			return web.call("/mcp", 8, "tools/call", pay(nonce, meta), modern...)
		},
		"alone": func(nonce string) mcptest.Message {
			return web.call("/mcp/bank/message", 9, "tools/call", fmt.Sprintf(`{"name":"sleep","arguments":{"ms":1600,"nonce":%q}}`, nonce))
		},
	} {
		calls.Go(func() {
			if m := call(nonce); m.Error != nil || m.Result == nil {
				t.Errorf("%s: got %s", nonce, m.Raw)
			}
			if got := bank.Count("call sleep " + nonce); got != 1 {
				t.Errorf("%s: the call ran %d times", nonce, got)
			}
		})
	}
	calls.Wait()

	listen := fmt.Sprintf(`{"notifications":{"toolsListChanged":true},%s}`, meta)
	refused := web.call("/mcp", 10, "subscriptions/listen", listen, "MCP-Protocol-Version", stateless, "Mcp-Method", "subscriptions/listen")
	contains(t, refused.Raw, `"id":10`, `"code":5110`, `"outcome":"not_sent"`)
	elsewhere := *web
	elsewhere.session = "nobody"
	refused = elsewhere.call("/mcp", 11, "tools/call", pay("refused"))
	contains(t, refused.Raw, `"id":11`, `"outcome":"not_sent"`)
	if got := bank.Count("call sleep refused"); got != 0 {
		t.Errorf("a refused call ran %d times", got)
	}
}
