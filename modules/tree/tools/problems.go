package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/display"
)

// Problems reports problems with the mounts of listed servers: paths with several claims, which are
// unusable, and aliases and overrides without a tool.
func (t *Tree) Problems(v *catalog.View) (conflicts, warnings []string) {
	claims := map[string][]string{}
	t.walk(t.rootOf(v), func(n *Node) {
		claims[n.Path] = append(claims[n.Path], "the node "+n.Path)
		m := n.Mount
		if m == nil || m.Note != "" {
			return
		} else if server, ok := v.Server(m.Server); !ok || !known(server) {
			return
		}
		for _, tool := range m.tools(v) {
			path := n.join(m.leaf(tool))
			claims[path] = append(claims[path], claim(tool))
		}
		exists := map[string]bool{}
		for _, tool := range v.ServerTools(m.Server) {
			exists[tool.Upstream] = true
		}
		for _, name := range slices.Sorted(maps.Keys(m.Aliases)) {
			if !exists[name] {
				warnings = append(warnings, fmt.Sprintf("tree: %s: alias %s is for tool %s, which %s does not have", n.Path, display.Name(m.Aliases[name]), display.Name(name), m.Server))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m.Overrides)) {
			if !exists[name] {
				warnings = append(warnings, fmt.Sprintf("tree: %s: override is for tool %s, which %s does not have", n.Path, display.Name(name), m.Server))
			}
		}
	})
	for _, path := range slices.Sorted(maps.Keys(claims)) {
		if all := claims[path]; len(all) > 1 {
			conflicts = append(conflicts, fmt.Sprintf("tree: %s is the path of %s; give one of them another name in path_aliases", path, strings.Join(all, " and ")))
		}
	}
	return conflicts, warnings
}

// claim describes a tool with a conflicting path.
func claim(t *catalog.Tool) string {
	return fmt.Sprintf("tool %s of %s", display.Name(t.Upstream), t.Server)
}

// Broken lists the tools below the nodes that are left out because of their definitions, with the
// reasons.
func (t *Tree) Broken(v *catalog.View) []string {
	var all []string
	t.walk(t.rootOf(v), func(n *Node) {
		if n.Mount == nil || n.Mount.Note != "" {
			return
		}
		for _, what := range v.Broken(n.Mount.Server, n.Mount.pass) {
			all = append(all, fmt.Sprintf("tree: %s: %s", n.Path, what))
		}
	})
	return all
}
