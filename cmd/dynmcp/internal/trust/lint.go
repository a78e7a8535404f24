package trust

import (
	"fmt"
	"slices"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/lint"
	"github.com/dynmcp/dynmcp/internal/pins"
	"github.com/dynmcp/dynmcp/schema"
)

// Names returns the names of the tools of all enabled servers, from stored listings. They are needed
// because a definition may mention tools of another server.
func (r *Review) Names() *lint.Names {
	names := &lint.Names{}
	for _, s := range r.Config.Servers {
		if s.Disabled {
			continue
		}
		tools, _ := r.listed(s) // empty if the server was never listed
		for _, t := range tools {
			names.Add(s.Name, t.Name)
		}
	}
	return names
}

// Lint returns the findings in the tools of a view, approved or not, one line for each.
func Lint(view *catalog.View, names *lint.Names) (lines []string) {
	for _, t := range slices.Concat(view.Tools(), view.AwaitingApproval()) {
		for _, f := range lint.Check(t.Server, t.Upstream, t.Raw, names) {
			lines = append(lines, fmt.Sprintf("%s: tool %s: %s", t.Server, visible(t.Upstream), f))
		}
	}
	return lines
}

// lint prints the findings in a tool.
func (r *Review) lint(s schema.Server, t pins.Tool) {
	if r.names == nil {
		r.names = r.Names()
	}
	for _, f := range lint.Check(s.Name, t.Name, t.Raw, r.names) {
		r.line("! " + f.String())
	}
}
