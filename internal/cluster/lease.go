package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// A HeldError says that another replica has the lease.
type HeldError struct{ Member Member }

func (e *HeldError) Error() string { return fmt.Sprintf("it runs on replica %q", e.Member.Name) }

// A Lease is the right to run what its name stands for, here alone. Whoever has one ends
// the work at once when it is lost, and calls Release when nothing of the work is left.
type Lease struct {
	held    *held
	release sync.Once
}

// held is a lease that this replica has; all Leases of its name share it.
type held struct {
	r       *Replica
	key     string
	name    string
	granted time.Time
	lost    chan struct{}

	// r.mu guards them.
	revision uint64
	shares   int
	isLost   bool
}

// Lost returns a channel that is closed when the replica may not run the work any more.
func (l *Lease) Lost() <-chan struct{} { return l.held.lost }

// Release says that the work has ended. Others can take the lease when everybody here who
// shares it has released it.
func (l *Lease) Release() {
	l.release.Do(func() {
		h := l.held
		r := h.r
		r.mu.Lock()
		defer r.mu.Unlock()
		if h.shares--; h.shares > 0 {
			return
		}
		if h.isLost {
			r.unreleased--
			kick(r.beats)
		} else {
			delete(r.leases, h.key)
			kick(r.sweeps)
		}
		r.wakeLocked()
	})
}

// Take takes the lease of a name, which may be any bytes, or shares the one that this
// replica has. It returns a *HeldError when another replica has it, ErrDraining when
// this one drains, and an error that is kv.ErrUnavailable when the store cannot be
// reached for Reconnect. It waits, until ctx ends, while the one that has it drains or is silent but not
// yet declared dead.
//
// Between its last look at the clock and what the caller does then this process can be
// stopped for any time. What the caller starts must therefore obey the deadline that
// Extend was given: that does not move on after a lease was lost, before it is released.
func (r *Replica) Take(ctx context.Context, name string) (*Lease, error) {
	l, err := r.take(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("take %q: %w", name, err)
	}
	return l, nil
}

func (r *Replica) take(ctx context.Context, name string) (*Lease, error) {
	key := leaseKey(name)
	began := r.clock()
	for {
		at := r.clock()
		connected := r.options.Store.Connected()
		r.mu.Lock()
		valid := r.validLocked(at)
		changed := r.changed
		var wait <-chan struct{} = changed
		switch l := r.view.leases[key]; {
		case r.closed:
			r.mu.Unlock()
			return nil, ErrClosed
		case r.draining:
			r.mu.Unlock()
			return nil, ErrDraining
		case r.leases[key] != nil && valid:
			h := r.leases[key]
			h.shares++
			r.mu.Unlock()
			return &Lease{held: h}, nil
		case r.taking[key] != nil:
			wait = r.taking[key]
		case r.heldLocked(l, at):
			owner := r.view.members[l.Owner].Member
			r.mu.Unlock()
			return nil, &HeldError{owner}
		case r.degradedLocked(at, connected):
			if at >= began+Reconnect {
				r.mu.Unlock()
				return nil, fmt.Errorf("nothing new is placed: %w", kv.ErrUnavailable)
			}
		case !valid, l != nil && !l.deleted && l.Owner != r.id && r.view.holds(l):
		default:
			done := make(chan struct{})
			r.taking[key] = done
			epoch := r.epoch
			if l != nil && l.deleted {
				l = nil
			}
			r.mu.Unlock()
			granted := time.Now().UTC()
			revision, err := r.write(ctx, name, key, l, epoch, granted)
			at := r.clock()
			r.mu.Lock()
			delete(r.taking, key)
			close(done)
			changed = r.changed
			wait = changed
			// Valid now, of that epoch: nobody can have declared us dead before, so the
			// lease was ours when it was written and is.
			if err == nil && r.epoch == epoch && r.validLocked(at) && !r.closed && !r.overwrittenLocked(key, revision) {
				h := &held{r: r, key: key, name: name, granted: granted, revision: revision, lost: make(chan struct{}), shares: 1}
				r.leases[key] = h
				r.mu.Unlock()
				return &Lease{held: h}, nil
			}
			kick(r.sweeps) // it may have been written all the same
			if err != nil && !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && r.ctx.Err() == nil {
				r.mu.Unlock()
				return nil, err
			}
		}
		r.mu.Unlock()
		again := time.NewTimer(tick)
		select {
		case <-wait:
		case <-again.C:
		case <-r.ctx.Done():
		case <-ctx.Done():
			again.Stop()
			return nil, context.Cause(ctx)
		}
		again.Stop()
	}
}

// heldLocked reports whether a replica that was heard of lately, and stays, has a lease.
func (r *Replica) heldLocked(l *lease, at time.Duration) bool {
	if l == nil || l.deleted || l.Owner == r.id || !r.view.holds(l) {
		return false
	}
	owner := r.view.members[l.Owner]
	return !owner.Draining && at < owner.heard()+Validity
}

// write makes the lease ours, where l, what is seen of it, lets it be taken. ErrConflict
// says that what is seen is old.
func (r *Replica) write(ctx context.Context, name, key string, l *lease, epoch uint64, granted time.Time) (revision uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	value := encode(key, LeaseInfo{Name: name, Owner: r.id, Epoch: epoch, Granted: granted})
	if l == nil {
		return r.bucket.Create(ctx, key, value)
	}
	if l.Owner != r.id || l.Epoch != epoch {
		free, err := r.free(ctx, l)
		if err != nil {
			return 0, err
		}
		if !free {
			return 0, kv.ErrConflict
		}
	}
	return r.bucket.Update(ctx, key, value, l.Revision)
}
