package aggregator

import (
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/rule"
)

// brokenRules panic when they judge a call.
type brokenRules struct{ rule.Rules }

func (brokenRules) Judge(*rule.Call) rule.Verdict { panic("index out of range") }

// A call whose rules panic is not sent, and the run goes on.
func TestRulesThatPanic(t *testing.T) {
	t.Parallel()
	onStage(t, asksBeforePay, func(t *testing.T, st *stage) {
		broken := *st.agg.state.Load()
		broken.policy = brokenRules{broken.policy}
		st.agg.state.Store(&broken)
		for _, id := range []string{"1", "2"} {
			st.hosts[0].pay(id)
			got := settle(st.hosts[0])
			if len(got) != 1 || !strings.Contains(string(got[0].Result), "not_sent") || !strings.Contains(string(got[0].Result), "the rules about calls failed: index out of range") {
				t.Errorf("the host got %v", got)
			}
		}
		if got := settle(st.upstreams[0]); len(got) != 0 {
			t.Errorf("the upstream got %v", got)
		}
	})
}
