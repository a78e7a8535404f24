package event

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Connection identifies the connection of a message: to a host, or to an upstream.
type Connection struct {
	Session string // of the host, "" for an upstream
	Server  string // the upstream, or the only one that the session is about
	Number  int64  // of a connection to an upstream
}

// A Message has passed between dynmcp and a host or an upstream.
type Message struct {
	Connection
	At   time.Time
	In   bool // to dynmcp
	Size int
	Text []byte // its beginning, or all of it
}

// Direction returns the name of the direction: "in" to dynmcp, "out" from it.
func (m *Message) Direction() string {
	if m.In {
		return "in"
	}
	return "out"
}

// A Reader reads messages in the order of their connections, and is told how many are missing
// after them. After an error it gets no more.
type Reader interface {
	Read(all []Message, lost int64) error
}

// A Tap passes messages to followers, which do not delay them. Without followers a message costs
// the load of a pointer. A nil Tap has none.
type Tap struct {
	connections atomic.Int64
	followers   atomic.Pointer[[]*Follower] // nil while there are none

	mu sync.Mutex // held to change followers
}

// Upstream returns a new connection to an upstream.
func (t *Tap) Upstream(server string) Connection {
	if t == nil {
		return Connection{Server: server}
	}
	return Connection{Server: server, Number: t.connections.Add(1)}
}

// Watched reports whether there are followers.
func (t *Tap) Watched() bool { return t != nil && t.followers.Load() != nil }

// Show passes a message in pieces to the followers: in to dynmcp, or out from it.
func (t *Tap) Show(c Connection, in bool, pieces ...[]byte) {
	if !t.Watched() {
		return
	}
	for _, f := range *t.followers.Load() {
		if f.limits.Hosts && c.Session == "" {
			continue
		}
		f.take(Message{Connection: c, At: time.Now(), In: in}, pieces)
	}
}

// Limits say what a follower reads.
type Limits struct {
	Text    int // bytes of each message that it reads
	Waiting int // bytes of messages that wait to be read

	Hosts bool // it reads no messages of upstreams
}

// Follow passes the messages from now on to a reader, on a goroutine of its own, until Close.
func (t *Tap) Follow(to Reader, limits Limits) *Follower {
	f := &Follower{tap: t, to: to, limits: limits, wake: make(chan struct{}, 1), done: make(chan struct{})}
	t.change(func(all []*Follower) []*Follower { return append(all, f) })
	go f.run()
	return f
}

func (t *Tap) change(f func([]*Follower) []*Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*Follower
	if now := t.followers.Load(); now != nil {
		all = slices.Clone(*now)
	}
	if all = f(all); len(all) == 0 {
		t.followers.Store(nil)
		return
	}
	t.followers.Store(&all)
}

// A Follower holds messages until they are read.
type Follower struct {
	tap    *Tap
	to     Reader
	limits Limits
	wake   chan struct{} // has room for one
	done   chan struct{}

	mu      sync.Mutex
	waiting []Message
	size    int   // of their texts
	lost    int64 // messages for which there was no room
	closed  bool
	err     error // of the reader
}

// Done is closed when no more messages will be read.
func (f *Follower) Done() <-chan struct{} { return f.done }

// Close returns when the messages that passed before are read, with the error of the reader.
func (f *Follower) Close() error {
	f.close()
	f.ring()
	<-f.done
	return f.err
}

func (f *Follower) close() {
	f.tap.change(func(all []*Follower) []*Follower {
		return slices.DeleteFunc(all, func(one *Follower) bool { return one == f })
	})
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
}

// take holds a message, if there is room.
func (f *Follower) take(m Message, pieces [][]byte) {
	for _, piece := range pieces {
		m.Size += len(piece)
	}
	m.Text = make([]byte, 0, min(m.Size, f.limits.Text))
	for _, piece := range pieces {
		m.Text = append(m.Text, piece[:min(len(piece), cap(m.Text)-len(m.Text))]...)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return
	case f.size+len(m.Text) > f.limits.Waiting:
		f.lost++
		return
	}
	f.waiting, f.size = append(f.waiting, m), f.size+len(m.Text)
	f.ring()
}

func (f *Follower) ring() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *Follower) run() {
	defer close(f.done)
	for range f.wake {
		f.mu.Lock()
		waiting, lost, last := f.waiting, f.lost, f.closed
		f.waiting, f.size, f.lost = nil, 0, 0
		f.mu.Unlock()
		if f.err = f.to.Read(waiting, lost); f.err != nil || last {
			f.close()
			return
		}
	}
}
