package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// check returns the mistakes in rules, a line each.
func check(t *testing.T, rules string) string {
	t.Helper()
	root, err := syntax.ParseJSON("mcp.json", []byte(`{"policy":`+rules+`}`))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range mistakes("policy", root.ItemsOf("policy")) {
		all = append(all, fmt.Sprintf("%d:%d %s: %s; %s", m.At.Line, m.At.Col, m.Path, m.What, m.Hint))
	}
	return strings.Join(all, "\n")
}

const (
	known = `"arguments":{"properties":{"n":{"type":"integer"}},"required":["n"]}`
	pay   = `{"match":"u/pay","do":"ask",` + known + `}`
)

// A rule that has a person asked about arguments does not let others pass unasked.
func TestArgumentsThatARuleAsksAbout(t *testing.T) {
	for rest, rule := range map[string]int{
		`{"do":"deny"}`:  0,
		`{"do":"ask"}`:   0,
		`{"do":"allow"}`: 2,
		`{"match":"u/pay","do":"deny"},{"do":"allow"}`:                                  0,
		`{"match":"u/pay","do":"ask"},{"do":"allow"}`:                                   0,
		`{"match":"u/pay","do":"allow"},{"do":"deny"}`:                                  2,
		`{"match":"u/pay","do":"allow",` + known + `},{"do":"deny"}`:                    0,
		`{"match":"u/pay","do":"allow",` + known + `},{"do":"allow"}`:                   3,
		`{"match":"u/*","do":"allow"},{"do":"deny"}`:                                    2,
		`{"match":"*/pay","do":"allow"},{"do":"deny"}`:                                  2,
		`{"match":"@write","do":"allow"},{"do":"deny"}`:                                 2,
		`{"match":"u/@write","do":"allow"},{"do":"deny"}`:                               2,
		`{"match":"v/pay","do":"allow"},{"match":"v/*","do":"allow"},{"do":"deny"}`:     0,
		`{"match":"u/read","do":"allow"},{"match":"*/read","do":"allow"},{"do":"deny"}`: 0,
		`{"match":"u/pay","principal":"ann","do":"deny"},{"do":"allow"}`:                3,
		`{"match":"u/pay","host":"claude","do":"deny"},{"do":"allow"}`:                  3,
		`{"match":"u/pay","surface":"direct","do":"deny"},{"do":"allow"}`:               3,
		`{"match":"u/*","do":"deny"},{"do":"allow"}`:                                    3,
	} {
		got := check(t, "["+pay+","+rest+"]")
		if want := fmt.Sprintf("rule %d allows them", rule); (got == "") != (rule == 0) || rule > 0 && !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %d", rest, got, rule)
		}
	}
	same := strings.Replace(pay, `"do"`, `"principal":"ann","do"`, 1)
	if got := check(t, `[`+same+`,{"match":"u/pay","principal":"ann","do":"deny"},{"do":"allow"}]`); got != "" {
		t.Errorf("a rule for the same user: %s", got)
	}
}

// Mistakes are at the member that they are about, with the line to write.
func TestMistakes(t *testing.T) {
	long := strings.Repeat("a", 200-len(`{"pattern": ""}`))
	for rules, want := range map[string]string{
		`[{"do":"deny",` + known + `},{"do":"allow"}]`: `1:37 policy[0].arguments: deny together with arguments lets the same arguments pass in other spellings; ` +
			`allow what is known and deny the rest: {"match": "SERVER/TOOL", "do": "allow", "arguments": {…}}, {"match": "SERVER/TOOL", "do": "deny"}`,
		`[{"match":"a/b","do":"allow"},{"do":"ask","arguments":null}]`:  ``,
		`[{"match":"a/b","do":"allow"}]`:                                `1:12 policy[0]: there is no rule for all other calls; end the list with {"do": "allow"} or {"do": "deny"}`,
		`[{"do":"allow"},{"do":"deny"}]`:                                `1:12 policy[0]: the rules after this one are never reached; move it to the end, or say what it is for`,
		`[{"do":"allow","arguments":{"prefixItems":[]}},{"do":"deny"}]`: ``,
		`[{"do":"allow","arguments":{"properties":{"1":{"pattern":"x"}}}},{"do":"deny"}]`: `1:57 policy[0].arguments.properties.1: the type is missing: a value of another type would not be judged; ` +
			`write "1": {"type": "string", "pattern": "x"}`,
		`[{"do":"allow","arguments":{"properties":{"a":{"pattern":"` + long + `"}}}},{"do":"deny"}]`: `1:57 policy[0].arguments.properties.a: the type is missing: a value of another type would not be judged; ` +
			`write "a": {"type": "string", "pattern": "` + long + `"}`,
		`[{"do":"allow","arguments":{"properties":{"a":{"pattern":"` + long + `b"}}}},{"do":"deny"}]`: `1:57 policy[0].arguments.properties.a: the type is missing: a value of another type would not be judged; ` +
			`write "a": {"type": "string", …}`,
		`[{"do":"allow","arguments":{"allOf":[true,{"properties":{"a":{"minimum":1}}}]}},{"do":"deny"}]`: `1:72 policy[0].arguments.allOf[1].properties.a: the type is missing: a value of another type would not be judged; ` +
			`write "a": {"type": "number", "minimum": 1}`,
	} {
		if got := check(t, rules); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", rules, got, want)
		}
	}
}
