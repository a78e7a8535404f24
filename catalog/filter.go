package catalog

import (
	"regexp"
	"slices"
	"strings"

	"dynmcp/schema"
)

// filter is a tool filter: with any positive pattern only matches pass, then
// what a "!" pattern matches goes. The order of patterns does not matter.
type filter struct{ allow, deny []*regexp.Regexp }

func newFilter(patterns []string) filter {
	var f filter
	for _, p := range patterns {
		if denied, ok := strings.CutPrefix(p, "!"); ok {
			f.deny = append(f.deny, glob(denied))
		} else {
			f.allow = append(f.allow, glob(p))
		}
	}
	return f
}

func (f filter) passes(name string) bool {
	matches := func(g *regexp.Regexp) bool { return g.MatchString(name) }
	return (len(f.allow) == 0 || slices.ContainsFunc(f.allow, matches)) && !slices.ContainsFunc(f.deny, matches)
}

// glob compiles a pattern of a config, which was checked with the same function.
func glob(pattern string) *regexp.Regexp {
	g, err := schema.CompileGlob(pattern)
	if err != nil {
		panic(err)
	}
	return g
}
