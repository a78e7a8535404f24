//go:build e2e

package mcptest_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// strike calls the tool fault and returns the messages between the call and the answer to a ping.
// The ping may overtake the call, so strike waits for the last message first.
func strike(h *mcptest.Host, mode string, last func(mcptest.Message) bool) []mcptest.Message {
	before := len(h.Lines())
	h.Go("tools/call", mcptest.ToolParams("fault", `{"mode":"`+mode+`"}`))
	h.WaitAfter(before, last)
	h.Call("ping", nil)
	all := h.Messages()[before:]
	return all[:len(all)-1]
}

func rawHas(text string) func(mcptest.Message) bool {
	return func(m mcptest.Message) bool { return strings.Contains(m.Raw, text) }
}

// TestAnswers checks the messages of faults after which the process is usable.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const echo = `"text":"{\"mode\":`
	h := ready(t)
	for _, c := range []struct {
		mode string
		last string // part of the last message
		want []string
	}{
		{"twice", `"second answer"`, []string{echo, `"second answer"`}},
		{"unknown-id", echo, []string{`"id":987654321}`, `"id":"nobody"}`, echo}},
		{"string-id", `string id`, []string{`"jsonrpc":"2.0","id":"`}},
		{"null-id", `id null`, []string{`"id":null,"error"`}},
		{"noresult", `"x-grease"`, []string{`{"jsonrpc":"2.0","id":`}},
		{"both", `"both"`, []string{`"error":{"code":-32042,"message":"both"}`}},
		{"batch", `in a batch`, []string{`[{"params":`}},
		{"flood:3", echo, []string{`"flood"`, `"flood"`, `"flood"`, echo}},
		{"flood-lc:2", echo, []string{`tools/list_changed`, `tools/list_changed`, echo}},
		{"garbage-mid", `DEBUG answered`, []string{"DEBUG about", `{"foo":1}`, ``, `[1,2`, `"a string"`, echo, " binary", "DEBUG answered"}},
		{"glued", echo, []string{`"glued"},"method"`}},
		{"dribble", echo, []string{echo}},
		{"invalid-utf8", "\xff\xfe\xc3(", []string{"\xff\xfe\xc3("}},
		{"nonsense", `no call fault`, []string{`"code":-32602`}},
		{"hang-init", `no call fault`, []string{`"code":-32602`}},
	} {
		got := strike(h, c.mode, rawHas(c.last))
		if len(got) != len(c.want) {
			t.Errorf("%s: got %d messages, want %d", c.mode, len(got), len(c.want))
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got[i].Raw, want) {
				t.Errorf("%s: message %d: got %s, want %s", c.mode, i, got[i].Raw, want)
			}
		}
	}
}

func TestHugeAndDeep(t *testing.T) {
	t.Parallel()
	h := ready(t)
	if got := len(h.Tool("fault", `{"mode":"huge:2000000"}`).Raw); got < 2000000 {
		t.Errorf("got %d bytes", got)
	}
	before := len(h.Lines())
	h.Go("tools/call", mcptest.ToolParams("fault", `{"mode":"deep:100000"}`))
	m := h.WaitAfter(before, rawHas(`"deep":[[[`))
	if got := strings.Count(m.Raw, "["); got < 100000 {
		t.Errorf("got %d levels", got)
	}
}

func TestHangCall(t *testing.T) {
	t.Parallel()
	h := ready(t, "-fault", "hang-call")
	p := h.Go("tools/call", mcptest.ToolParams("echo", nil))
	if !unanswered(h, p) {
		t.Error("the call was answered")
	}
	if p.Cancel("late"); !unanswered(h, p) {
		t.Error("the cancelled call was answered")
	}
}

func TestLateAnswersACancelledCall(t *testing.T) {
	t.Parallel()
	h := ready(t, "-fault", "late")
	p := h.Go("tools/call", mcptest.ToolParams("echo", nil))
	if !unanswered(h, p) {
		t.Error("the call was answered before the cancel")
	}
	p.Cancel("enough")
	if p.Wait().Result == nil {
		t.Error("the late answer is an error")
	}
}

func TestLateProgress(t *testing.T) {
	t.Parallel()
	h := ready(t, "-fault", "late-progress")
	before := len(h.Lines())
	h.Call("tools/call", mcptest.ToolParams("echo", nil, `"_meta":{"progressToken":7}`))
	h.WaitMethod("notifications/progress", 1)
	if got := h.Messages()[before:]; !got[0].IsAnswer() || string(got[1].Member("progressToken")) != "7" {
		t.Errorf("got %q", h.Lines()[before:])
	}
}

func TestCrashes(t *testing.T) {
	t.Parallel()
	for fault, answers := range map[string]int{"crash-call": 0, "crash-after": 1} {
		h := ready(t, "-fault", fault)
		before := len(h.Lines())
		h.Go("tools/call", mcptest.ToolParams("echo", nil))
		if got := h.Wait(); got != 3 {
			t.Errorf("%s: got status %d, want 3", fault, got)
		}
		if got := len(h.Lines()) - before; got != answers {
			t.Errorf("%s: got %d answers, want %d", fault, got, answers)
		}
	}
}

func TestPartial(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]int{"partial:1": 1, "partial:17": 17, "partial": 100} {
		h := ready(t, "-fault", fault)
		before := len(h.Lines())
		h.Go("tools/call", mcptest.ToolParams("echo", nil))
		if got := h.Wait(); got != 3 {
			t.Errorf("%s: got status %d, want 3", fault, got)
		}
		if got := h.Lines()[before:]; len(got) != 1 || len(got[0]) < want || !strings.HasPrefix(got[0], "{") {
			t.Errorf("%s: got %q", fault, got)
		}
	}
}

// TestPartialHang ends the process to check that nothing follows the fragment.
func TestPartialHang(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	h := lingering(t, "-ledger", ledger.Path, "-fault", "partial-hang:9", "-leave-after", "1s")
	h.Initialize(version, nil)
	before := len(h.Lines())
	h.Go("tools/call", mcptest.ToolParams("echo", nil))
	ledger.WaitFor("fault partial-hang", 1)
	h.Go("ping", nil)
	ledger.WaitFor("ping", 1)
	h.CloseStdin()
	h.Wait()
	got := h.Lines()[before:]
	if len(got) > 0 && json.Valid([]byte(got[0])) { // the ping was answered before the fault had the line
		got = got[1:]
	}
	if len(got) > 1 || len(got) == 1 && !bytes.HasPrefix([]byte(`{"result":`), []byte(got[0])) {
		t.Errorf("got %q", got)
	}
}

func TestCloseStdout(t *testing.T) {
	t.Parallel()
	h := ready(t, "-fault", "close-stdout")
	before := len(h.Lines())
	h.Go("tools/call", mcptest.ToolParams("echo", nil))
	h.WaitEnd()
	if !mcptest.Alive(h.Pid()) || len(h.Lines()) != before {
		t.Errorf("got %q", h.Lines()[before:])
	}
}
