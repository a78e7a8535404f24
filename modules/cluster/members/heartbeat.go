package members

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
)

// A heartbeat maintains the record of this replica. Fields without a lock belong to the goroutine
// that runs it.
type heartbeat struct {
	*base
	leases *leases

	revision uint64 // of the record, as far as known; 0 if absent
	count    uint64 // attempted heartbeats
	silent   bool   // none has arrived for long; this was logged

	mu      sync.Mutex
	sent    time.Duration // when the last heartbeat that arrived was sent
	contact time.Duration // since when all heartbeats have arrived
}

// run sends heartbeats until the replica ends.
func (b *heartbeat) run() {
	for b.ctx.Err() == nil {
		sent := b.clock()
		wait := tick
		if b.send(sent) {
			wait = HeartbeatInterval
		}
		if b.pause(wait-(b.clock()-sent), b.beats) {
			b.pause(tick-(b.clock()-sent), nil) // limits the rate of requested heartbeats
		}
	}
}

// send writes the record once. It reports whether the heartbeat has arrived.
func (b *heartbeat) send(sent time.Duration) bool {
	var load Load
	if b.options.Load != nil {
		load = b.options.Load()
	}
	t, ok := b.leases.term(sent)
	if !ok {
		return false
	}
	b.count++
	revision, err := b.write(Member{ID: b.id, Name: b.options.Name, Address: b.options.Address, Version: b.options.Version, Since: b.since,
		Epoch: t.epoch, Draining: t.draining, Load: load, Heartbeats: b.count, Seen: t.seen})
	at := b.clock()
	switch {
	case errors.Is(err, records.ErrConflict):
		b.resolve(t)
		return false
	case err != nil:
		if last, _ := b.last(); !b.silent && last > 0 && at >= last+Validity && b.ctx.Err() == nil {
			b.silent = true
			b.logger.Warn("the cluster's state cannot be reached: nothing new is placed", "err", err)
		}
		return false
	}
	if b.silent {
		b.silent = false
		b.logger.Info("the cluster's state is reached again")
	}
	b.revision = revision
	b.mu.Lock()
	if sent-b.sent > Validity {
		b.contact = at
	}
	b.sent = sent
	b.mu.Unlock()
	b.leases.extend(t, sent+Validity, at)
	return true
}

// write creates or updates the record.
func (b *heartbeat) write(m Member) (revision uint64, err error) {
	ctx, cancel := context.WithTimeout(b.ctx, answer)
	defer cancel()
	key := memberKey(b.id)
	if b.revision == 0 {
		return b.bucket.Create(ctx, key, encode(key, m))
	}
	return b.bucket.Update(ctx, key, encode(key, m), b.revision)
}

// resolve reads the record after its revision was not the expected one.
func (b *heartbeat) resolve(t term) {
	ctx, cancel := context.WithTimeout(b.ctx, answer)
	defer cancel()
	e, err := b.bucket.Get(ctx, memberKey(b.id))
	if err != nil && !errors.Is(err, records.ErrNotFound) {
		return
	}
	at := b.clock()
	var found Member
	if err == nil {
		// A broken record was not written by this replica. The next heartbeat replaces it.
		if found, err = decodeMember(e.Key, e.Value); err != nil {
			found.Epoch = t.epoch
		}
	}
	b.revision = e.Revision // 0 if absent
	b.leases.expire(at)
	// In the same epoch it is one of our heartbeats that was not answered.
	if t.live && found.Epoch != t.epoch && b.leases.lose() {
		b.logger.Warn("this replica has expired: its leases are lost")
	}
}

// last returns when the last heartbeat that arrived was sent, and since when all of them have
// arrived.
func (b *heartbeat) last() (sent, contact time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent, b.contact
}

// degraded reports whether the store cannot be reached.
func (b *heartbeat) degraded(at time.Duration) bool {
	sent, _ := b.last()
	return at >= sent+Validity || at >= sent+suspectAfter && !b.options.Store.Connected()
}

// suspect reports whether a member may be dead: there was no news of it for a while in which
// our own heartbeats arrived. During an election of the store nobody is suspected.
func (b *heartbeat) suspect(m *member, at time.Duration) bool {
	sent, _ := b.last()
	return at >= m.seen+suspectAfter && (at < sent+suspectAfter || at >= m.seen+Validity)
}
