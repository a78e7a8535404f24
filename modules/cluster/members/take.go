package members

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
)

// Take takes the lease of a name, which may be any bytes, or shares the one that this replica has.
// It returns a *HeldError if another replica has it, ErrDraining if this one drains, and an
// error that is records.ErrUnavailable if the store cannot be reached for Reconnect. While the
// holder drains, or is silent but not expired, it waits until ctx ends.
//
// This process may be stopped for any time between Take's last look at the clock and the
// caller's next step. The caller's processes must therefore obey the deadline passed to
// Extend: after a lease was lost, it is not extended until the lease is released.
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
		wait := r.changed.wait()
		l, a, other, err := r.look(key, name, began)
		if a != nil {
			l, err = r.try(ctx, a)
		}
		if l != nil || err != nil {
			return l, err
		}
		if other != nil {
			wait = other.done
		}
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

// An attempt is one try to write a lease.
type attempt struct {
	key, name string
	epoch     uint64
	before    *lease        // the record to replace, nil if absent
	done      chan struct{} // closed at the end
}

// look returns the lease of a name held here, an attempt to make, the attempt of another
// goroutine, or an error. If it returns nothing, the caller waits for a change.
func (r *Replica) look(key, name string, began time.Duration) (l *Lease, a, other *attempt, err error) {
	at := r.clock()
	degraded := r.heartbeat.degraded(at)
	seen, owner := r.view.lease(key)
	elsewhere := owner != nil && owner.ID != r.id
	suspect := elsewhere && r.heartbeat.suspect(owner, at)
	s := r.leases
	s.mu.Lock()
	defer s.mu.Unlock()
	switch h := s.held[key]; {
	case s.closed:
		return nil, nil, nil, ErrClosed
	case s.draining:
		return nil, nil, nil, ErrDraining
	case h != nil && s.validLocked(at):
		h.shares++
		return &Lease{held: h}, nil, nil, nil
	case s.taking[key] != nil:
		return nil, nil, s.taking[key], nil
	case elsewhere && !owner.Draining && !suspect:
		return nil, nil, nil, &HeldError{owner.Member}
	case degraded && at >= began+Reconnect:
		return nil, nil, nil, fmt.Errorf("nothing new is placed: %w", records.ErrUnavailable)
	case degraded, !s.validLocked(at), elsewhere:
		return nil, nil, nil, nil
	}
	a = &attempt{key: key, name: name, epoch: s.epoch, before: seen, done: make(chan struct{})}
	s.taking[key] = a
	return nil, a, nil, nil
}

// try writes a lease, and returns it if that succeeded. It may be retried if there is no
// error.
func (r *Replica) try(ctx context.Context, a *attempt) (*Lease, error) {
	granted := time.Now().UTC()
	revision, err := r.write(ctx, a, granted)
	if l := r.leases.grant(a, revision, granted, err, r.clock()); l != nil {
		return l, nil
	}
	signal(r.sweeps) // it may have been written in spite of the error
	if errors.Is(err, records.ErrConflict) || errors.Is(err, records.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || r.ctx.Err() != nil {
		return nil, nil
	}
	return nil, err
}

// grant ends an attempt. The lease is ours if this replica is still valid in the same epoch:
// nobody can have expired it before.
func (s *leases) grant(a *attempt, revision uint64, granted time.Time, err error, at time.Duration) *Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taking, a.key)
	close(a.done)
	if err != nil || s.epoch != a.epoch || !s.validLocked(at) || s.closed || s.view.overwritten(a.key, revision) {
		return nil
	}
	h := &held{leases: s, key: a.key, name: a.name, granted: granted, revision: revision, lost: make(chan struct{}), shares: 1}
	s.held[a.key] = h
	return &Lease{held: h}
}

// write takes the lease if the record before it is free. ErrConflict means that the view is
// old.
func (r *Replica) write(ctx context.Context, a *attempt, granted time.Time) (revision uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	value := encode(a.key, LeaseInfo{Name: a.name, Owner: r.id, Epoch: a.epoch, Granted: granted})
	l := a.before
	if l == nil {
		return r.bucket.Create(ctx, a.key, value)
	}
	if l.Owner != r.id || l.Epoch != a.epoch {
		free, err := r.free(ctx, *l)
		if err != nil {
			return 0, err
		}
		if !free {
			return 0, records.ErrConflict
		}
	}
	return r.bucket.Update(ctx, a.key, value, l.Revision)
}

// free reports whether the owner of a lease is gone for good. It reads the store, because the
// view may be old or incomplete. An epoch is never written twice: one that is absent now stays
// absent.
func (r *Replica) free(ctx context.Context, l lease) (bool, error) {
	if l.broken {
		return r.freeBroken(ctx, l.Revision)
	}
	e, err := r.bucket.Get(ctx, memberKey(l.Owner))
	if errors.Is(err, records.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	m, err := decodeMember(e.Key, e.Value)
	// A broken record is rewritten or expires. A smaller epoch is older than the lease.
	return err == nil && m.Epoch > l.Epoch, nil
}
