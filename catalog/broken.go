package catalog

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynmcp/dynmcp/internal/display"
)

// Check says what is wrong with a listing for the declared server of this name: tools
// that cannot be offered because of their definitions, but for those that its filter
// hides, and aliases that are another tool's name.
func (c *Catalog) Check(name string, l *Listing) (broken, clashes []string) {
	s, ok := c.declared(name)
	if !ok {
		return nil, nil
	}
	x := newIndex(l)
	listed := map[string]bool{}
	for _, e := range x.tools {
		listed[e.name] = true
	}
	for _, tool := range slices.Sorted(maps.Keys(s.Aliases)) {
		if alias := s.Aliases[tool]; alias != tool && listed[tool] && listed[alias] {
			clashes = append(clashes, fmt.Sprintf("tool %s has the alias %s, which is another tool's name; give one of them another in path_aliases", display.Name(tool), display.Name(alias)))
		}
	}
	return x.broken(NewFilter(s.Filter)), clashes
}

// Broken names the tools of a server that are left out because of their definitions,
// and that f passes, each with what is wrong.
func (v *View) Broken(server string, f Filter) []string {
	if p := v.server[server]; p != nil && p.index != nil {
		return p.index.broken(NewFilter(p.server.Filter), f)
	}
	return nil
}

func (x *index) broken(filters ...Filter) []string {
	var all []string
tools:
	for _, name := range slices.Sorted(maps.Keys(x.hidden)) {
		h := x.hidden[name]
		for _, f := range filters {
			if !f.Passes(name, AccessOf(h.entry.annotations)) {
				continue tools
			}
		}
		all = append(all, fmt.Sprintf("tool %s is broken: %s", display.Name(name), h.why))
	}
	return all
}
