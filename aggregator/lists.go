package aggregator

import (
	"slices"

	"github.com/dynmcp/dynmcp/aggregator/internal/surface/discover"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/tree"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/schema"
)

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
				now := s.Snapshot()
				s.Recipient.Announce(now, s.FollowedTasks(), s.Reading(now, settled), settled)
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
