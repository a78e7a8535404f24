package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// View is an immutable picture of the catalogue: what a host may see, with
// filters, aliases and overrides applied.
type View struct {
	parts  []*part // offered, config order
	server map[string]*part

	loaded, lazy, eager []*part // the same, see sort

	tools  []*Tool // all known, sorted by name
	byName map[string]*Tool
	direct map[string]*Tool

	entries  // resources, templates, prompts
	warnings []string
}

// newView merges parts, given in config order.
func newView(parts []*part) *View {
	n := 0
	for _, p := range parts {
		n += len(p.tools)
	}
	v := &View{
		server: make(map[string]*part, len(parts)),
		tools:  make([]*Tool, 0, n),
		byName: make(map[string]*Tool, n),
		direct: make(map[string]*Tool, n),
	}
	for _, p := range parts {
		v.add(p)
	}
	slices.SortFunc(v.tools, func(a, b *Tool) int { return strings.Compare(a.Name, b.Name) })
	v.entries = mergeEntries(v.parts)
	v.sort()
	return v
}

// add adds one server. Where names meet, which takes a slash in a server's name
// or two bare servers, the server before keeps them.
func (v *View) add(p *part) {
	if slices.ContainsFunc(p.tools, func(t *Tool) bool { return v.byName[t.Name] != nil }) {
		p = newPart(p.server, p.index, p.info.Down, v.byName, p.follows)
	}
	v.parts = append(v.parts, p)
	v.server[p.server.Name] = p
	v.tools = append(v.tools, p.tools...)
	for _, t := range p.tools {
		v.byName[t.Name] = t
		if _, twice := v.direct[t.Direct]; !twice {
			v.direct[t.Direct] = t
		} else {
			v.warnings = append(v.warnings, fmt.Sprintf("tool %s has no direct name: %s is taken", shown(t.Name), t.Direct))
		}
	}
	for _, w := range p.warnings {
		v.warnings = append(v.warnings, p.server.Name+": "+w)
	}
}

// Tool finds a tool by its exposed name.
func (v *View) Tool(name string) (*Tool, bool) {
	t, ok := v.byName[name]
	if !ok && strings.Contains(name, "&") { // copied from a line, where < is &lt;
		t, ok = v.byName[unescape(name)]
	}
	return t, ok
}

// Direct finds a tool by its name on the direct surface.
func (v *View) Direct(name string) (*Tool, bool) {
	t, ok := v.direct[name]
	return t, ok
}

// Tools returns all known tools, sorted by exposed name. The slice is shared.
func (v *View) Tools() []*Tool { return v.tools }

// Server says what is known of one offered server.
func (v *View) Server(name string) (ServerInfo, bool) {
	p, ok := v.server[name]
	if !ok {
		return ServerInfo{}, false
	}
	return p.info, true
}

// Servers returns the offered servers in config order.
func (v *View) Servers() []ServerInfo {
	infos := make([]ServerInfo, len(v.parts))
	for i, p := range v.parts {
		infos[i] = p.info
	}
	return infos
}

// ServerTools returns the tools of one server, sorted by exposed name. The
// slice is shared.
func (v *View) ServerTools(name string) []*Tool {
	if p, ok := v.server[name]; ok {
		return p.tools
	}
	return nil
}

// Complete tells whether every offered server has a listing.
func (v *View) Complete() bool {
	return !slices.ContainsFunc(v.parts, func(p *part) bool { return p.index == nil })
}

// Warnings says what was left out of the view and why, collisions excepted.
func (v *View) Warnings() []string { return v.warnings }

// sort puts the servers into the three groups that texts speak of: loaded, in
// the order of their tools; to be loaded by the host; not there yet. The last
// two keep config order.
func (v *View) sort() {
	for _, p := range v.parts {
		switch {
		case p.info.Loaded:
			v.loaded = append(v.loaded, p)
		case p.server.Lazy:
			v.lazy = append(v.lazy, p)
		default:
			v.eager = append(v.eager, p)
		}
	}
	slices.SortStableFunc(v.loaded, func(a, b *part) int {
		return strings.Compare(a.server.Name+"/", b.server.Name+"/")
	})
}
