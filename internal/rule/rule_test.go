package rule

import (
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/schema"
)

// broken are rules that panic: with hider set, only what they hide does.
type broken struct{ hider bool }

func (broken) Judge(*Call) Verdict                    { panic("broken") }
func (broken) Preflight(*Call, string) (bool, string) { panic("broken") }
func (broken) MayHide(string) bool                    { panic("broken") }
func (broken) Hides(string, string, string) bool      { panic("broken") }
func (b broken) HiddenFrom(string) Hider {
	if !b.hider {
		panic("broken")
	}
	return b
}

// Rules that panic refuse every call, and hide every tool.
func TestRulesThatPanicRefuse(t *testing.T) {
	if v, err := Judge(broken{}, &Call{}); err == nil || !strings.Contains(err.Error(), "broken") || v.Do != schema.PolicyDeny {
		t.Errorf("got %v, %v", v, err)
	}
	if may, says := Preflight(broken{}, &Call{}, "a/b"); may || !strings.Contains(says, "broken") {
		t.Errorf("got %t, %s", may, says)
	}
	for _, rules := range []Rules{broken{}, broken{hider: true}} {
		if h := HiddenFrom(rules, ""); h == nil || !h.MayHide("a") || !h.Hides("a", "b", "@readonly") {
			t.Errorf("%+v hide nothing", rules)
		}
	}
	if a, b := HiddenFrom(broken{hider: true}, "a"), HiddenFrom(broken{hider: true}, "b"); a != b {
		t.Error("what hides the same differs, so that views are not shared")
	}
}

// A sourceA, and a sourceB, are keys that say the same rules.
type (
	sourceA struct{ say Rules }
	sourceB struct{ say Rules }
)

func (s sourceA) Rules() (Rules, error) { return s.say, nil }
func (s sourceB) Rules() (Rules, error) { return s.say, nil }

// A config with two sets of rules is refused, since a call would be judged by one of them only.
func TestRulesOfTwoModules(t *testing.T) {
	cfg := schema.Single("a", nil).WithKeys(sourceA{broken{}}).WithKeys(struct{ Other int }{1})
	if rules, err := Of(cfg); rules != (broken{}) || err != nil {
		t.Errorf("got %v, %v", rules, err)
	}
	both := cfg.WithKeys(sourceB{broken{}})
	if rules, err := Of(both); rules != nil || err == nil {
		t.Errorf("got %v of two modules", rules)
	}
	if rules, err := Of(Without(both)); rules != nil || err != nil {
		t.Errorf("got %v, %v without rules", rules, err)
	}
}

// Without rules, every tool may be called.
func TestNoRules(t *testing.T) {
	if may, says := Preflight(nil, &Call{}, "a/b"); !may || says != "" {
		t.Errorf("got %t, %s", may, says)
	}
	if v, err := Judge(nil, &Call{}); err != nil || v.Do != schema.PolicyAllow {
		t.Errorf("got %v, %v", v, err)
	}
	if h := HiddenFrom(nil, ""); h != nil {
		t.Errorf("got %v", h)
	}
}
