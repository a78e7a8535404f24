package main_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A call is judged once, by the replica that its host reaches, even if another replica runs
// the server.
func TestPolicyOfReplicas(t *testing.T) {
	t.Parallel()
	inACluster(t, policyOfReplicas)
}

func policyOfReplicas(c *testCluster) {
	alpha, dir := fake(c.t, "alpha"), c.t.TempDir()
	c.pushDocument(document([]entry{alpha}, `"policy": [{"match": "alpha/echo", "arguments": {"properties": {"n": {"type": "integer"}}, "required": ["n"]}, "do": "allow"},
		{"match": "alpha/echo", "do": "deny"}, {"match": "alpha/args", "do": "ask"}, {"do": "allow"}]`, fmt.Sprintf(`"activity": {"dir": %q}`, dir)))
	a, b := c.replica("a").serving(), c.replica("b").serving()
	c.process(useStateless(a.statelessHost(), "alpha/pid", `{}`))
	there, here := c.holder("alpha", a, b)

	h := mcptest.NewClient(c.t, here.url+"/mcp")
	h.Initialize(handshake, `{"elicitation":{}}`)
	if got := h.Call("tools/call", useParams("alpha/echo", `{"n":1}`)).Text(); got != `{"n":1}` {
		c.errorf("a call that is allowed: got %s", got)
	}
	for _, m := range []mcptest.Message{h.Call("tools/call", useParams("alpha/echo", `{"secret":1}`)), useStateless(here.statelessHost(), "alpha/echo", `{"secret":2}`)} {
		if !strings.Contains(m.Raw, "policy rule 2") || !strings.Contains(m.Raw, "not_sent") {
			c.errorf("a call that is denied: got %s", m.Raw)
		}
	}
	questions := 0
	_, got := asking(c.t, h, 50, "alpha/args", `{}`, `{"action":"accept","content":{"allow":"once"}}`, func(mcptest.Message) { questions++ })
	if questions != 1 || got.Error != nil || got.IsError() {
		c.errorf("%d questions, then %s", questions, got.Raw)
	}
	if n := alpha.Count("call echo"); n != 1 {
		c.errorf("%d calls ran, want that which is allowed", n)
	}

	var lines []activity.Line
	mcptest.Eventually(c.t, "all calls are recorded", func() bool {
		var err error
		lines, err = (&activity.Reader{Dir: dir}).Next(context.Background(), &activity.Filter{Server: "alpha"})
		return err == nil && len(lines) >= 5
	})
	// The replica that runs the server records at most the call that was made there.
	denied, runs := 0, map[string]int{}
	for _, l := range lines {
		if l.Rule == 2 && l.Kind == "denied" {
			denied++
		}
		if l.Tool != "pid" {
			runs[l.Run]++
		}
	}
	if denied != 2 || len(lines) != 5 || len(runs) != 1 {
		c.errorf("%d of %d lines are of denied calls, want 2 of 5, by one run: %v (%s has the server)", denied, len(lines), runs, there.name)
	}
}
