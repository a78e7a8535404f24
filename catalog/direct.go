package catalog

import (
	"strings"

	"github.com/dynmcp/dynmcp/catalog/directname"
)

// Direct finds a tool by its name on the direct surface, also one that directname.Short has cut.
func (v *View) Direct(name string) (*Tool, bool) {
	m := v.all()
	if t, ok := m.direct[name]; ok || !directname.IsHashed(name) {
		return t, ok
	}
	return only(m.tools, func(t *Tool) bool { return directname.IsShort(name, t.Direct) })
}

// ServerOfDirect returns the server whose tool has a name on the direct surface, also one written
// server/tool, whether the tool is known or not; "" if there is none. In single-wrap mode it is the
// one server.
func (v *View) ServerOfDirect(name string) string {
	if p := v.single(); p != nil {
		return p.server.Name
	}
	longest := ""
	for _, p := range v.parts {
		server := p.server.Name
		plain := directname.Plain(server)
		if len(server) > len(longest) && (strings.HasPrefix(name, plain+"__") || strings.HasPrefix(name, server+"/")) {
			longest = server
		}
	}
	return longest
}

// Listed returns all known tools in the order in which their servers list them,
// servers in config order.
func (v *View) Listed() []*Tool {
	m := v.all()
	all := make([]*Tool, 0, len(m.tools))
	for _, p := range m.parts {
		for _, t := range p.docs {
			if t != nil {
				all = append(all, t)
			}
		}
	}
	return all
}
