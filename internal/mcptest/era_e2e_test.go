//go:build e2e

package mcptest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// modern returns params with the new protocol's _meta before the members.
func modern(members ...string) string {
	return "{" + strings.Join(append([]string{mcptest.ModernMeta(nil)}, members...), ",") + "}"
}

func TestDiscover(t *testing.T) {
	t.Parallel()
	for era, want := range map[string]string{"new": `["2026-07-28"]`, "both": `["2026-07-28","2024-11-05","2025-03-26","2025-06-18","2025-11-25"]`} {
		h := mcptest.StartFake(t, "-era", era, "-name", "f", "-instructions", "i")
		m := h.Call("server/discover", modern())
		if got := string(m.Member("supportedVersions")); got != want {
			t.Errorf("%s: got %s, want %s", era, got, want)
		}
		if got := string(m.Member("_meta", "io.modelcontextprotocol/serverInfo", "name")) + string(m.Member("instructions")); got != `"f""i"` {
			t.Errorf("%s: got %s", era, got)
		}
	}
	if got := mcptest.StartFake(t).Call("server/discover", modern()).Code(); got != -32601 {
		t.Errorf("old: got code %d, want -32601", got)
	}
}

func TestModernResultsCarryTheirType(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t, "-era", "new")
	for method, params := range map[string]string{
		"tools/list": modern(), "resources/read": modern(`"uri":"fake://fakemcp/text"`), "tools/call": modern(`"name":"echo"`), "server/discover": modern(),
	} {
		m := h.Call(method, params)
		if got := string(m.Member("resultType")); got != `"complete"` {
			t.Errorf("%s: got resultType %s", method, got)
		}
		if cached := m.Member("ttlMs") != nil && m.Member("cacheScope") != nil; cached != (method != "tools/call") {
			t.Errorf("%s: got %s", method, m.Raw)
		}
	}
	if got := string(h.Call("tools/call", modern(`"name":"raw","arguments":{"result":{}}`)).Result); got != "{}" {
		t.Errorf("raw: got %s", got)
	}
}

func TestErasAreToldApart(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t, "-era", "new")
	if m := h.Call("initialize", `{"protocolVersion":"2025-11-25"}`); m.Code() != -32022 || !strings.Contains(string(m.Data()), `["2026-07-28"]`) {
		t.Errorf("initialize: got %s", m.Error)
	}
	for params, want := range map[string]int{
		`{"name":"echo"}`: -32602,
		`{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`: -32602,
		strings.Replace(modern(`"name":"echo"`), "2026-07-28", "2031-01-01", 1):            -32022,
	} {
		if got := h.Call("tools/call", params).Code(); got != want {
			t.Errorf("%s: got code %d, want %d", params, got, want)
		}
	}
	for _, method := range []string{"ping", "logging/setLevel", "resources/subscribe"} {
		if got := h.Call(method, modern()).Code(); got != -32601 {
			t.Errorf("%s: got code %d, want -32601", method, got)
		}
	}
	both := mcptest.StartFake(t, "-era", "both")
	both.Initialize(version, nil)
	if both.Call("ping", nil).Result == nil || both.Call("tools/call", modern(`"name":"echo"`)).Result == nil {
		t.Error("a fake of both eras refused one")
	}
}

func TestModernLogsAreAskedFor(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t, "-era", "new")
	h.Call("tools/call", modern(`"name":"log"`))
	if got := h.Count("notifications/message"); got != 0 {
		t.Errorf("got %d messages unasked", got)
	}
	h.Call("tools/call", "{"+mcptest.ModernMeta(nil, `"io.modelcontextprotocol/logLevel":"info"`)+`,"name":"log"}`)
	h.WaitMethod("notifications/message", 1)
}

func TestModernAskIsAResult(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t, "-era", "new")
	const args = `"name":"ask","arguments":{"method":"elicitation/create","params":{"f":1.0}}`
	m := h.Call("tools/call", modern(args))
	if got := string(m.Member("inputRequests")); got != `{"ask é":{"method":"elicitation/create","params":{"f":1.0}}}` {
		t.Errorf("got %s", got)
	}
	const said = `{"ask é":{"action":"accept","n":1.0}}`
	retry := func(state string) mcptest.Message {
		return h.Call("tools/call", modern(args, `"inputResponses":`+said, `"requestState":`+state))
	}
	if got := retry(string(m.Member("requestState"))).Text(); got != said {
		t.Errorf("got %s, want %s", got, said)
	}
	if got := retry(`"forged"`).Code(); got != -32602 {
		t.Errorf("forged state: got code %d", got)
	}
}

func TestListenTagsNotifications(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t, "-era", "new", "-resource", "x:1")
	p := h.Go("subscriptions/listen", modern(`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x:1"]}`))
	if m := h.WaitMethod("notifications/subscriptions/acknowledged", 1); string(m.Member("notifications")) != `{"toolsListChanged":true,"resourceSubscriptions":["x:1"]}` {
		t.Errorf("got %s", m.Raw)
	}
	call := func(name, args string) { h.Call("tools/call", modern(`"name":"`+name+`","arguments":`+args)) }
	call("add_prompt", `{"name":"p"}`) // not subscribed
	call("add_tool", `{"name":"t"}`)
	call("touch", `{"uri":"x:1"}`)
	for _, method := range []string{"notifications/tools/list_changed", "notifications/resources/updated"} {
		m := h.WaitMethod(method, 1)
		if got := string(m.Member("_meta", "io.modelcontextprotocol/subscriptionId")); got != string(p.ID) {
			t.Errorf("%s: got subscription %s, want %s", method, got, p.ID)
		}
	}
	if h.Count("notifications/prompts/list_changed") != 0 || p.Done() {
		t.Error("the subscription received a change that it is not for, or ended")
	}
	call("end_listen", `{}`)
	if got := string(p.Wait().Member("resultType")); got != `"complete"` {
		t.Errorf("got %s", got)
	}
}

func TestListenEndsSilentlyWhenCancelled(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t, "-era", "new")
	p := h.Go("subscriptions/listen", modern(`"notifications":{}`))
	h.WaitMethod("notifications/subscriptions/acknowledged", 1)
	p.Cancel("enough")
	for h.Call("tools/call", modern(`"name":"end_listen"`)).Text() != "ended 0" && !p.Done() {
	}
}

// modernClient returns a client of the new protocol, which has no session.
func modernClient(t *testing.T, args ...string) *mcptest.Client {
	t.Helper()
	c := mcptest.NewClient(t, mcptest.ServeFake(t, append([]string{"-era", "new"}, args...)...).URL)
	c.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	return c
}

func TestModernHTTP(t *testing.T) {
	t.Parallel()
	c := modernClient(t)
	post := func(method, name, params string) mcptest.Reply {
		c.Header.Set("Mcp-Method", method)
		c.Header.Set("Mcp-Name", name)
		return c.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	}
	if r := post("tools/call", "echo", modern(`"name":"echo"`)); r.Status != 200 || r.Last().Text() != "absent" {
		t.Errorf("got status %d, %s", r.Status, r.Body)
	}
	if r := post("resources/read", "=?base64?ZmFrZTovL2Zha2VtY3AvaXRlbS/DqQ==?=", modern(`"uri":"fake://fakemcp/item/é"`)); r.Status != 200 {
		t.Errorf("encoded name: got status %d, %s", r.Status, r.Body)
	}
	for _, bad := range []struct {
		method, name, params string
		status, code         int
	}{
		{"tools/call", "pid", modern(`"name":"echo"`), 400, -32020},
		{"tools/list", "", `{}`, 400, -32020},
		{"ping", "", modern(), 404, -32601},
		{"tools/call", "nobody", modern(`"name":"nobody"`), 400, -32602},
	} {
		if r := post(bad.method, bad.name, bad.params); r.Status != bad.status || r.Last().Code() != bad.code {
			t.Errorf("%+v: got status %d, %s", bad, r.Status, r.Body)
		}
	}
	if got := c.Do(context.Background(), http.MethodGet, "").Status; got != 405 {
		t.Errorf("GET: got status %d", got)
	}
}

func TestModernClientCancelsByLeaving(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	c := modernClient(t, "-ledger", ledger.Path)
	c.Header.Set("Mcp-Method", "tools/call")
	c.Header.Set("Mcp-Name", "sleep")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan mcptest.Reply)
	go func() {
		done <- c.Do(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":`+modern(`"name":"sleep"`)+`}`)
	}()
	ledger.WaitFor("call sleep", 1)
	cancel()
	<-done
	ledger.WaitFor("cancelled 7", 1)
}

func TestOldHTTPServerRefusesTheNewProtocol(t *testing.T) {
	t.Parallel()
	c := mcptest.NewClient(t, mcptest.ServeFake(t).URL)
	c.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	r := c.Post(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":` + modern() + `}`)
	if r.Status != 400 || !json.Valid([]byte(r.Body)) {
		t.Errorf("got status %d, %s", r.Status, r.Body)
	}
}
