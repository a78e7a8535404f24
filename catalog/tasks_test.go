package catalog

import (
	"encoding/json"
	"strings"
	"testing"
)

// A tool that runs only as a task is shown only to hosts that support the tasks of its
// server.
func TestToolsThatRunOnlyAsTasks(t *testing.T) {
	t.Parallel()
	tools := []json.RawMessage{
		json.RawMessage(`{"name":"both","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}`),
		json.RawMessage(`{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`),
	}
	for _, offers := range []Tasks{NoTasks, HandshakeTasks, StatelessTasks} {
		all := views(Server{Name: "s"}, &Listing{Tools: tools, Tasks: offers})
		for follows, v := range all {
			want := []string{"s/both"}
			if offers != NoTasks && Tasks(follows) == offers {
				want = append(want, "s/slow")
			}
			equal(t, exposed(v), want)
			_, direct := v.Direct("s__slow")
			_, found := v.Tool("s/slow")
			shown := len(want) == 2
			if direct != shown || found != shown || strings.Contains(v.Texts().Describe(2048), "slow") != shown || len(v.Warnings()) == 0 != shown {
				t.Errorf("offers %d, supports %d: direct %v, found %v, warnings %q", offers, follows, direct, found, v.Warnings())
			}
			if says := strings.Contains(v.Texts().Unknown("s/slow"), "it runs only as a task (MCP tasks)"); says == shown {
				t.Errorf("offers %d, supports %d: %s", offers, follows, v.Texts().Unknown("s/slow"))
			}
		}
		if offers == NoTasks && all[HandshakeTasks] != all[NoTasks] {
			t.Error("there are two views of the same content")
		}
	}
	// A tool that the operator's filter hides is treated as nonexistent.
	v := one(Server{Name: "s", Filter: []string{"!slow"}}, &Listing{Tools: tools, Tasks: HandshakeTasks})
	if strings.Contains(v.Texts().Unknown("s/slow"), "task") || len(v.Warnings()) > 0 {
		t.Errorf("%s %q", v.Texts().Unknown("s/slow"), v.Warnings())
	}
}
