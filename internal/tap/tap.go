// Package tap shows the messages between hosts, dynmcp and upstreams to watchers. Without watchers
// a message costs the load of a pointer.
package tap

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A Connection identifies the connection of a message: to a host, or to an upstream.
type Connection struct {
	Session string // of the host, "" for an upstream
	Server  string // the upstream, or the only one that the session is about
	Number  int64  // of a connection to an upstream
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
type Watcher func(c Connection, in bool, pieces [][]byte)

// A Tap passes messages to its watchers. A nil Tap has none.
type Tap struct {
	connections atomic.Int64
	watchers    atomic.Pointer[[]*Watcher] // nil while there are none

	mu sync.Mutex // held to change watchers
}

// Upstream returns a new connection to an upstream.
func (t *Tap) Upstream(server string) Connection {
	if t == nil {
		return Connection{Server: server}
	}
	return Connection{Server: server, Number: t.connections.Add(1)}
}

// Watched reports whether there are watchers.
func (t *Tap) Watched() bool { return t != nil && t.watchers.Load() != nil }

// Show passes a message in pieces to the watchers: in to dynmcp, or out from it.
func (t *Tap) Show(c Connection, in bool, pieces ...[]byte) {
	if !t.Watched() {
		return
	}
	for _, w := range *t.watchers.Load() {
		(*w)(c, in, pieces)
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
