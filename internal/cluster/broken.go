package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// A record may be broken: a bit of it changed on a disk, or somebody else has written it.
// doc.go says why nothing runs twice all the same.

// Broken returns the keys of the records that are broken, as far as is seen. They are
// written again or deleted within seconds if the replicas are well.
func (r *Replica) Broken() []string {
	var keys []string
	for _, m := range r.view.all() {
		if m.broken {
			keys = append(keys, memberKey(m.ID))
		}
	}
	keys = slices.AppendSeq(keys, maps.Keys(r.view.selectLeases(isBroken)))
	slices.Sort(keys)
	return keys
}

func isBroken(l *lease, _ *member) bool { return l.broken }

// repair writes the leases that this replica holds again if their records are broken. Those
// that nobody holds one member deletes for all. It reports whether all of it is done.
func (r *Replica) repair() (done bool) {
	valid, _ := r.leases.valid(r.clock())
	first := valid && r.view.first()
	broken := r.view.selectLeases(isBroken)
	return each(r, slices.Collect(maps.Keys(broken)), func(key string) bool {
		h, epoch := r.leases.holder(key)
		switch {
		case h != nil:
			return r.rewrite(h, broken[key].Revision, epoch)
		case first && r.leases.isFree(key):
			return r.deleteBroken(key, broken[key])
		}
		return true
	})
}

// rewrite writes a lease again in place of a broken record. It reports whether the store
// has answered: after a conflict the view shows what is there.
func (r *Replica) rewrite(h *held, at, epoch uint64) bool {
	ctx, cancel := context.WithTimeout(r.ctx, answer)
	defer cancel()
	value := encode(h.key, LeaseInfo{Name: h.name, Owner: r.id, Epoch: epoch, Granted: h.granted})
	revision, err := r.bucket.Update(ctx, h.key, value, at)
	if err == nil {
		r.leases.rewritten(h, revision)
	}
	return err == nil || errors.Is(err, kv.ErrConflict)
}

// deleteBroken deletes a broken lease if nobody holds it. It reports whether that is done.
func (r *Replica) deleteBroken(key string, l lease) bool {
	ctx, cancel := context.WithTimeout(r.ctx, answer)
	defer cancel()
	free, err := r.freeBroken(ctx, l.Revision)
	return err == nil && free && r.deleteLease(key, l)
}

// freeBroken reports whether nobody holds a lease whose record is broken at a revision:
// every member says that it has seen that, and would have repaired its own. The store is
// asked, as the view may lack members.
func (r *Replica) freeBroken(ctx context.Context, revision uint64) (bool, error) {
	for _, m := range r.view.all() {
		if m.broken || m.Seen < revision {
			return false, nil
		}
	}
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
