//go:build e2e

package mcptest_test

import (
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// unanswered reports whether a request is still open after a later ping was answered.
func unanswered(h *mcptest.Host, p *mcptest.Pending) bool {
	h.Go("ping", nil).Wait()
	return !p.Done()
}

func TestExitOnRequest(t *testing.T) {
	t.Parallel()
	for fault, method := range map[string]string{
		"exit-on-init": "initialize", "exit-on-discover": "server/discover", "exit-on-list": "prompts/list", "exit-on-list:tools": "tools/list",
	} {
		h := mcptest.StartFake(t, "-fault", fault)
		if fault == "exit-on-list:tools" {
			h.Call("prompts/list", nil)
		}
		h.Go(method, `{}`)
		if got := h.Wait(); got != 4 || !strings.Contains(h.Stderr(), method) {
			t.Errorf("%s: got status %d and %q", fault, got, h.Stderr())
		}
	}
}

func TestHangOnRequest(t *testing.T) {
	t.Parallel()
	for fault, method := range map[string]string{
		"hang-discover": "server/discover", "hang-list": "tools/list", "hang-list:prompts": "prompts/list",
	} {
		h := ready(t, "-fault", fault)
		if !unanswered(h, h.Go(method, `{}`)) {
			t.Errorf("%s: %s was answered", fault, method)
		}
	}
	if m := ready(t, "-fault", "hang-list:prompts").Call("tools/list", nil); m.Result == nil {
		t.Errorf("got %s", m.Raw)
	}
}

// TestHangInit waits for the ledger instead of a ping: nothing is read while initialize is served.
func TestHangInit(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	h := lingering(t, "-ledger", ledger.Path, "-fault", "hang-init")
	p := h.Go("initialize", `{"protocolVersion":"2025-11-25"}`)
	ledger.WaitFor("fault hang-init", 1)
	if p.Done() {
		t.Error("initialize was answered")
	}
}

func TestHangPing(t *testing.T) {
	t.Parallel()
	h := ready(t, "-fault", "hang-ping")
	p := h.Go("ping", nil)
	if h.Tool("echo", nil); p.Done() {
		t.Error("ping was answered")
	}
}

func TestFailOnRequest(t *testing.T) {
	t.Parallel()
	m := mcptest.StartFake(t, "-fault", "fail-init").Call("initialize", nil)
	if m.Code() != -32603 || !strings.Contains(string(m.Data()), grease) {
		t.Errorf("got %s", m.Raw)
	}
	h := ready(t, "-fault", "fail-list:resources")
	for method, want := range map[string]int{"resources/list": -32603, "resources/templates/list": 0, "tools/list": 0} {
		if got := h.Call(method, nil).Code(); got != want {
			t.Errorf("%s: got code %d, want %d", method, got, want)
		}
	}
	if got := ready(t, "-fault", "fail-list").Call("tools/list", nil).Code(); got != -32603 {
		t.Errorf("got code %d", got)
	}
}

func TestUnsupportedVersion(t *testing.T) {
	t.Parallel()
	m := mcptest.StartFake(t, "-era", "new", "-fault", "unsupported:2025-06-18").Call("server/discover", modern())
	if m.Code() != -32022 || string(m.Data()) != `{"requested":"2026-07-28","supported":["2025-06-18"]}` {
		t.Errorf("got %s", m.Raw)
	}
}

func TestSlowOnRequest(t *testing.T) {
	t.Parallel()
	h := ready(t, "-fault", "slow-init:5,slow-list:5")
	p := h.Go("tools/list", nil)
	if h.Call("ping", nil); p.Wait().Result == nil {
		t.Error("tools/list failed")
	}
}

func TestGatesHoldAnswersBack(t *testing.T) {
	t.Parallel()
	for fault, method := range map[string]string{"gate-init": "initialize", "gate-list": "tools/list", "gate-call": "tools/call"} {
		ledger, gate := mcptest.NewLedger(t), mcptest.NewGate(t)
		h := mcptest.StartFake(t, "-ledger", ledger.Path, "-fault", fault+":"+gate.Path)
		if method != "initialize" {
			h.Initialize(version, nil)
		}
		p := h.Go(method, `{"name":"echo"}`)
		ledger.WaitFor("fault "+fault, 1)
		if p.Done() {
			t.Errorf("%s: answered through a closed gate", fault)
		}
		gate.Open()
		if p.Wait().Result == nil {
			t.Errorf("%s: failed", fault)
		}
	}
}

func TestNoisyDiscover(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t, "-fault", "stderr-on-discover")
	got := h.Call("server/discover", `{}`).Code()
	h.CloseStdin()
	h.Wait() // until then its output may not have been read
	if got != -32601 || len(h.Stderr()) < 6000 {
		t.Errorf("got code %d and %d bytes", got, len(h.Stderr()))
	}
}

func TestCursors(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]string{"cursor-loop": `"again"`, "cursor-empty": `""`} {
		h := ready(t, "-fault", fault)
		for range 2 {
			m := h.Call("tools/list", `{"cursor":"again"}`)
			if got := string(m.Member("nextCursor")); got != want || len(keys(t, m, "tools", "name")) == 0 {
				t.Errorf("%s: got cursor %s", fault, got)
			}
		}
	}
	h := ready(t, "-fault", "cursor-endless")
	first, second := h.Call("prompts/list", nil), h.Call("prompts/list", nil)
	if a, b := string(first.Member("nextCursor")), string(second.Member("nextCursor")); a == b || a == "" {
		t.Errorf("got cursors %s and %s", a, b)
	}
	m := ready(t, "-fault", "list-null").Call("resources/templates/list", nil)
	if got := string(m.Member("resourceTemplates")); got != "null" {
		t.Errorf("got %s", got)
	}
}

func TestFaultsCanBeNarrowed(t *testing.T) {
	t.Parallel()
	h := ready(t, "-fault", "noresult", "-fault-tool", "pid")
	if h.Tool("echo", nil).Result == nil || h.Tool("pid", nil).Result != nil {
		t.Error("-fault-tool did not narrow the fault")
	}
	h = ready(t, "-fault", "noresult", "-fault-on", "prompts/list")
	if h.Tool("echo", nil).Result == nil || h.Call("prompts/list", nil).Result != nil {
		t.Error("-fault-on did not narrow the fault")
	}
	ledger := mcptest.NewLedger(t)
	for n, want := range []bool{true, true, false} {
		h := ready(t, "-ledger", ledger.Path, "-fault", "noresult", "-fault-times", "2")
		if got := h.Tool("echo", nil).Result == nil; got != want {
			t.Errorf("process %d: struck %t, want %t", n+1, got, want)
		}
	}
}

func TestUnknownFaultIsRefused(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t, "-fault", "nonsense")
	if got := h.Wait(); got != 2 || !strings.Contains(h.Stderr(), `no fault "nonsense"`) {
		t.Errorf("got status %d and %q", got, h.Stderr())
	}
}
