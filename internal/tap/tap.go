// Package tap shows the messages between hosts, dynmcp and upstreams to watchers. Without watchers
// a message costs the load of a pointer.
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

// Direction returns the name of a direction: "in" to dynmcp, "out" from it.
func Direction(in bool) string {
	if in {
		return "in"
	}
	return "out"
}

// A Watcher is called with each message, in the order of the connection. It must not block, or
// keep the pieces.
type Watcher func(peer Peer, in bool, pieces [][]byte)

// A Tap passes messages to its watchers. A nil Tap has none.
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

// Watched reports whether there are watchers.
func (t *Tap) Watched() bool { return t != nil && t.watchers.Load() != nil }

// Show passes a message in pieces to the watchers: in from the peer, or out to it.
func (t *Tap) Show(peer Peer, in bool, pieces ...[]byte) {
	if !t.Watched() {
		return
	}
	for _, w := range *t.watchers.Load() {
		(*w)(peer, in, pieces)
	}
}

// Watch calls w with each message from now on, until stop. w may still be called while stop runs.
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
