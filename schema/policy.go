package schema

import (
	"encoding/json"
	"reflect"

	"github.com/dynmcp/dynmcp/internal/policy/arguments"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// The effects of a rule of the policy.
const (
	PolicyAllow = "allow"
	PolicyAsk   = "ask"
	PolicyDeny  = "deny"
)

// PolicyRule is a rule for calls of tools. A missing key matches any call.
type PolicyRule struct {
	// The tools: server/tool with globs, by the names that the server itself gives them; @readonly, @write or @destructive, alone or behind a server and a slash. Left out, all.
	Match string `json:"match" nonblank:"true" example:"github/delete_*"`
	// What happens to the call: it is allowed, a person is asked, or it is refused.
	Do string `json:"do" enum:"allow,ask,deny" required:"true" example:"ask"`
	// The users whose calls it is for, where a gateway tells users apart: a glob over the subject (sub) of their tokens, or over the issuer, a space and the subject.
	Principal string `json:"principal" nonblank:"true" example:"ci"`
	// The hosts it applies to, a glob over the names that they report, which they may choose.
	Host string `json:"host" nonblank:"true" example:"claude-*"`
	// How the tool is called. api is the HTTP API of the tree.
	Surface string `json:"surface" enum:"discover,tree,browser,proxy,direct,api" example:"direct"`
	// A JSON Schema that the arguments must satisfy for the rule to match. Arguments that parsers may read in two ways are refused.
	Arguments json.RawMessage `json:"arguments" example:"{required: [dry_run]}"`
}

// checkPolicy checks the patterns in rules, and that the last rule, and no other, matches
// every call.
func (r *report) checkPolicy(n *syntax.Node, rules []PolicyRule) {
	for i, item := range n.ItemsOf("policy") {
		path := syntax.Item("policy", i)
		r.checkPattern(syntax.Below(path, "match"), item.Get("match"), toolglob.CheckMatch)
		for _, key := range []string{"principal", "host"} {
			r.checkPattern(syntax.Below(path, key), item.Get(key), toolglob.CheckGlob)
		}
		if given := item.Get("arguments"); given != nil && i < len(rules) && rules[i].Arguments != nil {
			if _, err := arguments.Compile(rules[i].Arguments); err != nil {
				r.fail(given.At, syntax.Below(path, "arguments"), err.Error(), "write a JSON Schema that holds for the arguments of the calls meant")
			}
		}
		open := reflect.DeepEqual(rules[i], PolicyRule{Do: rules[i].Do})
		switch last := i == len(rules)-1; {
		case last && !open:
			r.fail(item.At, path, "there is no rule for all other calls", `end the list with {"do": "allow"} or {"do": "deny"}`)
		case !last && open:
			r.fail(item.At, path, "the rules after this one are never reached", "move it to the end, or say what it is for")
		}
	}
}
