package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// A view is what a replica has seen of the cluster's state. It may be old, and records
// that were changed again before they were seen are missing in between.
type view struct {
	members map[string]*member // by ID
	leases  map[string]*lease  // by key
	gone    map[string]departed
}

// A departed is a member whose record was deleted, though it did not leave.
type departed struct {
	address string
	seen    time.Duration // that the record was deleted
}

type member struct {
	Member
	revision uint64
	seen     time.Duration // when this revision came
	answered bool          // whether it was deleted at this revision is known
	promised time.Duration // not to agree that it is dead until then
	leaving  chan struct{} // closed when it drains, is gone, or has another epoch
	broken   bool          // the record was: the rest is what it said before, or nothing
}

// electors returns those of the record. Who wrote a broken one is not known: nobody is asked.
func (m *member) electors() []string {
	if m.broken {
		return nil
	}
	return m.Member.electors()
}

// heard returns when the member was last heard of.
func (m *member) heard() time.Duration { return max(m.seen, m.promised-TTL) }

type lease struct {
	LeaseInfo
	broken  bool // the record is: it names no owner
	deleted bool // by this replica, which is not seen yet
	idle    int  // how many times a look at what to delete has found it without an owner
}

func newView() view {
	return view{members: map[string]*member{}, leases: map[string]*lease{}, gone: map[string]departed{}}
}

// holds reports whether the owner of a lease is a member, as far as is seen.
func (v *view) holds(l *lease) bool {
	owner := v.members[l.Owner]
	return owner != nil && owner.Epoch == l.Epoch
}

// watch keeps the view until the replica ends. It closes listed when there is one.
func (r *Replica) watch(listed chan struct{}) {
	for {
		var list []kv.Entry
		ready := false
		err := r.bucket.Watch(r.ctx, "", func(e kv.Entry) {
			if !ready {
				list = append(list, e)
				return
			}
			at := r.clock()
			r.mu.Lock()
			defer r.mu.Unlock()
			r.seeLocked(e, at)
		}, func() {
			ready = true
			at := r.clock()
			r.mu.Lock()
			defer r.mu.Unlock()
			r.listedLocked(list, at)
			list = nil
			if listed != nil {
				close(listed)
				listed = nil
			}
		})
		if r.ctx.Err() != nil {
			return
		}
		r.logger.Warn("the cluster's state is not watched any more: trying again", "err", err)
		select {
		case <-time.After(Beat):
		case <-r.ctx.Done():
			return
		}
	}
}

// listedLocked makes the view that of a list: what is not in it is not there any more.
func (r *Replica) listedLocked(list []kv.Entry, at time.Duration) {
	there := map[string]bool{}
	r.seen = 0 // the store may be another one
	for _, e := range list {
		there[e.Key] = e.Value != nil
		r.seeLocked(e, at)
	}
	for id := range r.view.members {
		if key := memberKey(id); !there[key] {
			r.seeLocked(kv.Entry{Key: key}, at)
		}
	}
	for key := range r.view.leases {
		if !there[key] {
			r.seeLocked(kv.Entry{Key: key}, at)
		}
	}
}

// seeLocked changes the view by what was seen of a record.
func (r *Replica) seeLocked(e kv.Entry, at time.Duration) {
	r.seen = max(r.seen, e.Revision)
	switch {
	case strings.HasPrefix(e.Key, memberPrefix):
		id := strings.TrimPrefix(e.Key, memberPrefix)
		var m Member
		var err error
		if e.Value != nil {
			if m, err = decodeMember(e.Key, e.Value); err != nil {
				r.warnLocked(e, err)
				if m = (Member{ID: id}); r.view.members[id] != nil {
					m = r.view.members[id].Member
				}
			}
		}
		r.seeMemberLocked(id, m, e, at, err != nil)
	case strings.HasPrefix(e.Key, leasePrefix):
		if e.Value == nil {
			delete(r.view.leases, e.Key)
		} else {
			info, err := decodeLease(e.Key, e.Value)
			if err != nil {
				r.warnLocked(e, err)
				info = LeaseInfo{}
			}
			info.Revision = e.Revision
			r.view.leases[e.Key] = &lease{LeaseInfo: info, broken: err != nil}
			if err != nil || info.Owner == r.id {
				kick(r.sweeps) // it is to be mended, or may be of a Take that was not answered
			}
		}
		r.wakeLocked()
	}
}

func (r *Replica) seeMemberLocked(id string, m Member, e kv.Entry, at time.Duration, broken bool) {
	v := &r.view
	before := v.members[id]
	if before != nil && before.revision == e.Revision && before.Member == m {
		return // a list that has nothing new of it
	}
	if e.Value == nil {
		delete(v.members, id)
		if before != nil && !before.Draining {
			v.gone[id] = departed{before.Address, at}
		}
	} else {
		delete(v.gone, id)
		next := &member{Member: m, revision: e.Revision, seen: at, leaving: make(chan struct{}), broken: broken}
		if m.Draining {
			close(next.leaving)
		}
		if before != nil {
			next.promised = before.promised
			if before.Epoch == m.Epoch && before.Draining == m.Draining {
				next.leaving = before.leaving
			}
		}
		v.members[id] = next
	}
	switch {
	case before == nil && e.Value == nil:
		return
	case before == nil || e.Value == nil:
		kick(r.beats) // so that the others see that we know
	}
	after := v.members[id]
	if before != nil && (after == nil || after.leaving != before.leaving) && !before.Draining {
		close(before.leaving)
	}
	if before == nil || after == nil || before.Epoch != after.Epoch || before.Draining != after.Draining ||
		at >= before.heard()+Validity || id == r.id {
		r.wakeLocked()
	}
}

// sweepOn deletes leases that were released and those of owners that are gone, and mends
// broken ones, until the replica ends.
func (r *Replica) sweepOn() {
	collect := time.NewTicker(30 * time.Second)
	defer collect.Stop()
	for {
		released := r.deleteReleased()
		wait := Beat
		if r.mend() && released {
			wait = time.Hour
		}
		retry := time.NewTimer(wait)
		select {
		case <-r.sweeps:
		case <-retry.C:
		case <-collect.C:
			r.deleteIdle()
		case <-r.ctx.Done():
			return
		}
		retry.Stop()
	}
}

// buryOn has the dead declared so until the replica ends.
func (r *Replica) buryOn() {
	for {
		wait := Beat
		if r.bury() {
			wait = time.Hour
		}
		retry := time.NewTimer(wait)
		select {
		case <-r.deaths:
		case <-retry.C:
		case <-r.ctx.Done():
			return
		}
		retry.Stop()
	}
}

func (r *Replica) delete(key string, revision uint64) error {
	ctx, cancel := context.WithTimeout(r.ctx, answer)
	defer cancel()
	return r.bucket.Delete(ctx, key, revision)
}

// deleteReleased deletes the leases that this replica owns and nobody here holds. It
// reports whether no answer is missing.
func (r *Replica) deleteReleased() (done bool) {
	r.mu.Lock()
	var keys []string
	if r.live {
		for key, l := range r.view.leases {
			if r.releasedLocked(key, l) {
				keys = append(keys, key)
			}
		}
	}
	r.mu.Unlock()
	return r.each(keys, func(key string) bool {
		r.mu.Lock()
		l := r.view.leases[key]
		released := l != nil && r.live && r.releasedLocked(key, l)
		r.mu.Unlock()
		if !released {
			return true
		}
		switch err := r.delete(key, l.Revision); {
		case err == nil:
			r.mu.Lock()
			l.deleted = true
			r.wakeLocked()
			r.mu.Unlock()
		case errors.Is(err, kv.ErrConflict), errors.Is(err, kv.ErrNotFound): // we shall see
		default:
			return false
		}
		return true
	})
}

// sweepers is how many changes of leases are asked of the store at a time: a replica may
// have had a thousand.
const sweepers = 32

// each calls do for each key, for several at a time, and reports whether all returned true.
func (r *Replica) each(keys []string, do func(key string) bool) bool {
	var work errgroup.Group
	work.SetLimit(sweepers)
	var failed atomic.Bool
	for _, key := range keys {
		work.Go(func() error {
			if r.ctx.Err() != nil || !do(key) {
				failed.Store(true)
			}
			return nil
		})
	}
	_ = work.Wait()
	return !failed.Load()
}

func (r *Replica) releasedLocked(key string, l *lease) bool {
	return l.Owner == r.id && l.Epoch == r.epoch && !l.deleted && r.leases[key] == nil && r.taking[key] == nil
}

// deleteIdle deletes the leases that have had no owner for a while, which one member does
// for all, and forgets members that are gone.
func (r *Replica) deleteIdle() {
	at := r.clock()
	r.mu.Lock()
	maps.DeleteFunc(r.agreed, func(id string, _ uint64) bool { return r.view.members[id] == nil })
	maps.DeleteFunc(r.view.gone, func(_ string, d departed) bool { return at >= d.seen+Remembered })
	var idle []string
	if r.firstLocked() && r.validLocked(at) {
		for key, l := range r.view.leases {
			if !l.broken && !r.view.holds(l) && r.taking[key] == nil {
				if l.idle++; l.idle > 1 {
					idle = append(idle, key)
				}
			}
		}
	}
	r.mu.Unlock()
	r.each(idle, func(key string) bool {
		r.mu.Lock()
		l := r.view.leases[key]
		r.mu.Unlock()
		if l == nil {
			return true
		}
		ctx, cancel := context.WithTimeout(r.ctx, answer)
		defer cancel()
		if free, err := r.free(ctx, l); err == nil && free {
			_ = r.bucket.Delete(ctx, key, l.Revision) // or another time
		}
		return true
	})
}

// firstLocked reports whether this replica does what one member does for all.
func (r *Replica) firstLocked() bool {
	return r.id == slices.Min(append(slices.Collect(maps.Keys(r.view.members)), r.id))
}

// free reports whether the owner of a lease is gone for good. What is seen may be old or
// have gaps, so the store is asked. An epoch is never written twice: one that is not there
// now never is again.
func (r *Replica) free(ctx context.Context, l *lease) (bool, error) {
	if l.broken {
		return r.freeBroken(ctx, l.Revision)
	}
	e, err := r.bucket.Get(ctx, memberKey(l.Owner))
	if errors.Is(err, kv.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	m, err := decodeMember(e.Key, e.Value)
	if err != nil {
		return false, nil // it is written again, or declared dead
	}
	return m.Epoch > l.Epoch, nil // a smaller one is an answer from before the lease
}
