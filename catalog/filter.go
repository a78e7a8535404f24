package catalog

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Filter is a tool filter: with any positive pattern only matches pass, then
// what a "!" pattern matches goes. The order of patterns does not matter. It is the
// one place that decides whether hosts may know of a tool, see serverView.addTools: there
// is no way to list or call one but by way of a view's tools.
type Filter struct{ allow, deny []matcher }

// A matcher tells by its upstream name, and what it may do, whether a tool is meant.
type matcher func(name string, may Access) bool

// NewFilter returns the filter of the patterns in a config.
func NewFilter(patterns []string) Filter {
	var f Filter
	for _, p := range patterns {
		if denied, ok := strings.CutPrefix(p, "!"); ok {
			f.deny = append(f.deny, newMatcher(denied))
		} else {
			f.allow = append(f.allow, newMatcher(p))
		}
	}
	return f
}

// Passes reports whether hosts may know of a tool.
func (f Filter) Passes(name string, may Access) bool {
	matches := func(m matcher) bool { return m(name, may) }
	return (len(f.allow) == 0 || slices.ContainsFunc(f.allow, matches)) && !slices.ContainsFunc(f.deny, matches)
}

// newMatcher reads a pattern without its "!": a class of tools, or a glob.
func newMatcher(pattern string) matcher {
	if i := slices.Index(toolglob.Classes, pattern); i >= 0 {
		return func(_ string, may Access) bool { return may == Access(i) }
	}
	g := glob(pattern)
	return func(name string, _ Access) bool { return g.MatchString(name) }
}

// Access is what a call of a tool may do, as far as the server says it, which is not
// to be trusted: the order is that of toolglob.Classes.
type Access int

const (
	Destructive Access = iota // what the server does not say more of
	Write                     // it changes things, but destroys nothing
	ReadOnly
)

// AccessOf reads the hints of a tool's annotations. Both hints at once are a
// contradiction, of which the worse counts.
func AccessOf(annotations []byte) Access {
	readOnly := string(wire.Get(annotations, "readOnlyHint")) == "true"
	switch destructive := string(wire.Get(annotations, "destructiveHint")); {
	case destructive == "true":
		return Destructive
	case readOnly:
		return ReadOnly
	case destructive == "false":
		return Write
	}
	return Destructive
}

// glob compiles a pattern of a config, which was checked with the same function.
func glob(pattern string) *regexp.Regexp {
	g, err := toolglob.Compile(pattern)
	if err != nil {
		panic(err)
	}
	return g
}
