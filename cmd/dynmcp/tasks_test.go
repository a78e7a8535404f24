package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Tasks of the extension io.modelcontextprotocol/tasks, between a host and servers of
// the stateless era.

// following are params of a host that follows tasks.
func following(members ...string) string {
	declared := mcptest.ModernMeta(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
	return "{" + strings.Join(append(members, declared), ",") + "}"
}

func aboutTask(id string, more ...string) string {
	return following(append([]string{`"taskId":` + quote(id)}, more...)...)
}

func TestTasksOfSeveralServers(t *testing.T) {
	t.Parallel()
	host := mcptest.StartDynmcp(t, "-c", mcptest.Config(t, document([]entry{
		fake(t, "near", "-era", "new", "-tasks"), remote(t, "far", "-era", "new", "-tasks")})))
	ids := map[string]string{}
	for _, server := range []string{"near", "far"} {
		m := host.Call("tools/call", following(fmt.Sprintf(`"name":"use_tool","arguments":{"tool_name":%q,"tool_input":{"seconds":600}}`, server+"/slow_compute")))
		var id string
		if err := json.Unmarshal(m.Member("taskId"), &id); err != nil || id != server+"/task-1" || string(m.Member("resultType")) != `"task"` {
			t.Fatalf("%s: got %s", server, m.Raw)
		}
		ids[server] = id
	}
	stream := host.Go("subscriptions/listen", following(fmt.Sprintf(`"notifications":{"taskIds":[%s,%s]}`, quote(ids["near"]), quote(ids["far"]))))
	ack := host.WaitMethod("notifications/subscriptions/acknowledged", 1)
	contains(t, ack.Raw, `"taskIds":["far/task-1","near/task-1"]`)
	for server, id := range ids {
		if m := host.Call("tasks/get", aboutTask(id)); string(m.Member("taskId")) != quote(id) || string(m.Member("status")) != `"working"` {
			t.Errorf("%s: got %s", server, m.Raw)
		}
		host.Call("tasks/cancel", aboutTask(id))
		m := host.WaitFor(func(m mcptest.Message) bool {
			return m.Method == "notifications/tasks" && string(m.Member("taskId")) == quote(id)
		})
		if string(m.Member("status")) != `"cancelled"` || string(m.Member("_meta", "io.modelcontextprotocol/subscriptionId")) != string(stream.ID) {
			t.Errorf("%s: got %s", server, m.Raw)
		}
	}
	if m := host.Call("tasks/get", aboutTask("near/task-7")); m.Code() != -32602 {
		t.Errorf("got %s", m.Raw)
	}
}

// An id stays valid after a reload and after the end of the session.
func TestTasksOutliveReloads(t *testing.T) {
	t.Parallel()
	far, near := remote(t, "far", "-era", "new", "-tasks"), fake(t, "near")
	path := mcptest.Config(t, document([]entry{far}))
	host := mcptest.StartDynmcp(t, "-c", path)
	created := host.Call("tools/call", following(`"name":"use_tool","arguments":{"tool_name":"far/confirm_delete","tool_input":{}}`))
	var id string
	if err := json.Unmarshal(created.Member("taskId"), &id); err != nil {
		t.Fatal(created.Raw)
	}
	l := &live{host, t, path}
	l.edit(near, far.with("timeout", "10m"))
	about := aboutTask(id)
	mcptest.Eventually(t, "the task waits for an answer", func() bool {
		return strings.Contains(host.Call("tasks/get", about).Raw, `"inputRequests":{"confirm":`)
	})
	end(t, host)
	next := mcptest.StartDynmcp(t, "-c", path)
	next.Call("tasks/update", aboutTask(id, `"inputResponses":{"confirm":{"action":"accept","content":{"n":1.0}}}`))
	mcptest.Eventually(t, "the task ends", func() bool {
		return strings.Contains(next.Call("tasks/get", about).Raw, `"status":"completed"`)
	})
}

func TestTasksAreForHostsThatFollowThem(t *testing.T) {
	t.Parallel()
	host := start(t, fake(t, "alpha", "-era", "new", "-tasks"))
	if m := host.Call("tools/call", modernUse("alpha/slow_compute", `{"seconds":0}`)); m.Text() != "computed" {
		t.Errorf("got %s", m.Raw)
	}
	contains(t, host.Call("tools/call", modernUse("alpha/failing_job", `{}`)).Text(), "it runs only as a task (MCP tasks), and this host does not follow those of its server")
	if m := host.Call("tasks/get", modern(`"taskId":"alpha/task-1"`)); m.Code() != -32021 {
		t.Errorf("got %s", m.Raw)
	}
	for params, shown := range map[string]bool{modern(): false, following(): true} {
		if got := strings.Contains(string(host.Call("tools/list", params).Result), "failing_job"); got != shown {
			t.Errorf("%s: shown is %v", params, got)
		}
	}
}
