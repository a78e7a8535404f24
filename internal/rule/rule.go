// Package rule is between the judge of calls and the rules of a config about them: it says what rules
// are asked and what they answer. Rules that fail refuse.
package rule

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/dynmcp/dynmcp/schema"
)

// A Call describes a call for the rules.
type Call struct {
	Server    string
	Tool      string          // the server's own name for it
	Class     string          // one of toolglob.Classes, or toolglob.Declared
	Principal string          // "ISSUER SUBJECT", of which a rule may name the subject alone; "" if users are not distinguished
	Host      string          // the name that it reports, "" before that
	Surface   string          // how the tool is called
	Arguments json.RawMessage // of the tool, nil if there are none
}

// A Verdict is the decision about a call.
type Verdict struct {
	Do   string // schema.PolicyAllow, PolicyAsk or PolicyDeny
	Rule int    // the rule that decided, from 1
	Why  string // why the arguments cannot be judged, "" if they can, or were not inspected
}

// Because explains in a sentence why a verdict refuses a call of a tool.
func (v Verdict) Because(tool string) string {
	switch {
	case v.Why != "":
		return fmt.Sprintf("policy rule %d judges the arguments of %s, and %s", v.Rule, tool, v.Why)
	case v.Do == schema.PolicyAsk:
		return fmt.Sprintf("policy rule %d asks a person before %s is called", v.Rule, tool)
	}
	return fmt.Sprintf("policy rule %d denies %s", v.Rule, tool)
}

// Rules judge the calls of a run. They stand in the judge's order at "allowed", and what they hide at
// "shown".
type Rules interface {
	// Judge returns the verdict about a call.
	Judge(*Call) Verdict
	// Preflight reports whether a tool, of this name for people, may be called as far as that is known
	// without the arguments, and says why not, or on what it depends: "" for nothing.
	Preflight(c *Call, name string) (may bool, says string)
	// HiddenFrom returns the tools that are refused to a principal in any call, nil if there are none.
	HiddenFrom(principal string) Hider
}

// A Hider says which tools are hidden.
type Hider interface {
	// MayHide reports whether a tool of the server could be hidden.
	MayHide(server string) bool
	// Hides reports whether a tool is hidden. class is one of toolglob.Classes.
	Hides(server, tool, class string) bool
}

// A Source is the keys of a section of a config that say the rules.
type Source interface {
	// Rules returns the rules, nil if there are none.
	Rules() (Rules, error)
}

// Of returns the rules of a config, nil if it has none.
func Of(cfg *schema.Config) (rules Rules, err error) {
	for keys := range cfg.Sections() {
		source, ok := keys.(Source)
		if !ok {
			continue
		}
		more, err := source.Rules()
		switch {
		case err != nil:
			return nil, err
		case more != nil && rules != nil:
			return nil, errors.New("two modules have rules about calls")
		case more != nil:
			rules = more
		}
	}
	return rules, nil
}

// Without returns a config without rules.
func Without(cfg *schema.Config) *schema.Config {
	for keys := range cfg.Sections() {
		if _, ok := keys.(Source); ok {
			cfg = cfg.WithKeys(reflect.Zero(reflect.TypeOf(keys)).Interface())
		}
	}
	return cfg
}

// Judge returns the verdict of rules; nil allows every call. It is an error if they panic: the call must
// not be made then.
func Judge(rules Rules, c *Call) (v Verdict, err error) {
	if rules == nil {
		return Verdict{Do: schema.PolicyAllow}, nil
	}
	defer func() {
		if p := recover(); p != nil {
			v, err = Verdict{Do: schema.PolicyDeny}, fmt.Errorf("the rules about calls failed: %v", p)
		}
	}()
	return rules.Judge(c), nil
}

// Preflight is that of rules; nil allows every call. Rules that panic allow none.
func Preflight(rules Rules, c *Call, name string) (may bool, says string) {
	if rules == nil {
		return true, ""
	}
	defer func() {
		if p := recover(); p != nil {
			may, says = false, fmt.Sprintf("the rules about calls failed: %v", p)
		}
	}()
	return rules.Preflight(c, name)
}

// HiddenFrom returns what rules hide from a principal, nil if nothing; nil rules hide nothing. What
// panics hides.
func HiddenFrom(rules Rules, principal string) (h Hider) {
	if rules == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			h = everything{}
		}
	}()
	if h = rules.HiddenFrom(principal); h != nil {
		h = guarded{h}
	}
	return h
}

// everything hides all tools.
type everything struct{}

func (everything) MayHide(string) bool               { return true }
func (everything) Hides(string, string, string) bool { return true }

// guarded hides what the Hider panics about, too. Two that are equal hide the same.
type guarded struct{ Hider }

func (g guarded) MayHide(server string) (hides bool) {
	defer hideAfterPanic(&hides)
	return g.Hider.MayHide(server)
}

func (g guarded) Hides(server, tool, class string) (hides bool) {
	defer hideAfterPanic(&hides)
	return g.Hider.Hides(server, tool, class)
}

func hideAfterPanic(hides *bool) {
	if recover() != nil {
		*hides = true
	}
}
