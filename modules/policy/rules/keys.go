package rules

import (
	"encoding/json"

	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Keys are the keys of the document.
type Keys struct {
	// The rules for calls of tools: the first that matches decides, and the last one must match all others. Left out, all calls are allowed.
	Policy []PolicyRule `json:"policy" default:"[]" example:"[{match: \"@destructive\", do: ask}, {do: allow}]"`
}

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

// Section is the section of the keys.
var Section = schema.SectionOf[Keys]("policy")

// Rules implements rule.Source.
func (k Keys) Rules() (rule.Rules, error) {
	if len(k.Policy) == 0 {
		return nil, nil
	}
	return New(k.Policy)
}

// CheckForm implements schema.FormChecker.
func (*Keys) CheckForm(root *syntax.Node, fail func(at syntax.Pos, path, what, hint string)) {
	list := root.ItemsOf("policy")
	for i, item := range list {
		for key, check := range map[string]func(string) (what, hint string){"match": toolglob.CheckMatch, "principal": toolglob.CheckGlob, "host": toolglob.CheckGlob} {
			n := item.Get(key)
			if n == nil || n.Kind != syntax.Text {
				continue
			}
			if what, hint := check(n.Scalar); what != "" {
				fail(n.At, syntax.Below(syntax.Item("policy", i), key), what, hint)
			}
		}
	}
	for _, m := range mistakes("policy", list) {
		fail(m.At, m.Path, m.What, m.Hint)
	}
}
