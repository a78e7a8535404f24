package aggregator

import (
	"fmt"
	"slices"

	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/browser"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/direct"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/discover"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/proxy"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/script"
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
	{schema.ExposeScript, script.New},
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

// surfaces are what hosts see for which use_tool is the same.
type surfaces struct {
	usual     *surface.Surface
	searching *surface.Surface // for hosts that search tools by themselves: another one where that counts
}

func newSurfaces(cfg *schema.Config) (s surfaces, err error) {
	if s.usual, err = newSurface(cfg, cfg.Expose, schema.ExposeDiscover); err != nil {
		return s, err
	}
	if s.searching = s.usual; slices.Contains(cfg.Expose, schema.ExposeAuto) {
		s.searching, err = newSurface(cfg, cfg.Expose, schema.ExposeDirect)
	}
	return s, err
}

// ofOneServer is what a session sees that is about one server.
var ofOneServer = direct.New(nil)

// surface returns what the session's host sees.
func (s session) surface() *surface.Surface {
	st := faceOf(s)
	switch {
	case s.Only != "":
		return &ofOneServer
	case s.Tree:
		return st.tree
	}
	seen, p := st.seen, s.hostProfile()
	if st.splits(p) {
		seen = st.seenSplit
	}
	if st.searches(p) {
		return seen.searching
	}
	return seen.usual
}

// searches reports whether a host sees other surfaces because it searches tools by itself.
func (st *face) searches(p *sessions.Profile) bool {
	return p.Searches && st.seen.searching != st.seen.usual
}

// splits reports whether a host sees three tools in the place of use_tool.
func (st *face) splits(p *sessions.Profile) bool {
	return st.cfg.UseTool == schema.UseToolSplit || st.cfg.UseTool == schema.UseToolAuto && p.AsksByTool
}
