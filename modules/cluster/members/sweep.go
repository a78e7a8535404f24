package members

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dynmcp/dynmcp/internal/records"
)

// watch maintains the view until the replica ends. It closes listed after the first list.
func (r *Replica) watch(listed chan struct{}) {
	for {
		var list []records.Record
		ready := false
		err := r.bucket.Watch(r.ctx, "", func(e records.Record) {
			if !ready {
				list = append(list, e)
				return
			}
			wake, sweep := r.view.see(e, r.clock())
			if wake {
				r.changed.wake()
			}
			if sweep {
				signal(r.sweeps)
			}
		}, func() {
			ready = true
			r.view.list(list, r.clock())
			list = nil
			r.changed.wake()
			signal(r.sweeps)
			if listed != nil {
				close(listed)
				listed = nil
			}
		})
		if r.ctx.Err() != nil {
			return
		}
		r.logger.Warn("the watch of the cluster's state has ended: trying again", "err", err)
		r.pause(HeartbeatInterval, nil)
	}
}

// watchValidity ends the epoch whenever its validity ends, until the replica ends.
func (r *Replica) watchValidity() {
	for r.ctx.Err() == nil {
		at := r.clock()
		r.leases.expire(at)
		wait := tick
		if valid, until := r.leases.valid(at); valid {
			wait = min(wait, until-at)
		}
		r.pause(wait, nil)
	}
}

// expireMembers deletes the records of members that send no heartbeats, until the replica
// ends.
func (r *Replica) expireMembers() {
	for r.ctx.Err() == nil {
		at := r.clock()
		valid, _ := r.leases.valid(at)
		_, contact := r.heartbeat.last()
		var dead []*member
		// Only time in which our own heartbeats arrived counts.
		if valid && r.view.member(r.id) != nil && at >= contact+TTL {
			dead = r.view.silent(at - TTL)
		}
		if !each(r, dead, r.expireMember) {
			r.pause(HeartbeatInterval, nil)
		}
		r.pause(tick, nil)
	}
}

// expireMember deletes the record of a member. It reports whether the store has answered.
func (r *Replica) expireMember(ctx context.Context, m *member) bool {
	err := r.bucket.Delete(ctx, memberKey(m.ID), m.revision)
	if err == nil {
		r.logger.Warn("a replica sent no heartbeats: it has expired", "member", m.Name, "id", m.ID)
	}
	return answered(err)
}

// sweep deletes leases that were released and those without an owner, and repairs broken ones,
// until the replica ends.
func (r *Replica) sweep() {
	collect := r.clock() + collectEvery
	for r.ctx.Err() == nil {
		released := r.deleteReleased()
		wait := HeartbeatInterval
		if r.repair() && released {
			wait = collectEvery
		}
		if at := r.clock(); at >= collect {
			collect = at + collectEvery
			r.collect(at)
		}
		r.pause(min(wait, collect-r.clock()), r.sweeps)
	}
}

// collectEvery is how often idle leases are collected.
const collectEvery = 30 * time.Second

// deleteReleased deletes the leases that this replica owns but does not hold. It reports whether
// the store has answered.
func (r *Replica) deleteReleased() bool {
	owned := func(l *lease, _ *member) bool { return l.Owner == r.id }
	return each(r, slices.Collect(maps.Keys(r.leases.released(r.view.selectLeases(owned)))), func(ctx context.Context, key string) bool {
		l, _ := r.view.lease(key)
		if l == nil || len(r.leases.released(map[string]lease{key: *l})) == 0 { // no longer
			return true
		}
		return answered(r.bucket.Delete(ctx, key, l.Revision))
	})
}

// collect deletes the leases that have had no owner for a while, on one member for all, and
// removes members that expired long ago.
func (r *Replica) collect(at time.Duration) {
	r.view.forget(at - addressTTL)
	if valid, _ := r.leases.valid(at); !valid || !r.view.first() {
		return
	}
	idle := r.view.selectLeases(func(l *lease, holder *member) bool { return !l.broken && holder == nil })
	each(r, slices.Collect(maps.Keys(idle)), func(ctx context.Context, key string) bool {
		if free, err := r.free(ctx, idle[key]); err == nil && free {
			_ = r.bucket.Delete(ctx, key, idle[key].Revision) // if it fails, the next collection retries
		}
		return true
	})
}

// answered reports whether the store has answered a change. After a conflict the view shows the
// record.
func answered(err error) bool {
	return err == nil || errors.Is(err, records.ErrConflict) || errors.Is(err, records.ErrNotFound)
}

// maxConcurrent is how many changes are sent to the store at once: a replica may have had a thousand
// leases.
const maxConcurrent = 32

// each calls do for all, several at a time, with the time for an answer of the store. It
// reports whether all calls returned true.
func each[T any](r *Replica, all []T, do func(context.Context, T) bool) bool {
	var work errgroup.Group
	work.SetLimit(maxConcurrent)
	var failed atomic.Bool
	for _, one := range all {
		work.Go(func() error {
			ctx, cancel := context.WithTimeout(r.ctx, answer)
			defer cancel()
			if ctx.Err() != nil || !do(ctx, one) {
				failed.Store(true)
			}
			return nil
		})
	}
	_ = work.Wait()
	return !failed.Load()
}
