// Package memkv is a store in memory, for tests in which several connections represent as many
// replicas.
package memkv

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
)

// Memory is the state that all connections share.
type Memory struct {
	mu      sync.Mutex
	buckets map[string]*contents
}

// New returns a memory without buckets.
func New() *Memory { return &Memory{buckets: map[string]*contents{}} }

// Connect returns a store with this state.
func (m *Memory) Connect() *Connection {
	return &Connection{memory: m, change: make(chan struct{})}
}

// A Connection is a records.Store with the state of a Memory. It can be cut off from it.
type Connection struct {
	memory *Memory

	mu        sync.Mutex
	off       bool // it was cut off
	closed    bool
	change    chan struct{} // closed when one of these has changed, then another
	connected func(bool)
}

var _ records.Store = (*Connection)(nil)

// Cut disconnects the connection: requests fail with records.ErrUnavailable, and watches pause.
func (c *Connection) Cut() { c.set(func() { c.off = true }) }

// Heal reverses Cut.
func (c *Connection) Heal() { c.set(func() { c.off = false }) }

// Close ends the watches.
func (c *Connection) Close() error {
	c.set(func() { c.closed = true })
	return nil
}

func (c *Connection) set(set func()) {
	c.mu.Lock()
	before := c.off || c.closed
	set()
	after := c.off || c.closed
	close(c.change)
	c.change = make(chan struct{})
	connected := c.connected
	c.mu.Unlock()
	if before != after && connected != nil {
		connected(!after)
	}
}

// Connected reports whether the connection is neither cut off nor closed.
func (c *Connection) Connected() bool { return c.err() == nil }

// OnConnected sets the function that Cut, Heal and Close call.
func (c *Connection) OnConnected(connected func(bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connected = connected
}

func (c *Connection) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return fmt.Errorf("%w: it was closed", records.ErrUnavailable)
	case c.off:
		return fmt.Errorf("%w: it was cut off", records.ErrUnavailable)
	}
	return nil
}

// Bucket returns a bucket of the memory.
func (c *Connection) Bucket(_ context.Context, name string) (records.Bucket, error) {
	if err := c.err(); err != nil {
		return nil, err
	}
	m := c.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.buckets[name]
	if r == nil {
		r = &contents{byKey: map[string]records.Record{}, watches: map[*watch]bool{}}
		m.buckets[name] = r
	}
	return &bucket{Connection: c, of: r}, nil
}

// contents are the records of a bucket, for all connections.
type contents struct {
	mu       sync.Mutex
	revision uint64
	byKey    map[string]records.Record
	watches  map[*watch]bool
}

// A watch holds the changes that were not delivered yet.
type watch struct {
	prefix  string
	pending map[string]records.Record // the last change of each record, under the lock of contents
	wake    chan struct{}             // has room for one
}

type bucket struct {
	*Connection
	of  *contents
	ttl time.Duration // of written records, 0 for none
}

func (b *bucket) WithTTL(ttl time.Duration) records.Bucket {
	return &bucket{b.Connection, b.of, ttl}
}

func (b *bucket) Get(ctx context.Context, key string) (records.Record, error) {
	if err := cmp.Or(ctx.Err(), b.err(), records.Check(key, nil)); err != nil {
		return records.Record{}, err
	}
	r := b.of
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.byKey[key]
	if !ok {
		return records.Record{}, records.ErrNotFound
	}
	e.Value = bytes.Clone(e.Value)
	return e, nil
}

func (b *bucket) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	return b.set(ctx, key, value, func(at uint64) bool { return at == 0 })
}

func (b *bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return b.set(ctx, key, value, func(at uint64) bool { return at == revision && at != 0 })
}

func (b *bucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return b.set(ctx, key, value, func(uint64) bool { return true })
}

// set changes a record if fits accepts its present revision, 0 if absent.
func (b *bucket) set(ctx context.Context, key string, value []byte, fits func(at uint64) bool) (uint64, error) {
	if err := cmp.Or(ctx.Err(), b.err(), records.Check(key, value)); err != nil {
		return 0, err
	}
	r := b.of
	r.mu.Lock()
	defer r.mu.Unlock()
	if !fits(r.byKey[key].Revision) {
		return 0, records.ErrConflict
	}
	r.revision++
	e := records.Record{Key: key, Value: append([]byte{}, value...), Revision: r.revision, Written: time.Now()}
	r.byKey[key] = e
	r.notify(e)
	if b.ttl > 0 {
		time.AfterFunc(b.ttl, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.byKey[key].Revision == e.Revision {
				delete(r.byKey, key)
			}
		})
	}
	return e.Revision, nil
}

func (b *bucket) Delete(ctx context.Context, key string, revision uint64) error {
	if err := cmp.Or(ctx.Err(), b.err(), records.Check(key, nil)); err != nil {
		return err
	}
	r := b.of
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.byKey[key].Revision
	switch {
	case revision != 0 && at != revision:
		return records.ErrConflict
	case at == 0:
		return nil
	}
	r.revision++
	delete(r.byKey, key)
	r.notify(records.Record{Key: key, Revision: r.revision})
	return nil
}

// notify passes a change to all watches. The lock is held.
func (r *contents) notify(e records.Record) {
	for w := range r.watches {
		if strings.HasPrefix(e.Key, w.prefix) {
			w.pending[e.Key] = e
			select {
			case w.wake <- struct{}{}:
			default: // it is awake
			}
		}
	}
}

func (b *bucket) Watch(ctx context.Context, prefix string, changed func(records.Record), ready func()) error {
	r := b.of
	w := &watch{prefix: prefix, pending: map[string]records.Record{}, wake: make(chan struct{}, 1)}
	r.mu.Lock()
	for key, e := range r.byKey {
		if strings.HasPrefix(key, prefix) {
			w.pending[key] = e
		}
	}
	r.watches[w] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watches, w)
	}()
	for {
		b.mu.Lock()
		off, closed, change := b.off, b.closed, b.change
		b.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return err
		}
		if closed {
			return b.err()
		}
		if !off {
			r.mu.Lock()
			pending := w.pending
			w.pending = map[string]records.Record{}
			r.mu.Unlock()
			entries := make([]records.Record, 0, len(pending))
			for _, e := range pending {
				entries = append(entries, e)
			}
			slices.SortFunc(entries, func(a, b records.Record) int { return cmp.Compare(a.Revision, b.Revision) })
			for _, e := range entries {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				e.Value = bytes.Clone(e.Value)
				changed(e)
			}
			if ready != nil {
				ready()
				ready = nil
			}
		}
		select {
		case <-w.wake:
		case <-change:
		case <-ctx.Done():
		}
	}
}
