package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// A record may be broken: a bit of it changed on a disk, or somebody else who can write to
// the store has. doc.go says why nothing runs twice all the same.

func (r *Replica) warnLocked(e kv.Entry, err error) {
	r.logger.Warn("a record of the cluster's state is broken", "key", e.Key, "revision", e.Revision, "err", err)
}

// Broken returns the keys of the records that are broken, as far as is seen. They are
// written again or deleted within seconds where the replicas are well.
func (r *Replica) Broken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for id, m := range r.view.members {
		if m.broken {
			keys = append(keys, memberKey(id))
		}
	}
	for key, l := range r.view.leases {
		if l.broken && !l.deleted {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// seenLocked returns the revision up to which this replica holds no lease whose record is
// broken.
func (r *Replica) seenLocked() uint64 {
	seen := r.seen
	for key, h := range r.leases {
		if l := r.view.leases[key]; l != nil && l.broken && l.Revision > h.revision {
			seen = min(seen, l.Revision-1)
		}
	}
	return seen
}

// overwrittenLocked reports whether the record of a lease that was written at a revision is
// known to have been changed since.
func (r *Replica) overwrittenLocked(key string, revision uint64) bool {
	l := r.view.leases[key]
	return revision <= r.seen && (l == nil || l.Revision != revision)
}

// mend writes the leases that this replica holds again where their records are broken. Those
// that nobody holds one member deletes for all. It reports whether nothing is left of that.
func (r *Replica) mend() (done bool) {
	at := r.clock()
	r.mu.Lock()
	first := r.validLocked(at) && r.firstLocked()
	var broken []string
	for key, l := range r.view.leases {
		if l.broken && !l.deleted && r.taking[key] == nil && (first || r.leases[key] != nil) {
			broken = append(broken, key)
		}
	}
	r.mu.Unlock()
	return r.each(broken, func(key string) bool {
		r.mu.Lock()
		h, l := r.leases[key], r.view.leases[key]
		switch {
		case l == nil || !l.broken:
			r.mu.Unlock()
			return true
		case h == nil:
			r.mu.Unlock()
			return r.deleteBroken(key, l)
		}
		epoch := r.epoch
		r.mu.Unlock()
		return r.rewrite(h, l.Revision, epoch)
	})
}

// rewrite writes a lease again in the place of a broken record. It reports whether it was
// answered: a conflict is, and what it was with is seen.
func (r *Replica) rewrite(h *held, at, epoch uint64) bool {
	ctx, cancel := context.WithTimeout(r.ctx, answer)
	defer cancel()
	value := encode(h.key, LeaseInfo{Name: h.name, Owner: r.id, Epoch: epoch, Granted: h.granted})
	revision, err := r.bucket.Update(ctx, h.key, value, at)
	if err == nil {
		r.mu.Lock()
		h.revision = max(h.revision, revision)
		r.mu.Unlock()
	}
	return err == nil || errors.Is(err, kv.ErrConflict)
}

func (r *Replica) deleteBroken(key string, l *lease) bool {
	ctx, cancel := context.WithTimeout(r.ctx, answer)
	defer cancel()
	free, err := r.freeBroken(ctx, l.Revision)
	if err != nil || !free {
		return false
	}
	err = r.bucket.Delete(ctx, key, l.Revision)
	if err == nil {
		r.mu.Lock()
		l.deleted = true
		r.wakeLocked()
		r.mu.Unlock()
	}
	return err == nil || errors.Is(err, kv.ErrConflict) || errors.Is(err, kv.ErrNotFound)
}

// freeBroken reports whether nobody holds a lease whose record is broken at a revision:
// every member says that it has seen that, and would have mended its own. The store is
// asked, as what is seen may lack members.
func (r *Replica) freeBroken(ctx context.Context, revision uint64) (bool, error) {
	r.mu.Lock()
	for _, m := range r.view.members {
		if m.broken || m.Seen < revision {
			r.mu.Unlock()
			return false, nil
		}
	}
	r.mu.Unlock()
	list, err := kv.List(ctx, r.bucket, memberPrefix)
	if err != nil {
		return false, err
	}
	for key, e := range list {
		if m, err := decodeMember(key, e.Value); err != nil || m.Seen < revision {
			return false, nil
		}
	}
	return true, nil
}

// brokenIn returns the keys of a list of the state that are broken.
func brokenIn(list map[string]kv.Entry) (keys []string) {
	for key, e := range list {
		var err error
		switch {
		case strings.HasPrefix(key, memberPrefix):
			_, err = decodeMember(key, e.Value)
		case strings.HasPrefix(key, leasePrefix):
			_, err = decodeLease(key, e.Value)
		}
		if err != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
