package scope

import (
	"encoding/json"
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/directname"
)

// A kind holds everything besides the catalogue that determines a session's list of tools.
type kind struct {
	server, profile string // see sessions.Identity
	user            string // if some server lists to each user apart
	treeOnly        bool
	searches        bool // and that makes a difference
	split           bool // use_tool
	longest         int  // name of a tool
	hides           catalog.Hider
	able            catalog.Abilities
}

func (s Scope) kind() kind {
	set, p := s.set(), s.HostProfile()
	k := kind{server: s.Server, profile: s.ProfileName, treeOnly: s.TreeOnly, searches: set.Searches(p), split: set.Splits(p), longest: directname.Max, able: s.Able(), hides: s.env.Fleet.Run.Hider(s.Session)}
	if s.env.Catalog.Own(s.User) != nil {
		k.user = s.User
	}
	if s.Surface().Direct || len(set.Config.Pin) > 0 {
		k.longest = p.Longest()
	}
	return k
}

// Snapshot returns the lists that the host can read now.
func (s Scope) Snapshot() *notify.Snapshot {
	e, k := s.env, s.kind()
	return e.snapshots.Take(k, func() *notify.Snapshot {
		current, shown := e.Run.Surfaces(), s.Surface()
		content := func(views *catalog.Views) *notify.Content {
			return &notify.Content{Views: views, Lists: lists{shown, e.Extensions, s.hosts()}, Work: e.Work}
		}
		return &notify.Snapshot{
			Config: current, Content: content(s.Views()),
			Unloaded: sync.OnceValue(func() *notify.Content {
				return content(withSplit(e.Catalog.Unloaded(s.ProfileName, e.Catalog.Own(s.User)).For(k.able).Hiding(k.hides), k.split))
			}),
		}
	})
}

// hosts returns the hosts that read the same list of tools.
func (s Scope) hosts() extension.Hosts {
	return extension.Hosts{Able: s.Able(), Direct: s.Surface().Direct, SingleServer: s.IsSingleServer(), Longest: s.kind().longest}
}

// AddedTools returns the tools that extensions add to a list of the host.
func (s Scope) AddedTools(v *catalog.View) []extension.Tool {
	return s.env.Extensions.Tools(s.hosts(), v)
}

// lists are those of a surface, with what is added for its hosts.
type lists struct {
	shown *surface.Surface
	added *extension.Set
	hosts extension.Hosts
}

// Entries implements notify.Lists.
func (l lists) Entries(which listing.List, v *catalog.View) []json.RawMessage {
	switch which.Method {
	case "resources/list":
		return v.Resources()
	case "resources/templates/list":
		return v.Templates()
	case "prompts/list":
		return v.Prompts()
	}
	all := l.shown.List(v, l.hosts.Longest)
	for _, t := range l.added.Tools(l.hosts, v) {
		all = append(all, t.Definition)
	}
	return all
}

// Reading returns the host's content of lists at a snapshot. settled reports that lists may be answered
// now: nothing is pinned before.
func (s Scope) Reading(now *notify.Snapshot, settled bool) notify.Reading {
	return func(which listing.List) *notify.Content {
		switch {
		case which.Key != "tools" || !s.isStable():
			return now.Content
		case s.Persistent:
			return s.StableTools.At(now, settled)
		}
		return now.Stable.At(now, settled)
	}
}
