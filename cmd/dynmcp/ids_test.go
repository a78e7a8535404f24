package main_test

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Ids: those that are allowed come back as they were sent, whatever answers.

// planes are a request for each way a request can take through dynmcp, and what
// the result must have.
var planes = map[string]struct {
	method string
	params any
	has    string
}{
	"the SDK":     {"ping", nil, "{}"},
	"the lists":   {"tools/list", nil, "discover_tool"},
	"ourselves":   {"tools/call", `{"name":"discover_tool","arguments":{}}`, "content"},
	"an upstream": {"tools/call", `{"name":"use_tool","arguments":{"tool_name":"alpha/echo"}}`, "content"},
	"a resource":  {"resources/read", `{"uri":"fake://alpha/text"}`, "contents"},
}

func TestIDInFlightIsRefusedOnce(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	host := serve(t, e)
	begun := 0
	begin := func(id string, gate mcptest.Gate) *mcptest.Pending {
		call := host.GoRaw(id, "tools/call", useParams("alpha/sleep", map[string]string{"until": gate.Path}))
		begun++
		e.WaitFor("call sleep", begun)
		return call
	}
	for plane, c := range planes {
		gate := mcptest.NewGate(t)
		first := begin(`"same"`, gate)
		before := len(host.Messages())
		host.GoRaw(`"same"`, c.method, c.params)
		if m := host.WaitAfter(before, func(m mcptest.Message) bool { return m.Error != nil }); m.Code() != -32600 || string(m.ID) != "null" {
			t.Errorf("%s: got %s", plane, m.Raw)
		}
		before = len(host.Messages())
		gate.Open()
		answer := host.WaitAfter(before, func(m mcptest.Message) bool { return string(m.ID) == string(first.ID) })
		if answer.Text() != "slept" {
			t.Errorf("%s: the first request got %s", plane, answer.Raw)
		}
		if m := host.CallRaw(`"same"`, "ping", nil); m.Error != nil {
			t.Errorf("%s: an id that is free again was refused: %s", plane, m.Raw)
		}
	}
	// A string and a number are two ids.
	one, other := mcptest.NewGate(t), mcptest.NewGate(t)
	number, text := begin(`7`, one), begin(`"7"`, other)
	one.Open()
	if m := number.Wait(); m.Text() != "slept" || text.Done() {
		t.Errorf("7 and \"7\" were mixed up: %q", host.Lines())
	}
	other.Open()
	text.Wait()
}

func TestAnswersWaitForInitialize(t *testing.T) {
	t.Parallel()
	gate := mcptest.NewGate(t)
	ledger := mcptest.NewLedger(t)
	host := mcptest.StartDynmcp(t, "--", mcptest.Fake(t), "-ledger", ledger.Path, "-fault", "gate-init:"+gate.Path)
	first := host.Go("initialize", hello)
	host.Notify("notifications/initialized", nil)
	pipelined := []*mcptest.Pending{
		host.Go("tools/call", mcptest.ToolParams("discover_tool", `{}`)),
		host.Go("tools/call", mcptest.ToolParams("no_such_tool", nil)),
		host.Go("tools/list", nil),
		host.Go("tools/call", useParams("echo", `{"n":1}`)),
		host.GoRaw("null", "ping", nil),
	}
	ledger.WaitFor("initialize", 1)
	gate.Open()
	if m := first.Wait(); m.Error != nil {
		t.Fatal(m.Raw)
	}
	for _, p := range pipelined[:4] {
		p.Wait()
	}
	if got := host.Messages()[0]; string(got.ID) != string(first.ID) {
		t.Errorf("the first line is %s", got.Raw)
	}
	if got := pipelined[3].Wait().Text(); got != `{"n":1}` {
		t.Errorf("got %s", got)
	}
}
