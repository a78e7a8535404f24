package toolglob

import (
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Filter selects tools by the patterns of a config. With any positive pattern only matches
// pass; a tool that matches a "!" pattern never does. The order of patterns does not matter.
type Filter struct{ allow, deny []matcher }

// A matcher reports whether a pattern matches a tool, by its upstream name and its access.
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
	if i := slices.Index(Classes, pattern); i >= 0 {
		return func(_ string, may Access) bool { return may == Access(i) }
	}
	g, err := Compile(pattern)
	if err != nil {
		panic(err) // patterns of a config were checked with Compile
	}
	return func(name string, _ Access) bool { return g.MatchString(name) }
}

// Access is what a call of a tool may do according to the server, which is not to be trusted.
// The order is that of Classes.
type Access int

const (
	Destructive Access = iota // also if the server does not say
	Write                     // it changes things, but destroys nothing
	ReadOnly
)

// AccessOf reads the hints of a tool's annotations. If both hints are true, they contradict
// each other, and the worse counts.
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

// ClassOf returns the class of a tool for the rules of a policy: that of its Access, or
// Declared if the server says itself that the tool is destructive.
func ClassOf(annotations []byte) string {
	if string(wire.Get(annotations, "destructiveHint")) == "true" {
		return Declared
	}
	return Classes[AccessOf(annotations)]
}
