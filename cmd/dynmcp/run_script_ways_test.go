package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Calls of scripts are subject to logins, approvals, filters and roots like all others.

func TestScriptIsOfferedALogin(t *testing.T) {
	t.Parallel()
	const code = `return await tools.web.echo({text: "hi"})`
	e, as := protected(t, mcptest.AuthOptions{Scopes: []string{"read"}})
	p := &person{action: "accept"}
	host, _ := offered(t, e, p, anyTool)
	host.Initialize(handshake, showsPages)
	q := &questioned{Host: host, t: t, era: handshake}
	contains(t, q.script(code).Wait().Text(), `{"text":"hi"}`)
	if p.count() != 1 || as.Count("authorize") != 1 {
		t.Errorf("asked %d times, %d logins", p.count(), as.Count("authorize"))
	}

	e, as = protected(t, mcptest.AuthOptions{Scopes: []string{"read"}})
	host, _ = offered(t, e, &person{}, anyTool)
	call := func(more string) mcptest.Message {
		return host.Call("tools/call", mcptest.ToolParams("run_script", fmt.Sprintf(`{"code":%s}`, quote(code)), mcptest.ModernMeta(showsPages)+more))
	}
	m := call("")
	var questions map[string]struct{ Params struct{ URL string } }
	if err := json.Unmarshal(m.Member("inputRequests"), &questions); err != nil || len(questions) != 1 {
		t.Fatalf("got %s, %v", m.Raw, err)
	}
	for key, question := range questions {
		mcptest.Browse(t, question.Params.URL)
		m = call(fmt.Sprintf(`,"inputResponses":{%s:{"action":"accept"}},"requestState":%s`, quote(key), m.Member("requestState")))
		contains(t, m.Text(), `{"text":"hi"}`)
	}
	if as.Count("authorize") != 1 {
		t.Errorf("%d logins", as.Count("authorize"))
	}
}

func TestScriptCallsNoToolThatIsNotApproved(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	q := answering(t, handshake, []entry{e.with("pins", "block")}, anyTool)
	m, _ := q.run(`try { await tools.alpha.echo({}) } catch (e) { return e.outcome + ": " + e.message }`)
	contains(t, m.Text(), "not_sent: ", "approve")
	if n := e.Count("call echo"); n != 0 {
		t.Errorf("it was called %d times", n)
	}
}

func TestScriptCallsNoToolThatIsFiltered(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	q := answering(t, handshake, []entry{e.with("tool_filter", []string{"!echo"})}, anyTool)
	m, _ := q.run(`try { await tools.alpha.echo({}) } catch (e) { return [e.outcome, e.message, (await search("echo")).includes("alpha/echo")] }`)
	contains(t, m.Text(), `["not_sent","Unknown tool: alpha/echo`, ",false]")
	if n := e.Count("call echo"); n != 0 {
		t.Errorf("it was called %d times", n)
	}
}

func TestScriptAsksForRoots(t *testing.T) {
	t.Parallel()
	for _, era := range []string{handshake, stateless} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			q := answering(t, era, []entry{fake(t, "alpha")}, anyTool)
			close(q.release)
			m, _ := q.run(`return (await tools.alpha.ask({method: "roots/list"}))`)
			contains(t, m.Text(), `"roots":[`)
		})
	}
}

// A script runs on the replica that its host reaches. Its servers may run on another replica,
// and another may receive the answers to its questions.
func TestScriptInACluster(t *testing.T) {
	t.Parallel()
	inACluster(t, func(c *testCluster) {
		alpha := fake(c.t, "alpha")
		a := c.replica("a")
		a.WaitStderr("there is no config in the cluster yet")
		c.pushDocument(document([]entry{alpha}, anyTool))
		a.serving()
		b := c.replica("b").serving()
		code := "return [await tools.alpha.echo({n: 1}), await tools.alpha.ask(" + ask("elicitation/create", `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`) + ")]"
		call := func(r *testReplica, more string) mcptest.Message {
			return postStateless(r.statelessHost(), "tools/call", "run_script", fmt.Sprintf(`{"name":"run_script","arguments":{"code":%s}%s}`, quote(code), more)).Last()
		}
		for _, replicas := range [][2]*testReplica{{a, b}, {b, a}} {
			m := call(replicas[0], "")
			var questions map[string]json.RawMessage
			if err := json.Unmarshal(m.Member("inputRequests"), &questions); err != nil || len(questions) != 1 {
				c.errorf("got %s, %v", m.Raw, err)
				return
			}
			for key := range questions {
				m = call(replicas[1], fmt.Sprintf(`,"requestState":%s,"inputResponses":{%s:{"action":"accept","content":{"who":"ann"}}}`, m.Member("requestState"), quote(key)))
				if !strings.Contains(m.Text(), `[{"n":1},{"result":{"action":"accept","content":{"who":"ann"}}}]`) {
					c.errorf("got %s", m.Raw)
				}
			}
		}
		if n := alpha.Count("start"); n != 1 {
			c.errorf("the server was started %d times", n)
		}
	})
}
