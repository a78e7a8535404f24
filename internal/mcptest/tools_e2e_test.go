//go:build e2e

package mcptest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

const grease = `"x-grease":{"n":9007199254740993,"f":1.0,"e":1e2}`

func TestEchoKeepsBytes(t *testing.T) {
	t.Parallel()
	h := ready(t)
	const args = `{"b":1.0,"a":[9007199254740993,1e2,"\u00e9<"]}`
	m := h.Tool("echo", args)
	if m.Text() != args {
		t.Errorf("got text %s, want %s", m.Text(), args)
	}
	if got := string(m.Member("structuredContent")); got != args {
		t.Errorf("got structuredContent %s, want %s", got, args)
	}
	if !strings.Contains(m.Raw, grease) {
		t.Errorf("no grease in %s", m.Raw)
	}
}

func TestEchoTellsAbsentFromEmpty(t *testing.T) {
	t.Parallel()
	h := ready(t)
	for _, c := range []struct {
		args any
		want string
	}{{nil, "absent"}, {`{}`, "{}"}, {`null`, "null"}} {
		if got := h.Tool("echo", c.args).Text(); got != c.want {
			t.Errorf("arguments %v: got %s, want %s", c.args, got, c.want)
		}
	}
}

func TestRawAnswersTheBytes(t *testing.T) {
	t.Parallel()
	h := ready(t)
	const want = `{"z":1.0, "content" :[],"n":1e400}`
	if got := string(h.Tool("raw", `{"result":`+want+`}`).Result); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFailAnswersAnError(t *testing.T) {
	t.Parallel()
	h := ready(t)
	m := h.Tool("fail", nil)
	if m.Code() != -32042 || !strings.Contains(string(m.Data()), grease) {
		t.Errorf("got %s", m.Error)
	}
	m = h.Tool("fail", `{"code":7,"message":"no","data":[1.0]}`)
	if m.Code() != 7 || m.Text() != "no" || string(m.Data()) != "[1.0]" {
		t.Errorf("got %s", m.Error)
	}
}

func TestProgressPrecedesTheResult(t *testing.T) {
	t.Parallel()
	h := ready(t)
	before := len(h.Lines())
	h.Call("tools/call", mcptest.ToolParams("progress", `{"steps":2}`, `"_meta":{"progressToken":"tök"}`))
	got := h.Messages()[before:]
	if len(got) != 3 {
		t.Fatalf("got %d messages, want 3", len(got))
	}
	for _, m := range got[:2] {
		if string(m.Member("progressToken")) != `"tök"` || m.Method != "notifications/progress" {
			t.Errorf("got %s", m.Raw)
		}
	}
	if h.Tool("progress", nil); h.Count("notifications/progress") != 2 {
		t.Error("progress was sent without a token")
	}
}

func TestSleepEndsSilentlyWhenCancelled(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	h := ready(t, "-ledger", ledger.Path)
	p := h.Go("tools/call", mcptest.ToolParams("sleep", nil))
	ledger.WaitFor("call sleep", 1)
	p.Cancel("enough")
	ledger.WaitFor("cancelled "+string(p.ID), 1)
	h.Call("ping", nil)
	if p.Done() {
		t.Error("a cancelled call was answered")
	}
}

func TestAskReturnsTheAnswerVerbatim(t *testing.T) {
	t.Parallel()
	h := mcptest.Start(t, mcptest.HostOptions{
		Args: []string{mcptest.Fake(t)},
		OnRequest: mcptest.Handlers{
			"sampling/createMessage": func(params json.RawMessage) (any, error) { return params, nil },
			"roots/list": func(json.RawMessage) (any, error) {
				return nil, &mcptest.RPCError{Code: -1, Message: "no roots", Data: json.RawMessage(`[1.0]`)}
			},
		},
	})
	h.Initialize(version, `{"sampling":{}}`)
	const params = `{"z":1.0,"messages":[]}`
	if got := h.Tool("ask", `{"method":"sampling/createMessage","params":`+params+`}`).Text(); got != params {
		t.Errorf("got %s, want %s", got, params)
	}
	got := string(h.Tool("ask", `{"method":"roots/list"}`).Member("structuredContent"))
	if want := `{"error":{"code":-1,"message":"no roots","data":[1.0]}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
