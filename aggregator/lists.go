package aggregator

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/discover"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/tree"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/schema"
)

// snapshot returns what a session's host can read now.
func (s session) snapshot() *notify.Snapshot {
	a, kind := s.agg, listKeyOf(s)
	return a.snapshots.Take(kind, func() *notify.Snapshot {
		st, shown := a.state.Load(), s.surface()
		content := func(views *catalog.Views) *notify.Content {
			return &notify.Content{Views: views, Recover: a.work.Recover, Entries: func(which listing.List, v *catalog.View) []json.RawMessage {
				return entries(which, v, shown, kind.longest)
			}}
		}
		return &notify.Snapshot{Config: st, Content: content(s.views()), Unloaded: sync.OnceValue(func() *notify.Content { return content(s.worded(a.catalog.Unloaded(s.In))) })}
	})
}

// entries returns those of a list as the hosts of a view read them.
func entries(which listing.List, v *catalog.View, shown *surface.Surface, longest int) []json.RawMessage {
	switch which.Method {
	case "resources/list":
		return v.Resources()
	case "resources/templates/list":
		return v.Templates()
	case "prompts/list":
		return v.Prompts()
	}
	return shown.List(v, longest)
}

// reading says what a session's host reads at a snapshot. settled is that lists may be
// answered now: nothing is pinned before.
func (s session) reading(now *notify.Snapshot, settled bool) notify.Reading {
	return func(which listing.List) *notify.Content {
		switch {
		case which.Key != "tools" || !s.isStable():
			return now.Content
		case s.Lasts:
			return s.Pinned.At(now, settled)
		}
		return now.Pinned.At(now, settled)
	}
}

// isStable reports whether a session's list of tools stays.
func (s session) isStable() bool {
	if s.single() != nil {
		return false // one server as it is
	}
	switch s.agg.config().Catalog.Stable {
	case schema.StableOn:
		return true
	case schema.StableOff:
		return false
	}
	return s.hostProfile().Freezes
}

// announce notifies hosts of what changed, for as long as the aggregator runs.
func (a *Aggregator) announce() {
	for a.changed.Wait(a.ctx) {
		a.work.Guard(func() {
			for _, known := range a.sessions.All() {
				s := a.of(known)
				if s.Replica { // it reads what the server lists, not what hosts read
					continue
				}
				settled := !(wait{session: s}).incomplete() // before the snapshot, which holds what ended the wait
				now := s.snapshot()
				s.Recipient.Announce(now, s.followedTasks(), s.reading(now, settled), settled)
			}
		})
	}
}

// installed logs what is wrong with the catalogue that was not wrong before, and has hosts
// notified.
func (a *Aggregator) installed(before *catalog.View) {
	known := map[string]bool{}
	conflicts, warnings := problems(a.config(), before)
	for _, w := range slices.Concat(conflicts, warnings) {
		known[w] = true
	}
	conflicts, warnings = problems(a.config(), a.catalog.View())
	for _, w := range conflicts {
		if !known[w] {
			a.log.Error(w)
		}
	}
	for _, w := range warnings {
		if !known[w] {
			a.log.Warn(w)
		}
	}
	a.changed.Set()
}

// problems says what is wrong with a view: paths of the tree that nothing can be called
// by, and what is left out or without effect.
func problems(cfg *schema.Config, view *catalog.View) (conflicts, warnings []string) {
	warnings = slices.Concat(view.Collisions(), view.Warnings(), discover.PinWarnings(cfg, view))
	if slices.Contains(cfg.Expose, schema.ExposeTree) {
		var ofTree []string
		conflicts, ofTree = tree.Of(cfg).Problems(view)
		warnings = append(warnings, ofTree...)
	}
	return conflicts, warnings
}
