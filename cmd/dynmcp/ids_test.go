package main_test

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

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
