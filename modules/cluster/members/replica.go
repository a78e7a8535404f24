package members

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
)

// Bucket is the name of the bucket for members and leases.
const Bucket = "state"

// The times of the protocol, the same in every replica of a cluster. doc.go explains them.
const (
	// HeartbeatInterval is the interval of heartbeats.
	HeartbeatInterval = time.Second
	// Validity is how long a replica may run its work after it sent a heartbeat that
	// arrived.
	Validity = 12 * time.Second
	// TTL is the time without news after which a member expires.
	TTL = 15 * time.Second
	// Reconnect is how long Take waits for a store that cannot be reached: a connection to
	// another node takes a second or two.
	Reconnect = 5 * time.Second
	// addressTTL is how long the address of an expired member is kept.
	addressTTL = 10 * time.Minute

	// suspectAfter is the time without news after which nothing is placed on a member.
	suspectAfter = 2500 * time.Millisecond
	// tick is the interval of checks that depend only on time.
	tick = 250 * time.Millisecond
	// answer is how long to wait for an answer of the store.
	answer = 2500 * time.Millisecond
	// closeTimeout is how long Close waits for lost leases to be released.
	closeTimeout = 4 * time.Second
)

// ReplicaOptions configure Join.
type ReplicaOptions struct {
	Store   records.Store // the caller closes it
	Name    string        // for people; "" is the ID
	Address string        // host:port where other replicas reach it
	Version string        // of the program

	// Load, if not nil, returns the load of the replica. It must not block.
	Load func() Load
	// Extend, if not nil, is called with the time at which the replica's processes must be
	// killed, whenever it is extended and before a lease is taken that relies on it. Calls may
	// overlap: the latest time counts. It must not block.
	Extend func(until time.Time)
	// Logger is slog.Default if nil.
	Logger *slog.Logger

	clock func() time.Duration // for tests; nil is now
}

// Errors of Take.
var (
	ErrClosed   = errors.New("this replica has left the cluster")
	ErrDraining = errors.New("this replica is draining: nothing new starts here")
)

// A base is shared by the parts of a replica.
type base struct {
	id      string
	since   time.Time // when it joined
	options ReplicaOptions
	logger  *slog.Logger
	clock   func() time.Duration
	bucket  records.Bucket
	ctx     context.Context // of the goroutines

	changed broadcast     // wakes Join, Take, Drain and Close
	beats   chan struct{} // requests an early heartbeat
	sweeps  chan struct{} // requests a check for leases to delete or repair
}

// pause waits for d, for a value of early, or for the end of the replica. It reports whether early
// had a value.
func (b *base) pause(d time.Duration, early <-chan struct{}) bool {
	timer := time.NewTimer(max(0, d))
	defer timer.Stop()
	select {
	case <-early:
		return true
	case <-timer.C:
	case <-b.ctx.Done():
	}
	return false
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// A broadcast wakes everyone who waits for a change.
type broadcast struct {
	mu   sync.Mutex
	next chan struct{}
}

// wait returns a channel that the next wake closes.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// A Replica is this process as a member of a cluster. Its methods may be called from many
// goroutines.
type Replica struct {
	*base
	view      *view
	leases    *leases
	heartbeat *heartbeat

	cancel context.CancelFunc
	tasks  sync.WaitGroup
	close  sync.Once
}

func newReplica(options ReplicaOptions) *Replica {
	b := &base{
		id:      rand.Text()[:16],
		since:   time.Now().UTC().Truncate(time.Second),
		options: options,
		logger:  cmp.Or(options.Logger, slog.Default()),
		clock:   options.clock,
		beats:   make(chan struct{}, 1),
		sweeps:  make(chan struct{}, 1),
	}
	b.options.Name = cmp.Or(b.options.Name, b.id)
	if b.clock == nil {
		b.clock = now
	}
	r := &Replica{base: b, view: newView(b.id, b.logger)}
	r.leases = &leases{base: b, view: r.view, held: map[string]*held{}, taking: map[string]*attempt{}, leaving: make(chan struct{})}
	r.heartbeat = &heartbeat{base: b, leases: r.leases}
	b.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Join makes this process a member. It returns when the others can see it, or with an
// error when ctx ends before. The caller must call Close.
func Join(ctx context.Context, options ReplicaOptions) (*Replica, error) {
	r := newReplica(options)
	var err error
	if r.bucket, err = options.Store.Bucket(ctx, Bucket); err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	listed := make(chan struct{})
	r.run(func() { r.watch(listed) })
	select {
	case <-listed:
	case <-ctx.Done():
		r.stop()
		return nil, fmt.Errorf("join the cluster: %w", context.Cause(ctx))
	}
	for _, task := range []func(){r.heartbeat.run, r.watchValidity, r.sweep, r.expireMembers} {
		r.run(task)
	}
	visible := func() bool {
		valid, _ := r.leases.valid(r.clock())
		return valid && r.view.member(r.id) != nil
	}
	if !r.await(ctx, visible) {
		r.Close()
		return nil, fmt.Errorf("join the cluster: %w", context.Cause(ctx))
	}
	return r, nil
}

// await returns when ready reports true after a change, or false when ctx ends first.
func (b *base) await(ctx context.Context, ready func() bool) bool {
	for {
		changed := b.changed.wait()
		if ready() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// run starts a goroutine that stop waits for.
func (r *Replica) run(task func()) {
	r.tasks.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				r.logger.Error("panic in the cluster's membership: the leases of this replica are lost", "panic", p, "stack", string(debug.Stack()))
				r.cancel() // stops the heartbeats
				r.leases.close()
			}
		}()
		task()
	})
}

// stop ends the goroutines and waits for them.
func (r *Replica) stop() {
	r.cancel()
	r.tasks.Wait()
}

// ID returns the ID of this replica.
func (r *Replica) ID() string { return r.id }

// Member returns the member of an ID.
func (r *Replica) Member(id string) (Member, bool) {
	if m := r.view.member(id); m != nil {
		return m.Member, true
	}
	return Member{}, false
}

// Address returns the address of a replica. An expired replica may be cut off only from the
// store and still hold state that needs no lease: its address is kept for addressTTL.
func (r *Replica) Address(id string) (address string, ok bool) { return r.view.address(id) }

// State returns the state that this replica has seen. Healthy replicas rewrite or delete broken
// records within seconds.
func (r *Replica) State() State { return r.view.state() }

// Degraded reports whether the store cannot be reached, so that nothing new is placed: no
// heartbeat has arrived for longer than an election in the store takes, or the connection
// is known to be lost.
func (r *Replica) Degraded() bool { return r.heartbeat.degraded(r.clock()) }

// Leaving returns a channel that is closed when a member drains, has expired or has lost its
// leases: its work must be looked for elsewhere. The channel of this replica is closed when
// it drains or is closed.
func (r *Replica) Leaving(id string) <-chan struct{} {
	if id == r.id {
		return r.leases.leaving
	}
	if m := r.view.member(id); m != nil {
		return m.leaving
	}
	return closedChannel
}

var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Drain announces that this replica is leaving, so that nothing new is placed here and others
// stop using its work. It returns when all its leases were released, or with an error when
// ctx ends before. Close must follow.
func (r *Replica) Drain(ctx context.Context) error {
	r.leases.drain()
	signal(r.beats)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(ErrClosed) })()
	left := 0
	if r.await(ctx, func() bool { left = r.leases.left(); return left == 0 }) {
		return nil
	}
	return fmt.Errorf("%d leases are still held here: %w", left, context.Cause(ctx))
}

// Close leaves the cluster. Leases that are still held are lost. When they were released, the
// record is deleted, so that others can take them at once. If they are not released within
// four seconds, the record is left to expire.
func (r *Replica) Close() {
	r.close.Do(func() {
		r.leases.drain()
		r.leases.close()
		r.cancel()
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		released := r.await(ctx, func() bool { return r.leases.left() == 0 })
		r.stop()
		if released {
			r.deleteRecord()
		} else {
			r.logger.Warn("leases of this replica are not released: others can take them when it has expired")
		}
	})
}

// deleteRecord deletes the record of this replica. If that fails it expires.
func (r *Replica) deleteRecord() {
	ctx, cancel := context.WithTimeout(context.Background(), answer)
	defer cancel()
	for {
		e, err := r.bucket.Get(ctx, memberKey(r.id))
		if err == nil {
			err = r.bucket.Delete(ctx, memberKey(r.id), e.Revision)
		}
		switch {
		case err == nil, errors.Is(err, records.ErrNotFound):
			return
		case errors.Is(err, records.ErrConflict): // a heartbeat was in progress
		default:
			r.logger.Warn("the cluster's state still names this replica, until it expires", "err", err)
			return
		}
	}
}
