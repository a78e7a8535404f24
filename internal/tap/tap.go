// Package tap shows the messages between hosts, dynmcp and upstreams to those that watch.
// While nobody does, a message costs the load of a pointer.
package tap

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A Peer is the other end of a message.
type Peer struct {
	Session string // of a host, "" of an upstream
	Server  string // the upstream, or the only one that the session is about
	Conn    int64  // tells the connections to an upstream apart
}

// Direction returns how the direction of a message is written: in to dynmcp, or out of it.
func Direction(in bool) string {
	if in {
		return "in"
	}
	return "out"
}

// A Watcher is told of a message, in the order of the connection. It must not block. The
// pieces are lent.
type Watcher func(peer Peer, in bool, pieces [][]byte)

// A Tap is what messages pass. Nil is one that nobody watches.
type Tap struct {
	connections atomic.Int64
	watchers    atomic.Pointer[[]*Watcher] // nil while there are none

	mu sync.Mutex // held to change watchers
}

// Upstream returns a new connection to an upstream as a peer.
func (t *Tap) Upstream(server string) Peer {
	if t == nil {
		return Peer{Server: server}
	}
	return Peer{Server: server, Conn: t.connections.Add(1)}
}

// Watched reports whether somebody watches.
func (t *Tap) Watched() bool { return t != nil && t.watchers.Load() != nil }

// Show tells the watchers of a message in pieces, in from the peer or out to it.
func (t *Tap) Show(peer Peer, in bool, pieces ...[]byte) {
	if !t.Watched() {
		return
	}
	for _, w := range *t.watchers.Load() {
		(*w)(peer, in, pieces)
	}
}

// Watch has w told of what passes from now on. It may be told of a message that passes while
// stop is called.
func (t *Tap) Watch(w Watcher) (stop func()) {
	t.change(func(all []*Watcher) []*Watcher { return append(all, &w) })
	return func() {
		t.change(func(all []*Watcher) []*Watcher {
			return slices.DeleteFunc(all, func(one *Watcher) bool { return one == &w })
		})
	}
}

func (t *Tap) change(f func([]*Watcher) []*Watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*Watcher
	if now := t.watchers.Load(); now != nil {
		all = slices.Clone(*now)
	}
	if all = f(all); len(all) == 0 {
		t.watchers.Store(nil)
		return
	}
	t.watchers.Store(&all)
}
