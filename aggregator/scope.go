package aggregator

import (
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/lazy"
)

// A session may be about one server (session.only), as if that had been wrapped alone and
// its tools were shown as themselves, or about a profile (profiles.go). What a session sees and reaches is in this file.

// views returns the catalogue as sessions see it that are about the same as s.
func (s session) views() *catalog.Views { return s.worded(s.agg.fleet.Views(s.Session)) }

// worded returns views as their texts are for a session's host.
func (s session) worded(views *catalog.Views) *catalog.Views { return views.Worded(wordingOf(s)) }

// wordingOf is how texts are for a session's host. Instructions are read once: they have
// servers of their own only where the list of tools stays as well.
func wordingOf(s session) catalog.Wording {
	p := s.hostProfile()
	return catalog.Wording{Split: exposedTo(s).Splits(p), Told: p.Instructs && s.isStable()}
}

// single returns the one upstream that a session is about, nil if there are many.
func (s session) single() *lazy.Upstream { return s.agg.fleet.Single(s.Session) }

// view returns the catalogue as a session's host may see it.
func (s session) view() *catalog.View {
	return s.views()[s.followedTasks()]
}

// A listKey is what the list of a session's tools depends on beside the catalogue.
type listKey struct {
	only, in string // see sessions.Session
	tree     bool
	searches bool // and that counts
	wording  catalog.Wording
	longest  int // name of a tool
}

func listKeyOf(s session) listKey {
	sees, set, p := s.surface(), exposedTo(s), s.hostProfile()
	key := listKey{only: s.Only, in: s.In, tree: s.Tree, searches: set.Searches(p), wording: wordingOf(s), longest: catalog.MaxDirect}
	if sees.Direct || len(set.Config.Pin) > 0 {
		key.longest = p.Longest()
	}
	return key
}
