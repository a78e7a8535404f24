package members

import (
	"context"
	"maps"
	"slices"

	"github.com/dynmcp/dynmcp/internal/records"
)

// A record is broken if a bit of it was changed on a disk, or if no replica wrote it. doc.go
// explains why nothing runs twice in spite of that.

// repair rewrites the leases of this replica whose records are broken. One member deletes the
// broken leases without a holder. It reports whether all of that is done.
func (r *Replica) repair() (done bool) {
	valid, _ := r.leases.valid(r.clock())
	first := valid && r.view.first()
	broken := r.view.selectLeases(func(l *lease, _ *member) bool { return l.broken })
	return each(r, slices.Collect(maps.Keys(broken)), func(ctx context.Context, key string) bool {
		h, epoch := r.leases.holder(key)
		switch {
		case h != nil:
			return r.rewrite(ctx, h, broken[key].Revision, epoch)
		case first && r.leases.isFree(key):
			free, err := r.freeBroken(ctx, broken[key].Revision)
			return err == nil && free && answered(r.bucket.Delete(ctx, key, broken[key].Revision))
		}
		return true
	})
}

// rewrite writes a lease over its broken record.
func (r *Replica) rewrite(ctx context.Context, h *held, at, epoch uint64) bool {
	value := encode(h.key, LeaseInfo{Name: h.name, Owner: r.id, Epoch: epoch, Granted: h.granted})
	revision, err := r.bucket.Update(ctx, h.key, value, at)
	if err == nil {
		r.leases.rewritten(h, revision)
	}
	return answered(err)
}

// freeBroken reports whether nobody holds a lease whose record is broken at a revision: every
// member reports that it has seen the revision, and would have repaired its own. It reads the
// store, because the view may lack members.
func (r *Replica) freeBroken(ctx context.Context, revision uint64) (bool, error) {
	list, err := records.List(ctx, r.bucket, memberPrefix)
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
