package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// beatOn sends beats until the replica ends.
func (r *Replica) beatOn() {
	retried := false
	for r.ctx.Err() == nil {
		sent := r.clock()
		wait := Beat
		switch r.sendBeat(sent) {
		case again:
			if !retried {
				retried = true
				continue
			}
			// The store may hold an earlier beat of ours that it cannot decide on yet.
			wait = tick
		case failed:
			wait = tick
		default:
			retried = false
		}
		next := time.NewTimer(max(0, wait-(r.clock()-sent)))
		select {
		case <-next.C:
		case <-r.beats:
			next.Stop()
			// Many kicks, when many members come at once, are few beats.
			select {
			case <-time.After(tick - min(tick, r.clock()-sent)):
			case <-r.ctx.Done():
			}
		case <-r.ctx.Done():
			next.Stop()
		}
	}
}

type outcome int

const (
	arrived outcome = iota
	failed          // the store cannot be reached, or what was lost still ends
	again           // it is another record than was thought: try at once
)

// sendBeat writes the record once.
func (r *Replica) sendBeat(sent time.Duration) outcome {
	var load Load
	if r.options.Load != nil {
		load = r.options.Load()
	}
	r.mu.Lock()
	r.expireLocked(sent)
	if r.closed || !r.live && r.unreleased > 0 {
		// The next epoch makes the leases of the last one free, and moves the guards'
		// deadline on: not before what ran under them has ended, nor while somebody who
		// was stopped may still begin it.
		left := 0
		if !r.closed && !r.stuck && sent >= r.until+TTL {
			r.stuck, left = true, r.unreleased
		}
		r.mu.Unlock()
		if left > 0 {
			r.logger.Warn("this replica stays out of the cluster until what it has lost is released", "leases", left)
		}
		return failed
	}
	r.stuck = false
	if !r.live {
		r.epoch++ // a new one for each try, so that none is ever written twice
	}
	r.beat++
	live, revision := r.live, r.revision
	m, others := r.recordLocked(load)
	r.electors[m.Knows] = others // the record may arrive, whatever we are told
	r.mu.Unlock()

	value := encode(memberKey(r.id), m)
	ctx, cancel := context.WithTimeout(r.ctx, answer)
	defer cancel()
	var written uint64
	var err error
	if revision == 0 {
		written, err = r.bucket.Create(ctx, memberKey(r.id), value)
	} else {
		written, err = r.bucket.Update(ctx, memberKey(r.id), value, revision)
	}
	if errors.Is(err, kv.ErrConflict) {
		return r.conflict(ctx, live, m.Epoch)
	}
	at := r.clock()
	r.mu.Lock()
	if err != nil {
		silent := !r.silent && r.sent > 0 && at >= r.sent+Patience && r.ctx.Err() == nil
		if silent {
			r.silent = true
		}
		r.mu.Unlock()
		if silent {
			r.logger.Warn("the cluster's state cannot be reached: nothing new is placed", "err", err)
		}
		return failed
	}
	r.expireLocked(at)
	back := r.silent
	r.silent = false
	r.revision = written
	if sent-r.sent > Validity {
		r.contact = at
	}
	r.sent = sent
	// Earlier tries were for an earlier revision: they cannot arrive any more.
	r.electors = map[string][]Member{m.Knows: others}
	maps.DeleteFunc(r.promises, func(id string, p *promise) bool {
		return !p.asking && !slices.ContainsFunc(others, func(m Member) bool { return m.ID == id })
	})
	if live {
		r.extendLocked(at)
	} else {
		r.until = max(r.until, sent+Validity)
	}
	r.mu.Unlock()
	r.extend()
	if !live {
		r.mu.Lock()
		r.live = !r.closed // after the guards know
		r.wakeLocked()
		r.mu.Unlock()
	}
	if back {
		r.logger.Info("the cluster's state is reached again")
	}
	return arrived
}

// recordLocked returns what this replica says of itself now, and the others that it knows.
func (r *Replica) recordLocked(load Load) (m Member, others []Member) {
	tags := []string{tag(r.id)}
	for id, m := range r.view.members {
		if id != r.id {
			tags = append(tags, tag(id))
			others = append(others, m.Member)
		}
	}
	slices.Sort(tags)
	return Member{ID: r.id, Name: r.options.Name, Address: r.options.Address, Version: r.options.Version, Since: r.since,
		Epoch: r.epoch, Draining: r.draining, Load: load, Beat: r.beat, Knows: strings.Join(tags, " "), Seen: r.seenLocked()}, others
}

// conflict looks why the record is not at the revision that it was thought to have.
func (r *Replica) conflict(ctx context.Context, live bool, epoch uint64) outcome {
	e, err := r.bucket.Get(ctx, memberKey(r.id))
	var found Member
	broken := false
	if err == nil {
		if found, err = decodeMember(e.Key, e.Value); err != nil {
			broken = true // which is logged when it is seen
		}
	} else if !errors.Is(err, kv.ErrNotFound) {
		return failed
	}
	at := r.clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revision = e.Revision // 0 when there is none
	// Somebody else wrote a broken one. Nobody has declared us dead as long as we are valid:
	// the next beat takes its place.
	r.expireLocked(at)
	if live && r.live && !broken && found.Epoch != epoch {
		r.logger.Warn("this replica was declared dead: what it held is lost")
		r.loseLocked()
	}
	// Otherwise it is a beat of ours that was not answered.
	return again
}

// extend tells the guards how long they may let run what they guard.
func (r *Replica) extend() {
	if r.options.Extend == nil {
		return
	}
	// In this order: a pause in between makes the deadline earlier, not later.
	wall := time.Now()
	at := r.clock()
	r.mu.Lock()
	until := r.until
	r.mu.Unlock()
	r.options.Extend(wall.Add(until - at))
}

// expireLocked ends the epoch when its time has passed: guards have killed what it ran.
func (r *Replica) expireLocked(at time.Duration) {
	if r.live && at >= r.until {
		r.logger.Warn("the cluster's state was not reached in time: what this replica holds is lost", "leases", len(r.leases))
		r.loseLocked()
	}
}

// loseLocked ends the epoch: every lease is lost.
func (r *Replica) loseLocked() {
	r.live = false
	for key, h := range r.leases {
		h.isLost = true
		close(h.lost)
		r.unreleased++
		delete(r.leases, key)
	}
	r.wakeLocked()
}

// tickOn does what depends on the time alone: the end of validity, asking for promises,
// having the dead declared so.
func (r *Replica) tickOn() {
	for {
		at := r.clock()
		r.mu.Lock()
		r.expireLocked(at)
		var ask []Member
		overdue := r.live && r.options.Ask != nil && at >= r.sent+Overdue && at < r.sent+Patience
		if overdue {
			r.extendLocked(at) // there may be nobody to ask
			ask = r.askableLocked(at)
		}
		wait := tick
		if r.live {
			wait = min(wait, r.until-at)
		}
		dead := r.deadLocked(at) != nil
		r.mu.Unlock()
		if dead {
			kick(r.deaths)
		}
		if overdue {
			r.extend()
		}
		for _, m := range ask {
			r.run(func() { r.askPromise(m) })
		}
		select {
		case <-time.After(wait):
		case <-r.ctx.Done():
			return
		}
	}
}
