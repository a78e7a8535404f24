package schema

import (
	"encoding/json"

	"github.com/dynmcp/dynmcp/internal/policy/rules"
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
	// The tools: server/tool with globs, by the names that the server itself gives them; @readonly, @write or @destructive, alone or behind a server and a slash; @destructive! are those of which the server says so. Left out, all.
	Match string `json:"match" nonblank:"true" example:"github/delete_*"`
	// What happens to the call: it is allowed, a person is asked, or it is refused.
	Do string `json:"do" enum:"allow,ask,deny" required:"true" example:"ask"`
	// The users whose calls it is for, where a gateway tells users apart: a glob over the subject (sub) of their tokens, or over the issuer, a space and the subject.
	Principal string `json:"principal" nonblank:"true" example:"ci"`
	// The hosts it applies to, a glob over the names that they report, which they may choose.
	Host string `json:"host" nonblank:"true" example:"claude-*"`
	// How the tool is called. api is the HTTP API of the tree.
	Surface string `json:"surface" enum:"discover,tree,browser,proxy,direct,api" example:"direct"`
	// A JSON Schema that the arguments must satisfy for the rule to match. It names the type of each member that it judges. Arguments that parsers may read in two ways are refused. Not with deny.
	Arguments json.RawMessage `json:"arguments" example:"{properties: {dry_run: {type: boolean, const: true}}, required: [dry_run]}"`
}

// checkPolicy checks the rules of the policy.
func (r *report) checkPolicy(n *syntax.Node) {
	for i, item := range n.ItemsOf("policy") {
		path := syntax.Item("policy", i)
		r.checkPattern(syntax.Below(path, "match"), item.Get("match"), toolglob.CheckMatch)
		for _, key := range []string{"principal", "host"} {
			r.checkPattern(syntax.Below(path, key), item.Get(key), toolglob.CheckGlob)
		}
	}
	for _, m := range rules.Check("policy", n.ItemsOf("policy")) {
		r.fail(m.At, m.Path, m.What, m.Hint)
	}
}
