package members

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
)

// A view is the part of the cluster's state that this replica has seen. It may be old, and may
// lack all but the last of several changes of a record.
type view struct {
	self   string // the ID of this replica
	logger *slog.Logger

	mu      sync.Mutex
	members map[string]*member // by ID
	leases  map[string]*lease  // by key
	expired map[string]expired // by ID
	seen    uint64             // the latest revision
}

type member struct {
	Member
	revision uint64
	seen     time.Duration // when this revision arrived
	leaving  chan struct{} // closed when it drains, is gone, or has another epoch
	broken   bool          // the record is broken: the rest is its previous content, or empty
}

type lease struct {
	LeaseInfo
	broken bool // the record is broken: it names no owner
}

// expired is a member whose record was deleted without a drain.
type expired struct {
	address string
	at      time.Duration
}

func newView(self string, logger *slog.Logger) *view {
	return &view{self: self, logger: logger, members: map[string]*member{}, leases: map[string]*lease{}, expired: map[string]expired{}}
}

// list replaces the view with a list: records that are not in it are gone.
func (v *view) list(list []records.Record, at time.Duration) {
	v.mu.Lock()
	v.seen = 0 // the store may be another one
	missing := map[string]bool{}
	for id := range v.members {
		missing[memberKey(id)] = true
	}
	for key := range v.leases {
		missing[key] = true
	}
	v.mu.Unlock()
	for _, e := range list {
		delete(missing, e.Key)
		v.see(e, at)
	}
	for key := range missing {
		v.see(records.Record{Key: key}, at)
	}
}

// see applies a change of a record. wake reports whether Take and other waiters may continue,
// sweep whether a lease must be checked: it is broken, or was taken by one of our attempts
// that was not answered.
func (v *view) see(e records.Record, at time.Duration) (wake, sweep bool) {
	id, isMember := strings.CutPrefix(e.Key, memberPrefix)
	isLease := strings.HasPrefix(e.Key, leasePrefix)
	var m Member
	var l LeaseInfo
	var err error
	switch {
	case e.Value == nil:
	case isMember:
		m, err = decodeMember(e.Key, e.Value)
	case isLease:
		l, err = decodeLease(e.Key, e.Value)
	}
	if err != nil {
		v.logger.Warn("a record of the cluster's state is broken", "key", e.Key, "revision", e.Revision, "err", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = max(v.seen, e.Revision)
	switch {
	case isMember:
		return v.seeMemberLocked(id, m, err != nil, e, at), false
	case !isLease:
		return false, false
	case e.Value == nil:
		delete(v.leases, e.Key)
		return true, false
	case err != nil:
		l = LeaseInfo{}
	}
	l.Revision = e.Revision
	v.leases[e.Key] = &lease{LeaseInfo: l, broken: err != nil}
	return true, err != nil || l.Owner == v.self
}

func (v *view) seeMemberLocked(id string, m Member, broken bool, e records.Record, at time.Duration) (wake bool) {
	before := v.members[id]
	if e.Value == nil {
		if before == nil {
			return false
		}
		delete(v.members, id)
		if !before.Draining {
			v.expired[id] = expired{before.Address, at}
			close(before.leaving)
		}
		return true
	}
	if broken {
		if m = (Member{ID: id}); before != nil {
			m = before.Member
		}
	}
	if before != nil && before.revision == e.Revision && before.Member == m {
		return false // listed again without a change
	}
	delete(v.expired, id)
	after := &member{Member: m, revision: e.Revision, seen: at, leaving: make(chan struct{}), broken: broken}
	v.members[id] = after
	changed := before == nil || before.Epoch != m.Epoch || before.Draining != m.Draining
	if !changed {
		after.leaving = before.leaving
	} else if before != nil && !before.Draining {
		close(before.leaving)
	}
	if changed && m.Draining {
		close(after.leaving)
	}
	return changed || at >= before.seen+suspectAfter || id == v.self
}

// holderLocked returns the member that holds a lease, nil if none does.
func (v *view) holderLocked(l *lease) *member {
	if owner := v.members[l.Owner]; owner != nil && owner.Epoch == l.Epoch {
		return owner
	}
	return nil
}

// lease returns a lease and the member that holds it, nil if absent.
func (v *view) lease(key string) (*lease, *member) {
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.leases[key]
	if l == nil {
		return nil, nil
	}
	return new(*l), v.holderLocked(l)
}

// selectLeases returns the leases that fit, by key.
func (v *view) selectLeases(fits func(l *lease, holder *member) bool) map[string]lease {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := map[string]lease{}
	for key, l := range v.leases {
		if fits(l, v.holderLocked(l)) {
			all[key] = *l
		}
	}
	return all
}

// overwritten reports whether the record of a lease is known to have changed after a revision.
func (v *view) overwritten(key string, revision uint64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.leases[key]
	return revision <= v.seen && (l == nil || l.Revision != revision)
}

// brokenLeases returns the latest revision of the view, and those of broken leases by key.
func (v *view) brokenLeases() (seen uint64, broken map[string]uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	broken = map[string]uint64{}
	for key, l := range v.leases {
		if l.broken {
			broken[key] = l.Revision
		}
	}
	return v.seen, broken
}

// all returns the members. They must not be changed.
func (v *view) all() []*member {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Values(v.members))
}

func (v *view) member(id string) *member {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.members[id]
}

// address returns the address of a member, including one that expired recently.
func (v *view) address(id string) (address string, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if m := v.members[id]; m != nil {
		return m.Address, true
	}
	e, ok := v.expired[id]
	return e.address, ok
}

// first reports whether this replica, by its ID, does the tasks that one member does for all.
func (v *view) first() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.self == slices.Min(append(slices.Collect(maps.Keys(v.members)), v.self))
}

// silent returns the members without news since a time.
func (v *view) silent(since time.Duration) (all []*member) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, m := range v.members {
		if id != v.self && m.seen <= since {
			all = append(all, m)
		}
	}
	return all
}

// forget forgets the members that expired before a time.
func (v *view) forget(before time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.expired, func(_ string, e expired) bool { return e.at <= before })
}
