package trust

import (
	"fmt"
	"slices"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/lint"
	"github.com/dynmcp/dynmcp/internal/pins"
	"github.com/dynmcp/dynmcp/schema"
)

// Names returns the tools of all servers of the config, as they were last listed: a
// definition may name those of another one.
func (r *Review) Names() *lint.Names {
	names := &lint.Names{}
	for _, s := range r.Config.Servers {
		if s.Disabled {
			continue
		}
		tools, _ := r.listed(s) // one that was never listed has none
		for _, t := range tools {
			names.Add(s.Name, t.Name)
		}
	}
	return names
}

// Lint says what is found in the tools of servers that a view shows, and in those that are not
// approved yet, a line for each finding.
func Lint(view *catalog.View, names *lint.Names) (lines []string) {
	for _, t := range slices.Concat(view.Tools(), view.Held()) {
		for _, f := range lint.Check(t.Server, t.Upstream, t.Raw, names) {
			lines = append(lines, fmt.Sprintf("%s: tool %s: %s", t.Server, visible(t.Upstream), f))
		}
	}
	return lines
}

// lint writes what is found in a tool.
func (r *Review) lint(s schema.Server, t pins.Tool) {
	if r.names == nil {
		r.names = r.Names()
	}
	for _, f := range lint.Check(s.Name, t.Name, t.Raw, r.names) {
		r.line("! " + f.String())
	}
}
