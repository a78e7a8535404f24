package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// A Question is what one replica asks another about a member.
type Question struct {
	ID string `json:"id"` // of the member
	// Revision is that of the record which is to be deleted: the other is asked to agree
	// that the member is dead. 0 asks it to promise, for TTL, not to agree to that.
	Revision uint64 `json:"revision,omitzero"`
}

// A promise is what another replica answered: not to agree for TTL that this one is dead.
type promise struct {
	sent   time.Duration // when the last one that came was asked for; 0: none has
	asked  time.Duration // when one was last asked for
	asking bool
}

// Answer answers what another replica asks. The error says why not.
func (r *Replica) Answer(q Question) error {
	at := r.clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.view.members[q.ID]
	switch {
	case r.ctx.Err() != nil:
		return ErrClosed
	case m == nil:
		return errors.New("no such member is known here")
	case q.Revision == 0:
		if r.agreed[q.ID] >= m.revision {
			return errors.New("it is agreed here that you are dead")
		}
		m.promised = max(m.promised, at+TTL)
		return nil
	case q.Revision != m.revision || at < m.seen+TTL || at < m.promised:
		return errors.New("it was heard of here")
	}
	r.agreed[q.ID] = max(r.agreed[q.ID], q.Revision)
	return nil
}

// extendLocked moves until to what the last beat that arrived and the promises allow.
// Nothing moves it further than Validity from now: who is needed may change.
func (r *Replica) extendLocked(at time.Duration) {
	if !r.live {
		return
	}
	promised := min(r.sent+Patience, at+Validity)
	if r.options.Ask == nil {
		promised = 0
	}
	for _, others := range r.electors {
		if len(others) == 0 {
			continue // nobody is asked about us
		}
		sent := make([]time.Duration, len(others))
		for i, m := range others {
			sent[i] = -Validity // none came
			if p := r.promises[m.ID]; p != nil && p.sent > 0 {
				sent[i] = p.sent
			}
		}
		slices.Sort(sent)
		// It takes two of several to declare us dead: one may be away.
		promised = min(promised, sent[min(1, len(sent)-1)]+Validity)
	}
	r.until = max(r.until, r.sent+Validity, promised)
}

// askableLocked returns the members that are to be asked for a promise now.
func (r *Replica) askableLocked(at time.Duration) (ask []Member) {
	for _, others := range r.electors {
		for _, m := range others {
			p := r.promises[m.ID]
			if p == nil {
				p = &promise{asked: -Beat}
				r.promises[m.ID] = p
			}
			if !p.asking && at >= p.asked+Beat && m.Address != "" {
				p.asking, p.asked = true, at
				ask = append(ask, m)
			}
		}
	}
	return ask
}

func (r *Replica) askPromise(m Member) {
	ctx, cancel := context.WithTimeout(r.ctx, Validity)
	defer cancel()
	sent := r.clock()
	err := r.options.Ask(ctx, m.Address, Question{ID: r.id})
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
	r.extendLocked(at)
	r.mu.Unlock()
	r.extend()
}

// deadLocked returns the members that were not heard of for TTL while we could have, and
// were promised nothing here in that time.
func (r *Replica) deadLocked(at time.Duration) []*member {
	if !r.validLocked(at) || r.view.members[r.id] == nil {
		return nil
	}
	var dead []*member
	for id, m := range r.view.members {
		if id != r.id && at >= max(m.seen, r.contact)+TTL && at >= m.promised && !m.answered {
			dead = append(dead, m)
		}
	}
	return dead
}

// bury has members that are silent declared dead. It reports whether nothing is left of
// that.
func (r *Replica) bury() (done bool) {
	at := r.clock()
	r.mu.Lock()
	dead := r.deadLocked(at)
	ended := make(chan bool, len(dead))
	for _, m := range dead {
		r.agreed[m.ID] = max(r.agreed[m.ID], m.revision) // from here on no promise is given
		agreed := at >= max(m.seen, r.contact)+TTL+Patience
		r.run(func() {
			if !agreed && !r.agree(m) {
				ended <- false
				return
			}
			// ErrConflict: it lives, or another replica was first.
			err := r.delete(memberKey(m.ID), m.revision)
			if err == nil {
				r.logger.Warn("a replica was not heard of: declared dead", "member", m.Name, "id", m.ID)
			}
			answered := err == nil || errors.Is(err, kv.ErrConflict) || errors.Is(err, kv.ErrNotFound)
			r.mu.Lock()
			m.answered = answered
			r.mu.Unlock()
			ended <- answered
		})
	}
	r.mu.Unlock()
	done = true
	for range dead {
		select {
		case answered := <-ended:
			done = done && answered
		case <-r.ctx.Done():
		}
	}
	return done
}

// agree reports whether two of those whom a member knew agree that it is dead, or the
// one where there is only one. This replica does, and may be one of them.
func (r *Replica) agree(m *member) bool {
	electors := m.electors()
	needed := min(2, len(electors))
	if needed == 0 {
		return false
	}
	at := r.clock()
	var fresh, silent []Member
	r.mu.Lock()
	for id, other := range r.view.members {
		switch {
		case !slices.Contains(electors, tag(id)):
		case id == r.id:
			needed--
		case at < other.heard()+Validity:
			fresh = append(fresh, other.Member)
		default:
			silent = append(silent, other.Member)
		}
	}
	r.mu.Unlock()
	ask := append(fresh, silent...)
	if r.options.Ask == nil {
		ask = nil
	}
	ctx, cancel := context.WithTimeout(r.ctx, Validity)
	defer cancel()
	for needed > 0 && len(ask) > 0 && ctx.Err() == nil {
		some := ask[:min(needed+1, len(ask))] // one more, as answers may be late
		ask = ask[len(some):]
		answers := make(chan error, len(some))
		ctx, cancel := context.WithTimeout(ctx, Beat)
		for _, other := range some {
			r.run(func() { answers <- r.options.Ask(ctx, other.Address, Question{ID: m.ID, Revision: m.revision}) })
		}
		for i := 0; i < len(some) && needed > 0; i++ {
			select {
			case err := <-answers:
				if err == nil {
					needed--
				}
			case <-ctx.Done():
			}
		}
		cancel()
	}
	return needed <= 0
}
