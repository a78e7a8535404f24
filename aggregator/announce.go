package aggregator

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/catalog"
)

// A snapshot is what hosts can read at one moment: a function of the config and
// the catalogue.
type snapshot struct {
	generation int64 // grows with every snapshot
	state      *state
	surfaces   *surfaceSet
	longest    int // name of a tool
	views      *catalog.Views

	mu      sync.Mutex
	digests map[digestKey]func() [sha256.Size]byte // each made when first needed

	recovered func() // to be deferred
}

// A digestKey names a list as the hosts of a view read it.
type digestKey struct {
	method string
	view   *catalog.View
}

// A version stands for the bytes of a list.
type version struct {
	generation int64
	digest     [sha256.Size]byte
}

// snapshots hold the last one, so that every session uses the same digests.
type snapshots struct {
	mu         sync.Mutex
	generation int64 // of the last one
	last       map[listKey]*snapshot
}

// snapshot returns what a session's host can read now.
func (s *session) snapshot() *snapshot {
	s.agg.snapshots.mu.Lock()
	defer s.agg.snapshots.mu.Unlock()
	of := s.listKey()
	last := s.agg.snapshots.last[of]
	now := &snapshot{state: s.agg.state.Load(), surfaces: s.surfaces(), longest: of.longest, views: s.views(), digests: map[digestKey]func() [sha256.Size]byte{}, recovered: s.agg.work.Recover}
	if last != nil {
		if last.state == now.state && last.views == now.views {
			return last
		}
		if last.state == now.state {
			now.keepFrozen(last)
		}
	}
	if s.agg.snapshots.last == nil {
		s.agg.snapshots.last = map[listKey]*snapshot{}
	}
	s.agg.snapshots.generation++
	now.generation = s.agg.snapshots.generation
	s.agg.snapshots.last[of] = now
	return now
}

// keepFrozen takes over the digests of what does not change with the catalogue.
func (n *snapshot) keepFrozen(last *snapshot) {
	last.mu.Lock()
	defer last.mu.Unlock()
	for _, frozen := range n.state.frozen.all() {
		for key, digest := range last.digests {
			if slices.Contains(frozen[:], key.view) {
				n.digests[key] = digest
			}
		}
	}
}

func (n *snapshot) version(which listing.List, view *catalog.View) version {
	n.mu.Lock()
	key := digestKey{which.Method, view}
	digest := n.digests[key]
	if digest == nil {
		digest = sync.OnceValue(func() (digest [sha256.Size]byte) {
			defer n.recovered() // a list that cannot be made must not cost the others
			return sha256.Sum256(n.result(which, view))
		})
		n.digests[key] = digest
	}
	n.mu.Unlock()
	return version{n.generation, digest()}
}

// entries returns those of a list as the hosts of a view read them.
func (n *snapshot) entries(which listing.List, view *catalog.View) []json.RawMessage {
	switch which.Method {
	case "resources/list":
		return view.Resources()
	case "resources/templates/list":
		return view.Templates()
	case "prompts/list":
		return view.Prompts()
	}
	return n.surfaces.definitions(view, n.longest)
}

// result returns what a host of a view reads: {key: [entries…]}, every entry as it
// came.
func (n *snapshot) result(which listing.List, view *catalog.View) json.RawMessage {
	entries := n.entries(which, view)
	size := len(which.Key) + 8
	for _, e := range entries {
		size += len(e) + 1
	}
	out := fmt.Appendf(make([]byte, 0, size), `{%q:[`, which.Key)
	for i, e := range entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, "]}"...)
}

// announceDelay is how long changes are collected before hosts are notified:
// servers that start together, or a server that announces each of its tools, are
// one change.
const announceDelay = 50 * time.Millisecond

// announce notifies hosts of what changed, for as long as the aggregator runs.
// The last change always gets out: a token stays in the channel until it is seen.
func (a *Aggregator) announce() {
	for a.sessions.awaitChange(a.ctx) {
		a.work.Guard(func() {
			for _, s := range a.sessions.all() {
				if s.replica { // it reads what the server lists, not what hosts read
					continue
				}
				settled := !s.incomplete() // before the snapshot, which holds what ended the wait
				now := s.snapshot()
				s.announce(now, func(which listing.List) *catalog.View { return s.shownView(now, which, settled) }, settled)
			}
		})
	}
}

// awaitChange returns true announceDelay after something changed, false when ctx
// ends.
func (ss *sessions) awaitChange(ctx context.Context) bool {
	select {
	case <-ss.dirty:
	case <-ctx.Done():
		return false
	}
	select {
	case <-time.After(announceDelay):
	case <-ctx.Done():
		return false
	}
	select {
	case <-ss.dirty:
	default:
	}
	return true
}

// announce tells the host which of its lists are not what it read last. One that it
// has not read counts from the moment when it would have been answered: what
// upstreams bring while they start, settled is false then, is no change to it. view
// returns what it sees of a list, nil where that is not known yet.
func (s *session) announce(now *snapshot, view func(listing.List) *catalog.View, settled bool) {
	versions := map[string]version{}
	for _, which := range listing.Lists {
		if v := view(which); v != nil {
			versions[which.Method] = now.version(which, v)
		}
	}
	s.mu.Lock()
	if !s.initialized && len(s.listens) == 0 {
		s.mu.Unlock()
		return
	}
	changed := map[string]bool{} // by notification
	for _, which := range listing.Lists {
		last, known := s.seen[which.Method]
		v, due := versions[which.Method]
		if !due || !known && !settled || v.generation < last.generation {
			continue // or meanwhile the host has read a newer one
		}
		if known && v.digest != last.digest {
			changed[which.Changed] = true
		}
		s.seen[which.Method] = v
	}
	s.mu.Unlock()
	for _, method := range []string{"notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"} {
		if changed[method] {
			s.notify(method, nil, func(l listen) bool { return l.changes[method] })
		}
	}
}

// countFrom has the lists that the host has not read count as they are now.
func (s *session) countFrom(now *snapshot, view func(listing.List) *catalog.View) {
	for _, which := range listing.Lists {
		v := now.version(which, view(which))
		s.mu.Lock()
		if _, known := s.seen[which.Method]; !known {
			s.seen[which.Method] = v
		}
		s.mu.Unlock()
	}
}

// recordList notes which version of a list a host was given. It reports true if
// that is older than what the host was told of, which it has to be told again.
func (s *session) recordList(method string, v version) (outdated bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	outdated = v.generation < s.seen[method].generation
	s.seen[method] = v
	return outdated
}
