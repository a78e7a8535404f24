package main_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Rules may be about users of a gateway. An answer holds for one user in one session, and the
// record says which rule refused whose call.
func TestPolicyOfUsers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := serveUsers(t, []entry{fake(t, "alpha")}, `"policy": [{"match": "alpha/echo", "principal": "b*", "do": "deny"},
		{"match": "alpha/echo", "surface": "api", "do": "deny"}, {"match": "alpha/pid", "do": "ask"}, {"do": "allow"}]`,
		fmt.Sprintf(`"activity": {"dir": %q}`, dir))
	ann, bob := run.client("ann", "/mcp"), run.client("bob", "/mcp")
	ann.Initialize(handshake, `{"elicitation":{}}`)
	bob.Initialize(handshake, `{"elicitation":{}}`)
	const echo, pid = `{"name":"use_tool","arguments":{"tool_name":"alpha/echo","tool_input":{}}}`, `{"name":"use_tool","arguments":{"tool_name":"alpha/pid","tool_input":{}}`
	allowed := func(what string, m mcptest.Message) {
		t.Helper()
		if m.Error != nil || m.IsError() || m.Member("requestState") != nil {
			t.Errorf("%s: %s", what, m.Raw)
		}
	}
	refused := func(what, why, answer string) {
		t.Helper()
		if !strings.Contains(answer, why) {
			t.Errorf("%s: %s", what, answer)
		}
	}
	allowed("echo of ann", ann.Call("tools/call", useParams("alpha/echo", `{}`)))
	refused("echo of bob", "policy rule 1", bob.Call("tools/call", useParams("alpha/echo", `{}`)).Raw)
	refused("echo of bob without a session", "policy rule 1", postStateless(run.client("bob", "/mcp"), "tools/call", "use_tool", echo).Body)
	refused("echo by the API", "policy rule 2", run.client("ann", "/meta_call").Post(`{"path":"/alpha/echo","args":{}}`).Body)
	refused("pid by the API, which cannot ask", `put {\"match\": \"alpha/pid\", \"do\": \"allow\"} before`, run.client("ann", "/meta_call").Post(`{"path":"/alpha/pid","args":{}}`).Body)

	// What ann allows for her session holds in no other session.
	question, got := asking(t, ann, 50, "alpha/pid", `{}`, `{"action":"accept","content":{"allow":"session"}}`, nil)
	refused("the question", "Allow a call of alpha/pid?", question.Raw)
	allowed("pid of ann", got)
	allowed("pid of ann again", ann.Call("tools/call", useParams("alpha/pid", `{}`)))
	question, got = asking(t, bob, 51, "alpha/pid", `{}`, `{"action":"decline"}`, nil)
	refused("the question to bob", "Allow a call of alpha/pid?", question.Raw)
	refused("pid of bob", "did not allow it", got.Raw)

	// A request without a session is asked about each time, and only its user may answer.
	asked := postStateless(run.client("ann", "/mcp"), "tools/call", "use_tool", pid+"}").Last()
	if strings.Contains(asked.Raw, `"session"`) {
		t.Errorf("without a session it is offered for one: %s", asked.Raw)
	}
	answered := fmt.Sprintf(`%s,"requestState":%s,"inputResponses":{"permit":{"action":"accept","content":{"allow":"once"}}}}`, pid, asked.Member("requestState"))
	refused("her answer, by bob", "requestState is not valid", postStateless(run.client("bob", "/mcp"), "tools/call", "use_tool", answered).Body)
	allowed("pid with her answer", postStateless(run.client("ann", "/mcp"), "tools/call", "use_tool", answered).Last())
	refused("her answer again", "requestState is not valid", postStateless(run.client("ann", "/mcp"), "tools/call", "use_tool", answered).Body)
	if m := postStateless(run.client("ann", "/mcp"), "tools/call", "use_tool", pid+"}").Last(); m.Member("requestState") == nil {
		t.Errorf("it is not asked again: %s", m.Raw)
	}

	var lines []activity.Line
	mcptest.Eventually(t, "all calls are recorded", func() bool {
		var err error
		lines, err = (&activity.Reader{Dir: dir}).Next(context.Background(), &activity.Filter{Server: "alpha"})
		return err == nil && len(lines) >= 9
	})
	n := map[string]int{}
	for _, l := range lines {
		n[fmt.Sprintf("%s %s %s %s %d", strings.TrimPrefix(l.Principal, run.issuer+" "), l.Surface, l.Tool, l.Kind, l.Rule)]++
	}
	for what, want := range map[string]int{
		"ann discover echo ok 0": 1, "bob discover echo denied 1": 2, "ann api echo denied 2": 1, "ann api pid denied 3": 1,
		"ann discover pid ok 0": 3, "bob discover pid denied 3": 1,
	} {
		if n[what] != want {
			t.Errorf("%s: %d lines, want %d of %v", what, n[what], want, n)
		}
	}
}
