//go:build e2e

package mcptest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

func TestResourcesAreRead(t *testing.T) {
	t.Parallel()
	h := ready(t, "-uri-prefix", "x://a/")
	for uri, want := range map[string]string{
		"x://a/text":    `"text":"contents of x://a/text"`,
		"x://a/blob":    `"blob":"AP8Q"`,
		"x://a/item/é7": `"text":"contents of x://a/item/é7"`,
	} {
		if m := h.Call("resources/read", `{"uri":"`+uri+`"}`); !strings.Contains(m.Raw, want) {
			t.Errorf("%s: got %s, want %s", uri, m.Raw, want)
		}
	}
	m := h.Call("resources/read", `{"uri":"x://b"}`)
	if m.Code() != -32002 || !strings.HasPrefix(string(m.Data()), `{"uri":"x://b",`) {
		t.Errorf("got %s", m.Error)
	}
	if m := h.Call("resources/templates/list", nil); !strings.Contains(m.Raw, `"uriTemplate":"x://a/item/{id}"`) {
		t.Errorf("got %s", m.Raw)
	}
}

func TestUpdatesReachSubscribersOnly(t *testing.T) {
	t.Parallel()
	h := ready(t, "-resource", "x:1")
	const touch = `{"uri":"x:1"}`
	if got := h.Tool("touch", touch).Text(); got != "told 0" {
		t.Errorf("got %s", got)
	}
	h.Call("resources/subscribe", touch)
	h.Tool("touch", touch)
	m := h.WaitMethod("notifications/resources/updated", 1)
	if string(m.Member("uri")) != `"x:1"` || !strings.Contains(m.Raw, grease) {
		t.Errorf("got %s", m.Raw)
	}
	h.Call("resources/unsubscribe", touch)
	if h.Tool("touch", touch); h.Count(m.Method) != 1 {
		t.Error("an update came after unsubscribe")
	}
}

func TestPromptsAndCompletion(t *testing.T) {
	t.Parallel()
	h := ready(t, "-name", "f")
	for args, want := range map[string]string{``: "f.greet absent", `,"arguments":{"who":"1.0"}`: `f.greet {"who":"1.0"}`} {
		m := h.Call("prompts/get", `{"name":"f.greet"`+args+`}`)
		var r struct {
			Messages []struct{ Content struct{ Text string } }
		}
		if err := json.Unmarshal(m.Result, &r); err != nil || r.Messages[0].Content.Text != want {
			t.Errorf("got %s, want %s", m.Raw, want)
		}
	}
	if got := h.Call("prompts/get", `{"name":"nobody"}`).Code(); got != -32602 {
		t.Errorf("got code %d", got)
	}
	m := h.Call("completion/complete", `{"ref":{"type":"ref/prompt","name":"f.greet"},"argument":{"name":"who","value":"A"}}`)
	if got := string(m.Member("completion", "values")); got != `["A…","{\"type\":\"ref/prompt\",\"name\":\"f.greet\"}"]` {
		t.Errorf("got %s", got)
	}
}

func TestLogAndNotify(t *testing.T) {
	t.Parallel()
	h := ready(t)
	h.Tool("log", `{"level":"error","logger":"db","data":[1.0],"times":2}`)
	m := h.WaitMethod("notifications/message", 2)
	if got := string(m.Member("logger")) + string(m.Member("level")) + string(m.Member("data")); got != `"db""error"[1.0]` {
		t.Errorf("got %s", got)
	}
	if h.Tool("log", nil); h.WaitMethod("notifications/message", 3).Member("logger") != nil {
		t.Error("a logger was sent unasked")
	}
	h.Tool("notify", `{"method":"notifications/x","params":{"f":1.0},"times":3}`)
	if m := h.WaitMethod("notifications/x", 3); string(m.Params) != `{"f":1.0}` {
		t.Errorf("got %s", m.Raw)
	}
}

func TestReceivedReturnsTheBytes(t *testing.T) {
	t.Parallel()
	h := ready(t)
	const odd = `{ "method":"notifications/roots/list_changed", "x":1.0,"jsonrpc":"2.0" }`
	h.Send(odd)
	var got []string
	if err := json.Unmarshal([]byte(h.Tool("received", `{"n":2}`).Text()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != odd || !strings.Contains(got[1], `"name":"received"`) {
		t.Errorf("got %q", got)
	}
}

func TestLedgerTellsWhatHappened(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	h := ready(t, "-ledger", ledger.Path)
	h.Call("tools/list", nil)
	h.Call("resources/templates/list", nil)
	h.Tool("echo", `{"nonce":"n1"}`)
	h.Call("logging/setLevel", `{"level":"debug"}`)
	h.Notify("notifications/roots/list_changed", nil)
	h.CloseStdin()
	h.Wait()
	got := ledger.Events()
	want := []string{
		"initialize " + version, "notified notifications/initialized", "list tools", "list resources/templates",
		"call echo n1", "logging/setLevel debug", "notified notifications/roots/list_changed", "exit eof",
	}
	if !strings.HasPrefix(got[0], "start ") || !slices.Equal(got[1:], want) {
		t.Errorf("got %q, want a start and %q", got, want)
	}
	if n := ledger.Count("call echo"); n != 1 {
		t.Errorf("got %d calls of echo, want 1", n)
	}
}
