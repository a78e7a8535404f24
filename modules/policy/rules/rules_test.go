package rules

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/schema"
)

// rulesOf reads rules as a config has them.
func rulesOf(t *testing.T, text string) *Rules {
	t.Helper()
	cfg, err := schema.LoadText("mcp.json", []byte(`{"mcp":{"a":{"command":"x"}},"policy":`+text+`}`), schema.LoadOptions{Sections: []schema.Section{Section}})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := New(schema.Keys[Keys](cfg).Policy)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

const byPlace = `[
	{"match":"github/delete_*","do":"ask"},
	{"match":"@destructive","principal":"ci-*","do":"deny"},
	{"match":"github/@readonly","do":"allow"},
	{"match":"{git,svn}/[!a-c]*","host":"claude-*","do":"deny"},
	{"match":"*/secret\\*","do":"deny"},
	{"match":"files/*","surface":"direct","do":"ask"},
	{"surface":"api","do":"deny"},
	{"match":"@write","principal":"ci-*","host":"bot","surface":"proxy","do":"ask"},
	{"do":"allow"}]`

// Rules match by server, tool, class, principal, host and surface. The first match decides.
func TestRulesByWhatACallIs(t *testing.T) {
	rules := rulesOf(t, byPlace)
	for _, tt := range []struct {
		call rule.Call
		do   string
		rule int
	}{
		{rule.Call{Server: "github", Tool: "delete_repo", Class: "@destructive"}, "ask", 1},
		{rule.Call{Server: "github", Tool: "delete_", Class: "@readonly"}, "ask", 1},
		{rule.Call{Server: "github", Tool: "Delete_repo", Class: "@readonly"}, "allow", 3},
		{rule.Call{Server: "github2", Tool: "delete_repo"}, "allow", 9},
		{rule.Call{Server: "github", Tool: "delete_repo", Class: "@destructive", Principal: "ci-1"}, "ask", 1},
		{rule.Call{Server: "gitlab", Tool: "delete_repo", Class: "@destructive", Principal: "ci-1"}, "deny", 2},
		{rule.Call{Server: "gitlab", Tool: "delete_repo", Class: "@destructive", Principal: "https://id.example.com ci-1"}, "deny", 2},
		{rule.Call{Server: "gitlab", Tool: "delete_repo", Class: "@destructive", Principal: "https://id.example.com x ci-1"}, "allow", 9},
		{rule.Call{Server: "gitlab", Tool: "delete_repo", Class: "@destructive", Principal: "xci-1"}, "allow", 9},
		{rule.Call{Server: "gitlab", Tool: "delete_repo", Class: "@destructive"}, "allow", 9},
		{rule.Call{Server: "gitlab", Tool: "delete_repo", Class: "@write", Principal: "ci-1"}, "allow", 9},
		{rule.Call{Server: "github", Tool: "get", Class: "@readonly"}, "allow", 3},
		{rule.Call{Server: "git", Tool: "log", Host: "claude-code"}, "deny", 4},
		{rule.Call{Server: "svn", Tool: "log", Host: "claude-code"}, "deny", 4},
		{rule.Call{Server: "git", Tool: "add", Host: "claude-code"}, "allow", 9},
		{rule.Call{Server: "git", Tool: "log", Host: "cursor"}, "allow", 9},
		{rule.Call{Server: "git", Tool: "log"}, "allow", 9},
		{rule.Call{Server: "x", Tool: "secret*"}, "deny", 5},
		{rule.Call{Server: "x", Tool: "secrets"}, "allow", 9},
		{rule.Call{Server: "files", Tool: "read", Surface: "direct"}, "ask", 6},
		{rule.Call{Server: "files", Tool: "a/b", Surface: "direct"}, "ask", 6},
		{rule.Call{Server: "files", Tool: "read", Surface: "discover"}, "allow", 9},
		{rule.Call{Server: "files", Tool: "read", Surface: "api"}, "deny", 7},
		{rule.Call{Server: "x", Tool: "put", Class: "@write", Principal: "ci-2", Host: "bot", Surface: "proxy"}, "ask", 8},
		{rule.Call{Server: "x", Tool: "put", Class: "@write", Principal: "ci-2", Host: "bot", Surface: "tree"}, "allow", 9},
	} {
		if got := rules.Judge(&tt.call); got.Do != tt.do || got.Rule != tt.rule {
			t.Errorf("%+v: got %+v, want %s by rule %d", tt.call, got, tt.do, tt.rule)
		}
	}
}

const (
	onlyDocs   = `{"type":"object","properties":{"repo":{"type":"string","const":"docs"}},"required":["repo"]}`
	onlySelect = `{"properties":{"query":{"type":"string","pattern":"^(?i)select [^;]*$"}},"required":["query"],"additionalProperties":false}`
	nested     = `{"properties":{"filter":{"type":"object","properties":{"owner":{"type":"string","enum":["me","us"]}},"required":["owner"]}},"required":["filter"]}`
	small      = `{"properties":{"n":{"type":"integer","maximum":9007199254740991},"deep":{"type":"boolean"},"ids":{"type":"array","items":{"type":"integer"}}},"required":["n"]}`
	exact      = `{"properties":{"id":{"type":"integer","const":7}},"required":["id"]}`
)

// Arguments are allowed if they are what the schema describes; values of other types are not.
// Ambiguous arguments are refused, whatever the rule does.
func TestRulesByArguments(t *testing.T) {
	for _, tt := range []struct{ schema, arguments, do, why string }{
		{onlyDocs, `{"repo":"docs"}`, "allow", ""},
		{onlyDocs, `{ "repo" : "docs" , "path": "a" }`, "allow", ""},
		{onlyDocs, `{"\u0072epo":"d\u006fcs"}`, "allow", ""},
		{onlyDocs, `{"repo":"other"}`, "deny", ""},
		{onlyDocs, `{}`, "deny", ""},
		{onlyDocs, ``, "deny", ""},
		{onlyDocs, `null`, "deny", ""},
		{onlyDocs, `{"repo":null}`, "deny", ""},
		{onlyDocs, `{"repo":"docs","repo":"other"}`, "deny", `"repo" is there twice`},
		{onlyDocs, `{"repo":"other","repo":"docs"}`, "deny", `"repo" is there twice`},
		{onlyDocs, `{"repo":"docs","\u0072epo":"other"}`, "deny", `"repo" is there twice`},
		{onlyDocs, `{"repo":"docs","Repo":"other"}`, "deny", `"Repo" can be taken for "repo"`},
		{onlyDocs, `{"repo":"docs","REPO":"docs"}`, "deny", `can be taken`},
		{onlyDocs, `{"repo":"docs","repo\u0000":"other"}`, "deny", `can be taken`},
		{onlyDocs, `{"repo":"docs","re_po":"other"}`, "deny", `can be taken`},
		{onlyDocs, `{"repo":"docs","repo ":"other"}`, "deny", `can be taken`},
		{onlyDocs, `{"repo":"docs","path":{"Repo":"other"}}`, "deny", `can be taken`},
		{onlyDocs, `{"repo":"docs","path":[{"a":1,"a":2}]}`, "deny", `"a" is there twice`},
		{onlyDocs, `{"repo":"docs","path":{"a":1,"A":2}}`, "allow", ""},
		{onlyDocs, `{"repo":["docs"]}`, "deny", ""},
		{onlyDocs, `{"repo":"docs\ud800"}`, "deny", "half a character"},
		{onlyDocs, `{"repo":"docs","x":"\ufffd �"}`, "allow", ""},
		{onlyDocs, `{"repo":"do` + "\xff" + `cs"}`, "deny", "Unicode"},
		{onlyDocs, `["docs"]`, "deny", "not an object"},
		{onlyDocs, `"{\"repo\":\"docs\"}"`, "deny", "not an object"},
		{onlyDocs, `{"repo":"docs"`, "deny", "not an object"},
		{onlyDocs, `{"arguments":{"repo":"docs"}}`, "deny", ""},
		{onlyDocs, `{"repo":"docs ","tool_input":{"repo":"docs"}}`, "deny", ""},
		{onlySelect, `{"query":"SELECT a FROM b"}`, "allow", ""},
		{onlySelect, `{"query":"select a; drop table b"}`, "deny", ""},
		{onlySelect, `{"query":"select a\u003b drop table b"}`, "deny", ""},
		{onlySelect, `{"query":"SELECT a","limit":3}`, "deny", ""},
		{onlySelect, `{"query":"SELECT a","QUERY":"drop table b"}`, "deny", "can be taken"},
		{onlySelect, `{"query":5}`, "deny", ""},
		{nested, `{"filter":{"owner":"me"}}`, "allow", ""},
		{nested, `{"filter":{"owner":"you"}}`, "deny", ""},
		{nested, `{"filter":{"owner":"me","owner":"you"}}`, "deny", "twice"},
		{nested, `{"filter":{"owner":"me","Owner":"you"}}`, "deny", "can be taken"},
		{nested, `{"filter":"{\"owner\":\"you\"}"}`, "deny", ""},
		{nested, `{"filter":{"owner":"me"},"owner":"x"}`, "allow", ""},
		{small, `{"n":5,"deep":true,"ids":[1,2]}`, "allow", ""},
		{small, `{"n":9007199254740993}`, "deny", ""},
		{small, `{"n":"5"}`, "deny", ""},
		{small, `{"n":" 5 "}`, "deny", ""},
		{small, `{"n":"1_000_000"}`, "deny", ""},
		{small, `{"n":5,"deep":"yes"}`, "deny", ""},
		{small, `{"n":5,"ids":["7"]}`, "deny", ""},
		{small, `{"n":5,"ids":"[7]"}`, "deny", ""},
		{small, `{"n":123456789012345678901234567890}`, "deny", "too large"},
		{small, `{"n":1e999}`, "deny", "too large"},
		{small, `{"n":5.5}`, "deny", ""},
		{exact, `{"id":7}`, "allow", ""},
		{exact, `{"id":7.0}`, "allow", ""},
		{exact, `{"id":"7"}`, "deny", ""},
		{exact, `{"ID":7}`, "deny", "can be taken"},
	} {
		rules := rulesOf(t, `[{"match":"a/*","arguments":`+tt.schema+`,"do":"allow"},{"do":"deny"}]`)
		got := rules.Judge(&rule.Call{Server: "a", Tool: "t", Arguments: json.RawMessage(tt.arguments)})
		if got.Do != tt.do || (got.Why != "") != (tt.why != "") || !strings.Contains(got.Why, tt.why) {
			t.Errorf("%s\n%s: got %+v, want %s %q", tt.schema, tt.arguments, got, tt.do, tt.why)
		}
		if rule := map[bool]int{true: 1, false: 2}[tt.do == "allow" || tt.why != ""]; got.Rule != rule {
			t.Errorf("%s\n%s: rule %d decides, want %d", tt.schema, tt.arguments, got.Rule, rule)
		}
	}
}

// Arguments are read only if the rest of a rule about arguments matches.
func TestArgumentsAreReadOnlyForTheirRules(t *testing.T) {
	rules := rulesOf(t, `[{"match":"a/*","arguments":`+onlyDocs+`,"do":"allow"},{"do":"allow"}]`)
	if got := rules.Judge(&rule.Call{Server: "b", Tool: "t", Arguments: json.RawMessage(`{"a":1,"a":2}`)}); got.Do != "allow" {
		t.Errorf("got %+v", got)
	}
}

// The rules of a config are those of its key, and there are none without it. A program that does not know the
// key refuses the config, however lenient it reads it.
func TestRulesOfAConfig(t *testing.T) {
	const servers, key = `{"mcp":{"a":{"command":"x"}}`, `,"policy":[{"do":"deny"}]}`
	load := func(text string, o schema.LoadOptions) (*schema.Config, error) {
		return schema.LoadText("mcp.json", []byte(text), o)
	}
	known := schema.LoadOptions{Sections: []schema.Section{Section}}
	cfg, err := load(servers+key, known)
	if err != nil {
		t.Fatal(err)
	}
	if rules, err := rule.Of(cfg); err != nil || rules == nil || rules.Judge(&rule.Call{}).Do != "deny" {
		t.Errorf("got %v, %v", rules, err)
	}
	for _, without := range []*schema.Config{rule.Without(cfg), schema.Single("a", nil)} {
		if rules, err := rule.Of(without); rules != nil || err != nil {
			t.Errorf("got %v, %v without rules", rules, err)
		}
	}
	if rules, err := rule.Of(cfg.WithKeys(Keys{Policy: []PolicyRule{{Do: "allow", Host: "["}}})); rules != nil || err == nil {
		t.Errorf("got %v of rules that do not compile", rules)
	}
	if cfg, err = load(servers+"}", known); err != nil {
		t.Fatal(err)
	}
	if rules, err := rule.Of(cfg); rules != nil || err != nil {
		t.Errorf("got %v, %v without the key", rules, err)
	}
	for _, o := range []schema.LoadOptions{{}, {Lenient: true}} {
		if _, err := load(servers+key, o); err == nil || !strings.Contains(err.Error(), "policy: this key needs the module policy") {
			t.Errorf("without the module: %v", err)
		}
	}
}

// The mistakes in a document are at what they are about.
func TestMistakesInADocument(t *testing.T) {
	text, err := os.ReadFile("testdata/arguments_wrong.json.txt")
	if err != nil {
		t.Fatal(err)
	}
	document, want, _ := strings.Cut(string(text), "\n----------\n")
	_, err = schema.LoadText("mcp.json", []byte(document), schema.LoadOptions{Sections: []schema.Section{Section}})
	if diff := cmp.Diff(want, fmt.Sprintln(err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Mistakes in rules are errors.
func TestMistakesInRules(t *testing.T) {
	for text, want := range map[string]string{
		`[{"match":"a/b","do":"deny"}]`:                                                                     "all other calls",
		`[{"do":"allow"},{"match":"a/b","do":"deny"}]`:                                                      "ever reached",
		`[{"match":"delete_*","do":"deny"},{"do":"allow"}]`:                                                 "names no tools",
		`[{"match":"@odd","do":"deny"},{"do":"allow"}]`:                                                     "no such class",
		`[{"match":"a/@odd","do":"deny"},{"do":"allow"}]`:                                                   "no such class",
		`[{"match":"a/[","do":"deny"},{"do":"allow"}]`:                                                      "not a glob",
		`[{"match":"a/b","do":"block"},{"do":"allow"}]`:                                                     "block",
		`[{"match":"a/b"},{"do":"allow"}]`:                                                                  "do is missing",
		`[{"match":"a/b","tool":"x","do":"deny"},{"do":"allow"}]`:                                           "unknown key",
		`[{"arguments":{"propertys":{}},"do":"allow"},{"do":"deny"}]`:                                       "no keyword",
		`[{"arguments":{"$ref":"https://example.com/s"},"do":"allow"},{"do":"deny"}]`:                       "nothing is fetched",
		`[{"arguments":{"type":"objekt"},"do":"allow"},{"do":"deny"}]`:                                      "no type",
		`[{"arguments":{"const":123456789012345678901234567890},"do":"allow"},{"do":"deny"}]`:               "too large",
		`[{"arguments":{"properties":{"a":{"minimum":"5"}}},"do":"allow"},{"do":"deny"}]`:                   "no JSON Schema",
		`[{"arguments":{"properties":{"a":{"type":"string","pattern":"(?=x)"}}},"do":"ask"},{"do":"deny"}]`: "cannot be used",
		`[{"principal":"[","do":"deny"},{"do":"allow"}]`:                                                    "not a glob",
		`[{"surface":"phone","do":"deny"},{"do":"allow"}]`:                                                  "phone",
	} {
		_, err := schema.LoadText("mcp.json", []byte(`{"mcp":{"a":{"command":"x"}},"policy":`+text+`}`), schema.LoadOptions{Sections: []schema.Section{Section}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// A verdict names the rule that decided, counted from 1, and the error says what it does.
func TestBecause(t *testing.T) {
	for want, v := range map[string]rule.Verdict{
		"policy rule 2 denies a/b":                                     {Do: "deny", Rule: 2},
		"policy rule 3 asks a person before a/b is called":             {Do: "ask", Rule: 3},
		"policy rule 4 judges the arguments of a/b, and they are null": {Do: "deny", Rule: 4, Why: "they are null"},
	} {
		if got := v.Because("a/b"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What is hidden from a principal cannot be called by it, from any host, on any surface, with any
// arguments. What a rule allows on some surface is shown.
func TestHiddenToolsCannotBeCalled(t *testing.T) {
	rules := rulesOf(t, byPlace)
	hidden, shown := 0, 0
	for _, principal := range []string{"", "ci-1", "https://id ci-1", "ann"} {
		h := rules.Hidden(principal)
		for _, server := range []string{"github", "svn", "files", "a"} {
			for _, tool := range []string{"delete_repo", "look", "secret*", "secret"} {
				for _, class := range []string{"@readonly", "@write", "@destructive"} {
					hides, some := h.Hides(server, tool, class), false
					if hides && !h.MayHide(server) {
						t.Errorf("%s/%s is hidden, and %[1]s hides nothing", server, tool)
					}
					for _, host := range []string{"", "claude-code", "bot"} {
						for _, surface := range []string{"discover", "direct", "proxy", "api"} {
							for _, arguments := range []string{"", `{}`, `{"a":1}`, `[`} {
								v := rules.Judge(&rule.Call{Server: server, Tool: tool, Class: class, Principal: principal, Host: host, Surface: surface, Arguments: json.RawMessage(arguments)})
								if v.Do != schema.PolicyDeny {
									some = true
								}
							}
						}
					}
					if hides && some {
						t.Errorf("%s %s/%s %s is hidden and can be called", principal, server, tool, class)
					}
					if hides {
						hidden++
					} else if some {
						shown++
					}
				}
			}
		}
	}
	if hidden == 0 || shown == 0 {
		t.Errorf("%d tools are hidden and %d shown: the table shows nothing", hidden, shown)
	}
	if a, b := rules.Hidden("ann"), rules.Hidden("bob"); a != b {
		t.Error("principals that match the same rules do not share their views")
	}
	if n := testing.AllocsPerRun(100, func() { rules.Hidden("ann") }); n != 0 {
		t.Errorf("another look at what is hidden from a principal allocates %v times", n)
	}
	for i := range 2 * maxPrincipals {
		rules.Hidden(strconv.Itoa(i))
	}
	if n := len(rules.hiddenFrom); n > maxPrincipals {
		t.Errorf("%d principals are remembered", n)
	}
	if h := rulesOf(t, `[{"match":"x/*","surface":"direct","do":"deny"},{"do":"allow"}]`).Hidden(""); h != nil {
		t.Error("rules that refuse only some calls hide tools")
	}
}
