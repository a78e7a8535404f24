package schema

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// The effects of a rule of the policy.
const (
	PolicyAllow = "allow"
	PolicyAsk   = "ask"
	PolicyDeny  = "deny"
)

// HasPolicy reports whether a config file has rules of its own.
func HasPolicy(name string, data []byte) bool {
	root, err := parseEdited(name, data)
	return err == nil && root.Has("policy")
}

// SetRule returns data, a config, with a rule that does do with calls of the tools that match matches. It
// comes before all others, since the first that matches decides, or in place of one that says no more than
// it. Without other rules one that allows all other calls follows. Comments and layout stay. An empty do
// takes the rule out.
func SetRule(name string, data []byte, match, do string, sections []Section) ([]byte, error) {
	root, err := parseEdited(name, data)
	if err != nil {
		return nil, err
	}
	effects := []string{PolicyAllow, PolicyAsk, PolicyDeny}
	if do != "" && !slices.Contains(effects, do) {
		return nil, &syntax.Error{Path: "policy", Err: errors.New("invalid value " + syntax.Quote(do)), Hint: nearest.Hint(do, effects)}
	}
	rule := ruleNode(match, do)
	rules := root.ItemsOf("policy")
	i := slices.IndexFunc(rules, func(n *syntax.Node) bool { return n.Get("match").IsText(match) && n.Has("do") && len(n.Members) == 2 })
	var out []byte
	switch {
	case do == "" && i < 0:
		return data, nil
	case do == "":
		out, err = syntax.RemoveItem(name, data, root, "policy", i)
	case i >= 0:
		out, err = syntax.SetTexts(name, data, root, map[*syntax.Node]string{rules[i].Get("do"): do})
	case len(rules) == 0:
		all := &syntax.Node{Kind: syntax.List, Items: []*syntax.Node{rule, ruleNode("", PolicyAllow)}}
		out, err = syntax.SetTop(name, data, root, "policy", all)
	default:
		out, err = syntax.InsertFirst(name, data, root, "policy", rule)
	}
	if err != nil || bytes.Equal(out, data) {
		return out, err
	}
	return out, checkRules(name, out, sections)
}

func ruleNode(match, do string) *syntax.Node {
	n := &syntax.Node{Kind: syntax.Object, Members: []syntax.Member{{Key: "do", Value: textNode(do)}}}
	if match != "" {
		n.Members = slices.Insert(n.Members, 0, syntax.Member{Key: "match", Value: textNode(match)})
	}
	return n
}

// checkRules returns the first error in the policy of a config.
func checkRules(name string, data []byte, sections []Section) error {
	r := &reading{report: report{src: &syntax.Source{Name: name, Data: data}}}
	root, err := r.src.Parse()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(sections, func(s Section) bool { return !s.Server && s.Type != nil && hasKey(fieldsOf(s.Type), "policy") })
	if i < 0 {
		return &syntax.Error{Path: "policy", Err: errors.New(lacksModule("key", documentModules["policy"])), Hint: "use a build with it"}
	}
	decodeSection(r, "", root, reflect.New(sections[i].Type).Elem())
	if len(r.errs) == 0 {
		return nil
	}
	sortErrors(r.errs)
	r.errs[0].Line = 0
	return r.errs[0]
}

// RulePath returns the pattern of the tools that a path of set names for a server: policy.TOOL.
func RulePath(server, path string) (match string, ok bool) {
	tool, ok := strings.CutPrefix(path, "policy.")
	return server + "/" + tool, ok && tool != ""
}
