// Package policy says which calls of tools are made, which a person is asked about, and
// which are refused: by the rules of a config, of which the first that matches decides.
package policy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/dynmcp/dynmcp/internal/policy/arguments"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/schema"
)

// A Call is what rules judge.
type Call struct {
	Server    string
	Tool      string          // by the server's own name for it
	Class     string          // one of toolglob.Classes
	Principal string          // "ISSUER SUBJECT", of which a rule may name the latter alone; "" where users are not told apart
	Host      string          // what it calls itself, "" if it has not said it
	Surface   string          // how the tool is called
	Arguments json.RawMessage // of the tool, nil being none
}

// A Verdict says what becomes of a call.
type Verdict struct {
	Do   string // schema.PolicyAllow, PolicyAsk or PolicyDeny
	Rule int    // that decided, from 1
	Why  string // why the arguments cannot be judged, "" where they can, or were not looked at
}

// Rules are those of a config, in their order. Nil allows every call.
type Rules struct{ all []rule }

type rule struct {
	do                       string
	server, tool             *regexp.Regexp // nil is any
	class                    string         // "" is any
	principal, host, surface *regexp.Regexp
	arguments                *arguments.Schema
}

// New compiles the rules of a config, which was checked with the same functions. Without
// rules it returns nil.
func New(from []schema.PolicyRule) (*Rules, error) {
	if len(from) == 0 {
		return nil, nil
	}
	rules := &Rules{}
	for i, r := range from {
		compiled, err := compile(r)
		if err != nil {
			return nil, fmt.Errorf("policy[%d]: %w", i, err)
		}
		rules.all = append(rules.all, compiled)
	}
	return rules, nil
}

func compile(from schema.PolicyRule) (r rule, err error) {
	server, tool, class := Split(from.Match)
	r.do, r.class = from.Do, class
	for _, glob := range []struct {
		pattern string
		to      **regexp.Regexp
	}{{server, &r.server}, {tool, &r.tool}, {from.Principal, &r.principal}, {from.Host, &r.host}, {from.Surface, &r.surface}} {
		if glob.pattern == "" {
			continue
		}
		if *glob.to, err = toolglob.Compile(glob.pattern); err != nil {
			return r, err
		}
	}
	if from.Arguments != nil {
		r.arguments, err = arguments.Compile(from.Arguments)
	}
	return r, err
}

// Split returns the globs and the class that a match of a rule is made of, each "" where
// it says nothing of that.
func Split(match string) (server, tool, class string) {
	if strings.HasPrefix(match, "@") {
		return "", "", match
	}
	server, tool, _ = strings.Cut(match, "/")
	if strings.HasPrefix(tool, "@") {
		return server, "", tool
	}
	return server, tool, ""
}

// Judge returns what the first rule says that matches. Arguments are looked at where a
// rule has a schema for them and all else of it matches: if they are ambiguous the call is
// refused by that rule, whatever it does otherwise.
func (rs *Rules) Judge(c *Call) Verdict {
	if rs == nil {
		return Verdict{Do: schema.PolicyAllow}
	}
	for i := range rs.all {
		r := &rs.all[i]
		if !r.matches(c) {
			continue
		}
		if r.arguments == nil {
			return Verdict{Do: r.do, Rule: i + 1}
		}
		fits, err := r.arguments.Fits(c.Arguments)
		if err != nil {
			return Verdict{Do: schema.PolicyDeny, Rule: i + 1, Why: err.Error()}
		}
		if fits {
			return Verdict{Do: r.do, Rule: i + 1}
		}
	}
	return Verdict{Do: schema.PolicyDeny} // not reached: the last rule matches every call
}

// matches reports whether all but the arguments matches.
func (r *rule) matches(c *Call) bool {
	if r.principal != nil && !r.principal.MatchString(c.Principal) {
		if _, subject, ok := strings.Cut(c.Principal, " "); !ok || !r.principal.MatchString(subject) {
			return false
		}
	}
	if r.class != "" && r.class != c.Class {
		return false
	}
	for _, part := range []struct {
		glob *regexp.Regexp
		text string
	}{{r.server, c.Server}, {r.tool, c.Tool}, {r.host, c.Host}, {r.surface, c.Surface}} {
		if part.glob != nil && !part.glob.MatchString(part.text) {
			return false
		}
	}
	return true
}

// Because says in a sentence what a verdict refuses a call of a tool for.
func (v Verdict) Because(tool string) string {
	switch {
	case v.Why != "":
		return fmt.Sprintf("rule %d of the policy judges the arguments of %s, and %s", v.Rule, tool, v.Why)
	case v.Do == schema.PolicyAsk:
		return fmt.Sprintf("rule %d of the policy has a person asked before %s is called", v.Rule, tool)
	}
	return fmt.Sprintf("rule %d of the policy refuses calls of %s", v.Rule, tool)
}
