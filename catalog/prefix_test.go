package catalog

import "testing"

func TestPrefixIsReadInTheSpellingsOfCalls(t *testing.T) {
	t.Parallel()
	v := loadedWith([]Server{{Name: "my-calc"}, {Name: "other"}}, map[string]*Listing{"my-calc": tools("add", ""), "other": tools("x", "")}).Views()[NoTasks]
	for given, want := range map[string]string{
		"": "", "my-calc/": "my-calc/", "my-calc/ad": "my-calc/ad",
		"my_calc/ad": "my-calc/ad", "my-calc__ad": "my-calc/ad", "my_calc_ad": "my-calc/ad", "my-calc.": "my-calc/", "MY-CALC:ad": "my-calc/ad", "my-calc::ad": "my-calc/ad",
		"mcp__my-calc__ad": "my-calc/ad", " my-calc_": "my-calc/",
		"my-cal": "my-cal", "other_": "other/", "mcp__": "mcp__",
	} {
		if got := PrefixIn(v, given); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}
