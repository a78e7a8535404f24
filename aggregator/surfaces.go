package aggregator

import (
	"fmt"
	"slices"

	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/browser"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/direct"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/discover"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/proxy"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/tree"
	"github.com/dynmcp/dynmcp/schema"
)

// The surfaces that a config's expose may name, beside auto. Where several are on, the
// texts of the first one are used.
var surfaceTable = []surfaceLine{
	{schema.ExposeDiscover, discover.New},
	{schema.ExposeTree, tree.New},
	{schema.ExposeBrowser, browser.New},
	{schema.ExposeProxy, proxy.New},
	{schema.ExposeDirect, direct.New},
}

type surfaceLine struct {
	name string
	of   func(*schema.Config) surface.Surface
}

// newSurface returns the surfaces of these names as one, of which auto stands for another:
// all their tools, and of each text that of the first surface in the table that has it.
func newSurface(cfg *schema.Config, names []string, auto string) (*surface.Surface, error) {
	all := &surface.Surface{}
	made := map[string]surface.Surface{}
	for _, name := range names {
		if name == schema.ExposeAuto {
			name = auto
		}
		at := slices.IndexFunc(surfaceTable, func(line surfaceLine) bool { return line.name == name })
		if at < 0 {
			return nil, fmt.Errorf("expose: there is no surface %q", name)
		}
		made[name] = surfaceTable[at].of(cfg)
		all.Tools = append(all.Tools, made[name].Tools...)
	}
	for _, line := range surfaceTable {
		all.AddTexts(made[line.name])
	}
	return all, nil
}

// ofOneServer is what a session sees that is about one server.
var ofOneServer = direct.New(nil)

// surface returns what the session's host sees.
func (s *session) surface() *surface.Surface {
	st := s.agg.state.Load()
	switch {
	case s.only != "":
		return &ofOneServer
	case s.tree:
		return st.tree
	case st.auto() && s.hostProfile().searches:
		return st.searching
	}
	return st.surface
}

// auto reports whether it depends on the host which surfaces there are.
func (st *state) auto() bool { return st.searching != st.surface }
