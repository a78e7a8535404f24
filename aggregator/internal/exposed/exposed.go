// Package exposed composes the surfaces that a config shows to hosts. Hosts differ in the meaning
// of auto and in whether use_tool is split; a profile has surfaces of its own.
package exposed

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dynmcp/dynmcp/aggregator/internal/direct"
	"github.com/dynmcp/dynmcp/aggregator/internal/discover"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/profile"
)

// core are the surfaces of the core.
var core = []surface.Kind{
	{Name: schema.ExposeDiscover, Start: surface.Plain(discover.New)},
	{Name: schema.ExposeDirect, Start: surface.Plain(direct.New)},
}

// Makers make the surfaces that a config's expose may name, besides auto. If several are on, the texts of the
// first one are used.
type Makers []maker

type maker struct {
	surface.Maker
	name string
}

// Start starts the surfaces of the core and those of modules, in the order of schema.Surfaces.
func Start(added []surface.Kind, run surface.Run) (makers Makers) {
	all := slices.SortedStableFunc(slices.Values(slices.Concat(core, added)), func(a, b surface.Kind) int {
		return slices.Index(schema.Surfaces, a.Name) - slices.Index(schema.Surfaces, b.Name)
	})
	for _, kind := range all {
		makers = append(makers, maker{kind.Start(run), kind.Name})
	}
	return makers
}

// Close ends them. No call may be running.
func (makers Makers) Close() {
	for _, m := range makers {
		m.Close()
	}
}

// compose combines the surfaces of these names, in which auto stands for another one: all their
// tools, and each text from the first surface in the table that has it.
func (makers Makers) compose(cfg *schema.Config, names []string, auto string) (*surface.Surface, error) {
	all := &surface.Surface{}
	made := map[string]surface.Surface{}
	for _, name := range names {
		if name == schema.ExposeAuto {
			name = auto
		}
		at := slices.IndexFunc(makers, func(m maker) bool { return m.name == name })
		if at < 0 {
			return nil, fmt.Errorf("expose: there is no surface %q", name)
		}
		made[name] = makers[at].Surface(cfg)
		all.Tools = append(all.Tools, made[name].Tools...)
	}
	for _, m := range makers {
		all.Add(made[m.name])
	}
	return all, nil
}

// A Set is what a config, or a profile in it, shows to hosts.
type Set struct {
	Config *schema.Config
	Usual  Variants
	Split  Variants         // for hosts for which use_tool is split
	Tree   *surface.Surface // for hosts that see the tree alone; nil if no module has it
}

// Variants are the surfaces for hosts with the same use_tool.
type Variants struct {
	Usual     *surface.Surface
	Searching *surface.Surface // for hosts that search tools themselves: differs if that matters
}

func (makers Makers) newVariants(cfg *schema.Config) (p Variants, err error) {
	if p.Usual, err = makers.compose(cfg, cfg.Expose, schema.ExposeDiscover); err != nil {
		return p, err
	}
	if p.Searching = p.Usual; slices.Contains(cfg.Expose, schema.ExposeAuto) {
		p.Searching, err = makers.compose(cfg, cfg.Expose, schema.ExposeDirect)
	}
	return p, err
}

// Surfaces are what a config and each profile in it show to hosts.
type Surfaces struct {
	Whole    *Set
	profiles map[string]*Set
	gone     *Set
}

// Of returns what a config shows to hosts.
func (makers Makers) Of(cfg *schema.Config) (all *Surfaces, err error) {
	all = &Surfaces{profiles: map[string]*Set{}}
	if all.Whole, err = makers.newSet(cfg); err != nil {
		return nil, err
	}
	nothing := *cfg
	nothing.Servers, nothing.Tree, nothing.Pin = nil, nil, nil
	if all.gone, err = makers.newSet(&nothing); err != nil {
		return nil, err
	}
	for name := range cfg.Profiles {
		part, err := profile.Select(cfg, name)
		if err != nil {
			return nil, err
		}
		if all.profiles[name], err = makers.newSet(part); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Of returns what a profile shows, or the whole config with "". A profile that a
// reload has removed shows nothing.
func (all *Surfaces) Of(profile string) *Set {
	if profile == "" {
		return all.Whole
	}
	return cmp.Or(all.profiles[profile], all.gone)
}

func (makers Makers) newSet(cfg *schema.Config) (*Set, error) {
	s := &Set{Config: cfg}
	var err error
	if s.Usual, err = makers.newVariants(cfg); err != nil {
		return nil, err
	}
	split := *cfg
	split.UseTool = schema.UseToolSplit
	if s.Split, err = makers.newVariants(&split); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(makers, func(m maker) bool { return m.name == schema.ExposeTree }) {
		s.Tree, err = makers.compose(cfg, []string{schema.ExposeTree}, "")
	}
	return s, err
}

// OneServer is the surface of a session for one server.
var OneServer = direct.New(nil)

// Surface returns the surface for a host.
func (s *Set) Surface(p *sessions.Profile) *surface.Surface {
	seen := s.Usual
	if s.Splits(p) {
		seen = s.Split
	}
	if s.Searches(p) {
		return seen.Searching
	}
	return seen.Usual
}

// Searches reports whether a host gets other surfaces because it searches tools itself.
func (s *Set) Searches(p *sessions.Profile) bool {
	return p.Searches && s.Usual.Searching != s.Usual.Usual
}

// Splits reports whether a host gets three tools in place of use_tool.
func (s *Set) Splits(p *sessions.Profile) bool {
	return s.Config.UseTool == schema.UseToolSplit || s.Config.UseTool == schema.UseToolAuto && p.AsksByTool
}
