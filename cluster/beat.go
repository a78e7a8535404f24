package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"dynmcp/cluster/kv"
)

// A promise is what another replica answered: not to declare this one dead for TTL.
type promise struct {
	sent   time.Duration // when the last one that came was asked for
	asked  time.Duration // when one was last asked for
	asking bool
}

// beatOn sends beats until the replica ends.
func (r *Replica) beatOn() {
	for r.ctx.Err() == nil {
		sent := r.clock()
		wait := Beat
		switch r.sendBeat(sent) {
		case again:
			continue
		case failed:
			wait = tick
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
	ids := []string{r.id}
	knows := map[string]Member{}
	for id, m := range r.view.members {
		if id != r.id {
			ids = append(ids, id)
			knows[id] = m.Member
		}
	}
	maps.Copy(r.needed, knows) // the record may arrive, whatever we are told
	m := Member{ID: r.id, Name: r.options.Name, Address: r.options.Address, Version: r.options.Version, Since: r.since,
		Epoch: r.epoch, Draining: r.draining, Load: load, Beat: r.beat, Knows: digest(ids)}
	r.mu.Unlock()

	value, err := json.Marshal(m)
	if err != nil {
		panic(err) // not reached: strings and numbers
	}
	ctx, cancel := context.WithTimeout(r.ctx, answer)
	defer cancel()
	var written uint64
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
	r.needed = knows
	for id, m := range r.view.members {
		if id != r.id {
			r.needed[id] = m.Member
		}
	}
	maps.DeleteFunc(r.promises, func(id string, p *promise) bool { return r.needed[id].ID == "" && !p.asking })
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

// conflict looks why the record is not at the revision that it was thought to have.
func (r *Replica) conflict(ctx context.Context, live bool, epoch uint64) outcome {
	e, err := r.bucket.Get(ctx, memberKey(r.id))
	var found Member
	if err == nil {
		if err := json.Unmarshal(e.Value, &found); err != nil {
			r.logger.Warn("the record of this replica was changed by others", "err", err)
			found = Member{} // no epoch of ours
		}
	} else if !errors.Is(err, kv.ErrNotFound) {
		return failed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revision = e.Revision // 0 when there is none
	if live && found.Epoch != epoch {
		r.logger.Warn("this replica was declared dead: what it held is lost")
		r.loseLocked()
	}
	// Otherwise it is a beat of ours that was not answered.
	return again
}

// extendLocked moves until to what the last beat that arrived and the promises allow.
// Nothing moves it further than Validity from now: who is needed may change.
func (r *Replica) extendLocked(at time.Duration) {
	if !r.live {
		return
	}
	until := r.sent + Validity
	promised := min(r.sent+Patience, at+Validity)
	for id := range r.needed {
		p := r.promises[id]
		if p == nil || p.sent == 0 {
			promised = 0
			break
		}
		promised = min(promised, p.sent+Validity)
	}
	if r.options.Promise == nil {
		promised = 0
	}
	r.until = max(r.until, until, promised)
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
		overdue := r.live && r.options.Promise != nil && at >= r.sent+Overdue && at < r.sent+Patience
		if overdue {
			r.extendLocked(at) // there may be nobody to ask
			for id, m := range r.needed {
				p := r.promises[id]
				if p == nil {
					p = &promise{asked: -Beat}
					r.promises[id] = p
				}
				if !p.asking && at >= p.asked+Beat && m.Address != "" {
					p.asking, p.asked = true, at
					ask = append(ask, m)
				}
			}
		}
		wait := tick
		if r.live {
			wait = min(wait, r.until-at)
		}
		dead := r.deadLocked(at) != nil
		var self Member
		if m := r.view.members[r.id]; m != nil {
			self = m.Member
		}
		r.mu.Unlock()
		if dead {
			kick(r.sweeps)
		}
		if overdue {
			r.extend()
		}
		for _, m := range ask {
			r.run(func() { r.ask(m, self) })
		}
		select {
		case <-time.After(wait):
		case <-r.ctx.Done():
			return
		}
	}
}

// ask asks a member for a promise.
func (r *Replica) ask(m, self Member) {
	ctx, cancel := context.WithTimeout(r.ctx, Validity)
	defer cancel()
	sent := r.clock()
	known, err := r.options.Promise(ctx, m.Address, self)
	at := r.clock()
	r.mu.Lock()
	p := r.promises[m.ID]
	p.asking = false
	if err != nil {
		r.mu.Unlock()
		r.logger.Debug("no promise came", "member", m.Name, "err", err)
		return
	}
	r.expireLocked(at)
	p.sent = max(p.sent, sent)
	for _, id := range known {
		if _, ok := r.needed[id]; !ok && id != r.id {
			r.needed[id] = Member{ID: id} // cannot be asked: no promises until a beat arrives
		}
	}
	r.extendLocked(at)
	r.mu.Unlock()
	r.extend()
}

// PromiseTo is what a replica's request for a promise is answered with: not to declare it
// dead for TTL, and the IDs of the members known here. It is refused when it was done
// already, or is under way.
func (r *Replica) PromiseTo(from Member) (known []string, err error) {
	at := r.clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.view.members[from.ID]
	switch {
	case r.ctx.Err() != nil:
		return nil, ErrClosed
	case m == nil:
		return nil, errors.New("you are no member that is known here")
	case m.declared:
		return nil, errors.New("you were declared dead")
	}
	m.promised = max(m.promised, at+TTL)
	for id := range r.view.members {
		known = append(known, id)
	}
	return known, nil
}
