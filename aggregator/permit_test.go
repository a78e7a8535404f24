package aggregator

import (
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/modules/policy/rules"
	"github.com/dynmcp/dynmcp/schema"
)

const asksBeforePay = `
-- setup --
host 2025-11-25 {"elicitation":{}}
upstream 2025-11-25 {"tools":{}}
-- config --
"policy": [{"match": "up/pay", "do": "ask"}, {"do": "allow"}]
-- upstream tools/list --
{"tools":[{"name":"pay","inputSchema":{"type":"object"}}]}
`

func (a *actor) pay(id string) {
	a.send(a.message(`{"id":` + id + `,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"up/pay","tool_input":{"n":` + id + `}}}}`))
}

// A call that a person allows is refused if the policy forbids it since the question was asked.
func TestPolicyThatChangesDuringAQuestion(t *testing.T) {
	t.Parallel()
	onStage(t, asksBeforePay, func(t *testing.T, st *stage) {
		h := st.hosts[0]
		h.pay("1")
		settle(h)
		cfg := st.agg.config().WithKeys(rules.Keys{Policy: []rules.PolicyRule{{Do: schema.PolicyDeny}}})
		if err := st.agg.Apply(cfg); err != nil {
			t.Fatal(err)
		}
		h.send(h.message(`{"id":1,"result":{"action":"accept","content":{"allow":"once"}}}`))
		if got := settle(h); len(got) != 2 || !strings.Contains(string(got[0].Result), "policy rule 1") || got[1].Method != "notifications/tools/list_changed" {
			t.Errorf("the host got %v", got)
		}
		if got := settle(st.upstreams[0]); len(got) != 0 {
			t.Errorf("the upstream got %v", got)
		}
	})
}

// A yes for the session is one for the calls that wait for the same answer, too. Their questions
// are withdrawn.
func TestYesForASessionAnswersTheOtherQuestions(t *testing.T) {
	t.Parallel()
	onStage(t, asksBeforePay, func(t *testing.T, st *stage) {
		h, up := st.hosts[0], st.upstreams[0]
		h.pay("1")
		h.pay("2")
		settle(h)
		h.send(h.message(`{"id":1,"result":{"action":"accept","content":{"allow":"session"}}}`))
		if got := settle(up); len(got) != 2 {
			t.Errorf("%d calls were sent, want 2: %v", len(got), got)
		}
		if got := settle(h); len(got) != 1 || got[0].Method != "notifications/cancelled" {
			t.Errorf("the host got %v, want the end of the second question", got)
		}
		for _, w := range st.agg.judge.Permits.Waiting() {
			t.Errorf("%s waits for an answer", w.Tool)
		}
	})
}
