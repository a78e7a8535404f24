//go:build e2e

package mcptest_test

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

func TestFakeTasks(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t, "-era", "new", "-tasks")
	with := func(members string) string {
		return `{` + mcptest.ModernMeta(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`) + `,` + members + `}`
	}
	if m := h.Call("tools/call", modern(`"name":"failing_job"`)); m.Code() != -32021 {
		t.Errorf("got %s", m.Raw)
	}
	m := h.Call("tools/call", with(`"name":"multi_input"`))
	if string(m.Member("resultType")) != `"task"` || string(m.Member("taskId")) != `"task-1"` {
		t.Fatalf("got %s", m.Raw)
	}
	for _, answer := range []string{`{"one":{}}`, `{"two":{}}`} {
		mcptest.Eventually(t, "it asks", func() bool {
			return string(h.Call("tasks/get", with(`"taskId":"task-1"`)).Member("status")) == `"input_required"`
		})
		h.Call("tasks/update", with(`"taskId":"task-1","inputResponses":`+answer))
	}
	mcptest.Eventually(t, "it ends", func() bool {
		return string(h.Call("tasks/get", with(`"taskId":"task-1"`)).Member("status")) == `"completed"`
	})
}
