package activity

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/tokens"
	"github.com/dynmcp/dynmcp/transports"
)

func TestNamesOfCalls(t *testing.T) {
	for _, c := range []struct {
		line    Line
		name    string
		builtin bool
		failed  bool
	}{
		{Line{Server: "a", Tool: "get", Kind: "ok"}, "a/get", false, false},
		{Line{Server: "a", Method: "resources/read", Kind: "error"}, "a resources/read", false, true},
		{Line{Tool: "use_tool", Kind: "tool_error"}, "use_tool", true, true},
		{Line{Method: "completion/complete", Kind: "denied"}, "completion/complete", false, true},
	} {
		if l := c.line; l.Name() != c.name || l.IsBuiltin() != c.builtin || l.Failed() != c.failed {
			t.Errorf("%+v: got %q, builtin %v, failed %v", l, l.Name(), l.IsBuiltin(), l.Failed())
		}
	}
}

func TestFiltersSelect(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := Line{
		Time: at, Run: "r", Session: "s", Host: "h", Principal: "https://issuer ann", Server: "a", Tool: "get", Outcome: "done", Kind: "ok",
	}
	failed := l
	failed.Kind = "error"
	for _, c := range []struct {
		filter Filter
		line   *Line
		passes bool
	}{
		{Filter{}, &l, true},
		{Filter{Principal: "https://issuer ann"}, &l, true}, {Filter{Principal: "ann"}, &l, true}, {Filter{Principal: "bob"}, &l, false},
		{Filter{Principal: "https://issuer"}, &l, false}, {Filter{Principal: "ann"}, &Line{Kind: "ok"}, false},
		{Filter{Server: "a"}, &l, true}, {Filter{Server: "b"}, &l, false},
		{Filter{Tool: "get"}, &l, true}, {Filter{Tool: "a/get"}, &l, true}, {Filter{Tool: "b/get"}, &l, false},
		{Filter{Host: "h"}, &l, true}, {Filter{Host: "i"}, &l, false},
		{Filter{Session: "s"}, &l, true}, {Filter{Session: "t"}, &l, false},
		{Filter{Run: "r"}, &l, true}, {Filter{Run: "q"}, &l, false},
		{Filter{Outcome: "done"}, &l, true}, {Filter{Outcome: "unknown"}, &l, false},
		{Filter{Since: at}, &l, true}, {Filter{Since: at.Add(-1)}, &l, true}, {Filter{Since: at.Add(1)}, &l, false},
		{Filter{Failed: true}, &l, false}, {Filter{Failed: true}, &failed, true}, {Filter{}, &failed, true},
	} {
		if got := c.filter.Passes(c.line); got != c.passes {
			t.Errorf("%+v: got %v", c.filter, got)
		}
	}
}

// The tokens of what is longer than what is inspected are estimated from its beginning.
func TestTokensOfLongCalls(t *testing.T) {
	text := strings.Repeat("some words of a text ", 4<<10)
	for _, parts := range []int{1, 2, 3} {
		e := Entry{Output: []byte(text[:len(text)/parts])}
		e.BytesOut = len(text)
		e.finish(Keep{})
		if whole := tokens.Count(text); e.TokensOut < whole*9/10 || e.TokensOut > whole*11/10 {
			t.Errorf("1 part of %d of a result: %d tokens, all of it has %d", parts, e.TokensOut, whole)
		}
	}
	for _, size := range []int{mostOutput - 1, mostOutput, mostOutput + 1, len(text)} {
		e := Entry{Input: json.RawMessage(text[:size])}
		e.finish(Keep{})
		if whole := tokens.Count(text[:size]); e.TokensIn < whole*9/10 || e.TokensIn > whole*11/10 {
			t.Errorf("arguments of %d bytes: %d tokens, want about %d", size, e.TokensIn, whole)
		}
	}
	none := Entry{}
	none.BytesOut = 5
	if none.finish(Keep{}); none.TokensOut != 0 || none.TokensIn != 0 || none.Digest != "" {
		t.Errorf("a call without arguments whose result is not known: %+v", none.Line)
	}
	texts := Entry{Output: []byte(`{"content":[{"type":"text","text":"one two"},{"type":"image","data":"` + strings.Repeat("QUJD", 100) + `"}]}`)}
	texts.BytesOut = len(texts.Output)
	if texts.finish(Keep{}); texts.TokensOut != tokens.Count("one two") {
		t.Errorf("the texts of a result: %d tokens", texts.TokensOut)
	}
}

// A part of a call is recorded as JSON if it is complete and not too long, otherwise its beginning as
// a string.
func TestLongPartsAreTruncated(t *testing.T) {
	keep := Keep{Arguments: true, Results: true, Redact: func(text string, whole bool) string {
		if !whole {
			return text + " and more"
		}
		return text
	}}
	for _, c := range []struct {
		size, whole int
		quoted      bool
	}{{maxKept, maxKept, false}, {maxKept + 1, maxKept + 1, true}, {100, 101, true}, {100, 100, false}, {100, 0, false}} {
		text := `"` + strings.Repeat("x", c.size-2) + `"`
		e := Entry{Input: json.RawMessage(text), Output: []byte(text)}
		e.BytesOut = c.whole
		e.finish(keep)
		if quoted := string(e.Result) != text; quoted != c.quoted || quoted && (!strings.HasSuffix(string(e.Result), ` and more"`) || len(e.Result) > maxKept+20) {
			t.Errorf("%+v: got %.20s… with %d bytes", c, e.Result, len(e.Result))
		}
		if quoted := string(e.Arguments) != text; quoted != (c.size > maxKept) {
			t.Errorf("%+v: got arguments %.20s… with %d bytes", c, e.Arguments, len(e.Arguments))
		}
	}
	e := Entry{Output: []byte("no JSON")}
	if e.finish(keep); string(e.Result) != `"no JSON"` {
		t.Errorf("got %s", e.Result)
	}
}

// Quantiles are those of the last calls that were sent, and counts of all.
func TestToolStats(t *testing.T) {
	if p50, p99 := quantiles(nil); p50 != 0 || p99 != 0 {
		t.Errorf("of nothing: %v and %v", p50, p99)
	}
	if p50, p99 := quantiles([]float64{7}); p50 != 7 || p99 != 7 {
		t.Errorf("of 7: %v and %v", p50, p99)
	}
	var s ToolStats
	for i := range 250 {
		s.Add(&Line{Kind: "ok", MS: float64(i + 10), StartMS: 10}, 100)
	}
	s.Add(&Line{Kind: "timeout", Outcome: "not_sent", MS: 1e6}, 100)
	if s.Measure(); s.Calls != 251 || s.Errors != 1 || s.Kinds["timeout"] != 1 || s.P50 != 210 || s.P99 != 259 || s.Sent50 != 200 || s.Sent99 != 249 {
		t.Errorf("got %+v", s)
	}
}

// A call takes its session's share of the record. A start of less than a millisecond is none.
func TestEntryOf(t *testing.T) {
	began := time.Now()
	end := event.Call{
		From: event.Session{ID: "s", Share: "192.0.2.1", Host: "claude-code"}, Upstream: "u", Method: "tools/call", Tool: "t", Kind: "ok", Outcome: transports.Executed,
		Began: began, Sent: began.Add(2500 * time.Microsecond), End: began.Add(4 * time.Millisecond), Result: make([]byte, 2*mostOutput),
	}
	e := EntryOf(&end, false)
	if e.User != "192.0.2.1" || e.Session != "s" || e.Host != "claude-code" || e.Outcome != "done" || e.Method != "" || e.MS != 4 || e.StartMS != 2.5 || len(e.Output) != mostOutput {
		t.Errorf("got %+v", e.Line)
	}
	end.Method, end.Sent = "prompts/get", began.Add(time.Millisecond/2)
	if e := EntryOf(&end, false); e.StartMS != 0 || e.Method != "prompts/get" {
		t.Errorf("got %+v", e.Line)
	}
}
