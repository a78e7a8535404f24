// Package rules decides which calls of tools are allowed, asked about, or refused, by the rules
// of a config. The first matching rule decides.
package rules

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/modules/policy/arguments"
	"github.com/dynmcp/dynmcp/schema"
)

// Rules are the rules of a config, in order.
type Rules struct {
	all   []compiled
	hides bool // some rule does

	mu         sync.Mutex
	hidden     map[string]*Hidden // by the rules that a principal matches
	hiddenFrom map[string]*Hidden // by the principal, of whom there may be many
}

type compiled struct {
	do                       string
	server, tool             *regexp.Regexp // nil is any
	class                    string         // "" is any
	principal, host, surface *regexp.Regexp
	arguments                *arguments.Schema
}

// New compiles the rules of a config, which were checked when it was read.
func New(from []PolicyRule) (*Rules, error) {
	rules := &Rules{hidden: map[string]*Hidden{}, hiddenFrom: map[string]*Hidden{}}
	for i, r := range from {
		next, err := compile(r)
		if err != nil {
			return nil, fmt.Errorf("policy[%d]: %w", i, err)
		}
		rules.all, rules.hides = append(rules.all, next), rules.hides || next.hides()
	}
	return rules, nil
}

func compile(from PolicyRule) (r compiled, err error) {
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

// Split returns the globs and the class in a match of a rule, "" for each that it does not
// name.
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

// Judge returns the verdict of the first matching rule. A rule's schema for arguments is applied
// when everything else of the rule matches. Ambiguous arguments are then refused by that
// rule, whatever it does otherwise.
func (rs *Rules) Judge(c *rule.Call) rule.Verdict {
	for i := range rs.all {
		r := &rs.all[i]
		if !r.matches(c) {
			continue
		}
		if r.arguments == nil {
			return rule.Verdict{Do: r.do, Rule: i + 1}
		}
		fits, err := r.arguments.Fits(c.Arguments)
		if err != nil {
			return rule.Verdict{Do: schema.PolicyDeny, Rule: i + 1, Why: err.Error()}
		}
		if fits {
			return rule.Verdict{Do: r.do, Rule: i + 1}
		}
	}
	return rule.Verdict{Do: schema.PolicyDeny} // not reached: the last rule matches every call
}

// Preflight reports whether a tool, of this name for people, may be called as far as that is known without
// the arguments, and says why not, or on what it depends: "" for nothing.
func (rs *Rules) Preflight(c *rule.Call, name string) (may bool, says string) {
	for i := range rs.all {
		r := &rs.all[i]
		switch {
		case !r.matches(c):
			continue
		case r.arguments != nil:
			return true, fmt.Sprintf("policy rule %d judges the arguments", i+1)
		case r.do == schema.PolicyAllow:
			return true, ""
		}
		return r.do == schema.PolicyAsk, rule.Verdict{Do: r.do, Rule: i + 1}.Because(name)
	}
	return false, "" // not reached: the last rule matches every call
}

// Names reports whether the rule of a number, from 1, is about a tool, whoever calls it and with
// whatever arguments. last is set if it then decides about all calls of the tool.
func (rs *Rules) Names(number int, server, tool, class string) (names, last bool) {
	r := &rs.all[number-1]
	names = r.isAbout(server, tool, class)
	return names, names && r.principal == nil && r.isForAnyCall()
}

// matches reports whether everything but the arguments matches.
func (r *compiled) matches(c *rule.Call) bool {
	if !r.isFor(c.Principal) {
		return false
	}
	return r.isAbout(c.Server, c.Tool, c.Class) && fits(r.host, c.Host) && fits(r.surface, c.Surface)
}

// isAbout reports whether the rule is about a tool.
func (r *compiled) isAbout(server, tool, class string) bool {
	return (r.class == "" || r.class == class || r.class == strings.TrimSuffix(class, "!")) && fits(r.server, server) && fits(r.tool, tool)
}

func fits(glob *regexp.Regexp, text string) bool { return glob == nil || glob.MatchString(text) }

// isFor reports whether the rule is for a principal.
func (r *compiled) isFor(principal string) bool {
	if r.principal == nil || r.principal.MatchString(principal) {
		return true
	}
	_, subject, ok := strings.Cut(principal, " ")
	return ok && r.principal.MatchString(subject)
}
