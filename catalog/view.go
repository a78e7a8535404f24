package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// View is an immutable picture of the catalogue: what a host may see, with
// filters, aliases and overrides applied.
type View struct {
	*content
	split bool // for hosts that see [UseTools] in place of use_tool
}

// content is what a view shows.
type content struct {
	parts  []*serverView // offered, config order; stored ones may be unread
	server map[string]*serverView

	loaded, lazy, eager []*serverView // parts by group, see sort

	entries // resources, templates, prompts

	merge  sync.Once
	merged atomic.Pointer[toolset] // nil until the tools of all were needed

	splitViews func() *Views // see Views.Split; set in the view for hosts without tasks
	variants   variants      // of the same view

	rest int // number of servers in the other text, -1 in the other text itself; see divide
}

// newView merges parts, given in config order. If some tools are not read yet, the tools of
// all servers are merged when first needed.
func newView(parts []*serverView) *View {
	v := &View{content: &content{server: make(map[string]*serverView, len(parts)), parts: slices.Clone(parts)}}
	for i, p := range v.parts {
		if !p.server.Lazy || !p.descriptive { // it is shown with its tools, or they describe it
			v.parts[i] = p.opened()
		}
	}
	if !slices.ContainsFunc(v.parts, (*serverView).unread) {
		v.parts = v.all().parts
	}
	for _, p := range v.parts {
		v.server[p.server.Name] = p
	}
	v.entries = mergeEntries(v.parts)
	v.sort()
	return v
}

// mergeTools merges the tools of servers, reading those that are unread.
func mergeTools(parts []*serverView) *toolset {
	n := 0
	for _, p := range parts {
		n += len(p.opened().tools)
	}
	m := &toolset{
		tools:  make([]*Tool, 0, n),
		byName: make(map[string]*Tool, n),
		direct: make(map[string]*Tool, n),
	}
	for _, p := range parts {
		m.add(p.opened())
	}
	slices.SortFunc(m.tools, func(a, b *Tool) int { return strings.Compare(a.Name, b.Name) })
	servers := make([]search.Server, len(m.parts))
	for i, p := range m.parts {
		servers[i] = p.found
	}
	m.corpus = search.NewCorpus(servers, func(name string) bool { return m.byName[name] != nil })
	return m
}

// add adds one server. If a tool's name is taken, which needs a slash in a server's name or
// two servers in single-wrap mode, the earlier server keeps it.
func (m *toolset) add(p *serverView) {
	if slices.ContainsFunc(p.tools, func(t *Tool) bool { return m.byName[t.Name] != nil }) {
		p = newServerView(p.server, p.index, p.info.Down, m.byName, p.follows)
	}
	m.parts = append(m.parts, p)
	m.tools = append(m.tools, p.tools...)
	for _, t := range p.tools {
		m.byName[t.Name] = t
	}
	for _, t := range slices.Concat(p.tools, p.views) {
		if _, twice := m.direct[t.Direct]; !twice {
			m.direct[t.Direct] = t
		} else {
			m.warnings = append(m.warnings, fmt.Sprintf("tool %s has no direct name: %s is taken", display.Name(t.Name), t.Direct))
		}
	}
}

// Tool finds a tool by its exposed name.
func (v *View) Tool(name string) (*Tool, bool) {
	t := v.toolOf(name)
	if t == nil && strings.Contains(name, "&") { // copied from a line, where < is &lt;
		t = v.toolOf(display.Unescape(name))
	}
	return t, t != nil
}

// Tools returns all known tools, sorted by exposed name. The slice is shared.
func (v *View) Tools() []*Tool { return v.all().tools }

// Server describes an offered server.
func (v *View) Server(name string) (ServerInfo, bool) {
	p, ok := v.server[name]
	if !ok {
		return ServerInfo{}, false
	}
	return p.info, true
}

// Single returns the one server of single-wrap mode.
func (v *View) Single() (ServerInfo, bool) {
	if p := v.single(); p != nil {
		return p.info, true
	}
	return ServerInfo{}, false
}

// single returns the one server of single-wrap mode, else nil.
func (v *View) single() *serverView {
	if len(v.parts) == 1 && v.parts[0].server.Single {
		return v.parts[0]
	}
	return nil
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
	if p := v.part(name); p != nil {
		return p.tools
	}
	return nil
}

// Complete reports whether every offered server has a listing, of this run or of an earlier
// one.
func (v *View) Complete() bool {
	return !slices.ContainsFunc(v.parts, func(p *serverView) bool { return p.index == nil })
}

// Warnings returns what was left out of the listings of this run and why, except collisions.
func (v *View) Warnings() []string {
	var all []string
	if m := v.merged.Load(); m != nil {
		all = append(all, m.warnings...)
	}
	for _, p := range v.parts {
		for _, w := range p.warnings {
			if p.info.Loaded {
				all = append(all, p.server.Name+": "+w)
			}
		}
	}
	return all
}

// sort puts the servers into the groups of the texts: loaded, in the order of their tools;
// lazy, without known tools or stored; eager, not listed yet. The last two keep config order.
// An eager server with a stored listing counts as loaded.
func (v *content) sort() {
	for _, p := range v.parts {
		switch {
		case p.info.Loaded || p.info.Stored && !p.server.Lazy:
			v.loaded = append(v.loaded, p)
		case p.server.Lazy:
			v.lazy = append(v.lazy, p)
		default:
			v.eager = append(v.eager, p)
		}
	}
	slices.SortStableFunc(v.loaded, func(a, b *serverView) int {
		return strings.Compare(a.server.Name+"/", b.server.Name+"/")
	})
}

const useTool = "use_tool"

// UseTools are the tools that use_tool is split into, by the access of the tools that each
// calls. Each also calls tools with less access.
var UseTools = [...]string{toolglob.Destructive: "use_tool_destructive", toolglob.Write: "use_tool_write", toolglob.ReadOnly: "use_tool_readonly"}

// Split returns the views with the texts for hosts that see [UseTools]. Each call returns the
// same views.
func (vs *Views) Split() *Views { return vs[NoTasks].splitViews() }

// variants are the views of a content with other parts, by what they are for: Abilities, or a Hider.
type variants struct {
	mu sync.Mutex
	of map[any]*Views
}

// variant returns the views in which part replaces some parts. It is made once for each key.
func (vs *Views) variant(key any, part func(*serverView) *serverView) *Views {
	all := &vs[NoTasks].variants
	all.mu.Lock()
	defer all.mu.Unlock()
	if views := all.of[key]; views != nil {
		return views
	}
	parts, views := slices.Clone(vs[NoTasks].parts), vs
	for i, p := range parts {
		if parts[i] = part(p); parts[i] != p {
			views = nil
		}
	}
	if views == nil {
		views = viewsOf(parts)
	}
	if all.of == nil {
		all.of = map[any]*Views{}
	}
	all.of[key] = views
	return views
}

// splitOf returns a function that makes these views, once.
func splitOf(views *Views) func() *Views {
	return sync.OnceValue(func() *Views {
		var split Views
		for i, v := range views {
			if i > 0 && v == views[NoTasks] {
				split[i] = split[NoTasks]
				continue
			}
			split[i] = &View{content: v.content, split: true}
		}
		return &split
	})
}

// useTools returns a text with use_tool replaced by use_tool_*, if the view is split.
func (v Texts) useTools(text string) string {
	if !v.split {
		return text
	}
	return strings.ReplaceAll(text, useTool, "use_tool_*")
}

// UseTool returns the name of our tool that calls tools with this access.
func (v *View) UseTool(may toolglob.Access) string {
	if !v.split {
		return useTool
	}
	return UseTools[may]
}

// Capabilities returns the server capabilities to advertise: what any known
// upstream has. With unknown, some upstream is yet to be listed and everything
// that dynmcp passes on is advertised. The tools list can always change.
func (v *View) Capabilities(unknown bool) json.RawMessage {
	has := func(path ...string) bool { return unknown || anyCapability(v, path) }
	members := []string{`"tools":{"listChanged":true}`}
	if has("resources") {
		members = append(members, `"resources":`+flags(has, "resources", "subscribe", "listChanged"))
	}
	if has("prompts") {
		members = append(members, `"prompts":`+flags(has, "prompts", "listChanged"))
	}
	for _, name := range []string{"completions", "logging"} {
		if has(name) {
			members = append(members, `"`+name+`":{}`)
		}
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}")
}

// flags returns an object of those named flags that some upstream sets.
func flags(has func(...string) bool, capability string, names ...string) string {
	var set []string
	for _, name := range names {
		if has(capability, name) {
			set = append(set, `"`+name+`":true`)
		}
	}
	return "{" + strings.Join(set, ",") + "}"
}

// anyCapability reports whether some upstream has the member at path, neither null nor false.
func anyCapability(v *View, path []string) bool {
	for _, p := range v.parts {
		if p.index == nil {
			continue
		}
		switch string(wire.Get(p.index.listing.Capabilities, path...)) {
		case "", "null", "false":
		default:
			return true
		}
	}
	return false
}
