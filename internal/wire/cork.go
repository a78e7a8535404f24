package wire

import (
	"sync"
	"sync/atomic"
)

// A Cork holds back messages given to Writers while Readers handle the messages
// that one read brought, so that many small messages leave in one write, as they
// arrived in one read (compare TCP_CORK). All the Readers and Writers that messages
// pass between share one Cork. The zero value is ready to use; a nil *Cork holds
// nothing back.
type Cork struct {
	delays atomic.Int32 // Delays that are not released; decreases only under mu

	mu    sync.Mutex
	dirty *Writer // the Writers that hold something back, linked by nextDirty
}

// Delay makes Writers keep small messages until Release. Calls may nest and
// overlap. A goroutine that delays must not block, because the messages of others wait
// for it too. Before it blocks it calls Release, and Delay again afterwards.
//
// Readers with a Cork do all this by themselves; see Reader.Uncork.
func (c *Cork) Delay() {
	if c != nil {
		c.delays.Add(1)
	}
}

// Release ends one Delay and writes everything that was held back by any Writer. If
// others still delay, messages given to back, which may be nil, are left for them to write:
// a Reader passes the Writer of its own connection. Messages to that connection come
// from the others, and sending those collected so far would cost an extra write and
// wake the peer for half of them. Release does not wait for a peer that does not read.
func (c *Cork) Release(back *Writer) {
	if c == nil {
		return
	}
	c.mu.Lock()
	others := c.delays.Add(-1) > 0
	dirty := c.dirty
	c.dirty = nil
	if others {
		for at := &dirty; *at != nil; at = &(*at).nextDirty {
			if *at == back {
				*at, back.nextDirty, c.dirty = back.nextDirty, nil, back
				break
			}
		}
	}
	c.mu.Unlock()
	for dirty != nil {
		w := dirty
		dirty, w.nextDirty = w.nextDirty, nil
		w.uncork()
	}
}

// add reports whether w may hold messages back; a later Release then writes them.
// The caller holds w.mu; Release takes w.mu only without c.mu.
func (c *Cork) add(w *Writer) bool {
	if c == nil || c.delays.Load() == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.delays.Load() == 0 {
		return false
	}
	w.nextDirty, c.dirty = c.dirty, w
	return true
}
