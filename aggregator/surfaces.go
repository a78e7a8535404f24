package aggregator

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/browser"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/direct"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/discover"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/proxy"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/tree"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// The surfaces that a config's expose may name, beside auto. Where several are on, the
// texts of the first one are used.
var surfaceTable = []struct {
	name string
	of   func(*schema.Config) surface.Surface
}{
	{schema.ExposeDiscover, discover.New},
	{schema.ExposeTree, tree.New},
	{schema.ExposeBrowser, browser.New},
	{schema.ExposeProxy, proxy.New},
	{schema.ExposeDirect, direct.New},
}

// A surfaceSet is the surfaces that a host sees. It never changes.
type surfaceSet struct {
	tools     []surface.Tool    // in the order of the config
	all       []surface.Surface // in the order of the table
	direct    bool              // the tools of servers are shown as themselves
	anyMethod bool
	readsOn   string // the tool that reads on in results, "" if there is none
}

// newSurfaceSet returns the surfaces of these names. auto is the one of that name.
func newSurfaceSet(cfg *schema.Config, names []string, auto string) (*surfaceSet, error) {
	set := &surfaceSet{}
	made := make([]*surface.Surface, len(surfaceTable))
	for _, name := range names {
		if name == schema.ExposeAuto {
			name = auto
		}
		at := -1
		for i, line := range surfaceTable {
			if line.name == name {
				at = i
			}
		}
		if at < 0 {
			return nil, fmt.Errorf("expose: there is no surface %q", name)
		}
		s := surfaceTable[at].of(cfg)
		made[at] = &s
		set.tools = append(set.tools, s.Tools...)
	}
	for _, s := range made {
		if s != nil {
			set.all = append(set.all, *s)
			set.direct, set.anyMethod = set.direct || s.Direct, set.anyMethod || s.AnyMethod
			if set.readsOn == "" {
				set.readsOn = s.ReadsOn
			}
		}
	}
	return set, nil
}

// ofOneServer are the surfaces of a session that is about one server.
var ofOneServer = &surfaceSet{tools: direct.New(nil).Tools, all: []surface.Surface{direct.New(nil)}, direct: true}

// surfaces returns what the session's host sees.
func (s *session) surfaces() *surfaceSet {
	st := s.agg.state.Load()
	switch {
	case s.only != "":
		return ofOneServer
	case s.tree:
		return st.tree
	case st.auto() && s.hostProfile().searches:
		return st.searching
	}
	return st.surfaces
}

// auto reports whether it depends on the host which surfaces there are.
func (st *state) auto() bool { return st.searching != st.surfaces }

// definitions returns the entries of tools/list.
func (set *surfaceSet) definitions(v *catalog.View, longest int) (all []json.RawMessage) {
	for _, t := range set.tools {
		all = append(all, t.Definitions(v, longest)...)
	}
	return all
}

// tool returns the tool of ours of a name, raw JSON, nil if there is none. Those that are
// pinned have short names, too.
func (set *surfaceSet) tool(rawName json.RawMessage, pins bool) *surface.Tool {
	tools := set.tools
	if i := slices.IndexFunc(tools, func(t surface.Tool) bool { return t.Name != "" && wire.EqualString(rawName, t.Name) }); i >= 0 {
		return &tools[i]
	}
	if name, ok := wire.Text(rawName); ok && pins {
		if i := slices.IndexFunc(tools, func(t surface.Tool) bool { return catalog.IsShort(name, t.Name) }); i >= 0 {
			return &tools[i]
		}
	}
	return nil
}

// instructions are for the answer to the handshake, "" if no surface has any.
func (set *surfaceSet) instructions(v *catalog.View) string {
	for _, s := range set.all {
		if s.Instructions != nil {
			return s.Instructions(v)
		}
	}
	return ""
}

// howToCall says how a tool is called that was called by its own name, "" if no surface
// has a way.
func (set *surfaceSet) howToCall(t *catalog.Tool) string {
	for _, s := range set.all {
		if s.HowToCall != nil {
			return s.HowToCall(t)
		}
	}
	return ""
}

// howToRead says how a model reads the definition of a tool again.
func (set *surfaceSet) howToRead(tool string) string {
	for _, s := range set.all {
		if s.HowToRead != nil {
			return "read it anew with " + s.HowToRead(tool)
		}
	}
	return "list the tools anew"
}

// howToLoad says how a server that is backing off is tried at once, "" if no surface has
// a way.
func (set *surfaceSet) howToLoad(server string) string {
	for _, s := range set.all {
		if s.LoadTool != nil {
			return s.LoadTool(server)
		}
	}
	return ""
}
