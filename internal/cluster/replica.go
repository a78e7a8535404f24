package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// The times of the protocol, the same in every replica of a cluster.
const (
	// Beat is how often a member renews its record.
	Beat = time.Second
	// Overdue is the age of the last beat at which promises are asked for.
	Overdue = 1500 * time.Millisecond
	// Validity is how long a replica may run what it holds after it sent a beat that
	// arrived, or asked for promises that came.
	Validity = 2500 * time.Millisecond
	// TTL is how long a member was not heard of when it is declared dead.
	TTL = 4 * time.Second
	// Patience is how long promises stand in for beats, while the store is away.
	Patience = 15 * time.Second
	// Reconnect is how long what is to be placed waits for a store that cannot be reached:
	// a connection that is made again, to another node, takes a second or two.
	Reconnect = 5 * time.Second

	// Remembered is how long it is known where a member was reached that was declared dead.
	Remembered = 10 * time.Minute

	// settled is when, after the end of a replica's validity, nothing of it runs: its
	// guards kill what they have started by then.
	settled = TTL - Validity
	// tick is how often it is looked at what depends on the time alone.
	tick = 250 * time.Millisecond
	// answer is how long an answer of the store is waited for. The time serves beats; what
	// else is asked is asked again.
	answer = Validity
)

// Options are those of Join.
type Options struct {
	Store   kv.Store // which stays the caller's to close
	Name    string   // what people call the replica; "" is its ID
	Address string   // host:port where other replicas reach it
	Version string   // of the program

	// Load, where there is one, says what the replica has to do. It must not block.
	Load func() Load
	// Extend, where there is one, is called with the time at which what the replica runs
	// is to be killed, when that moves on and before a lease is taken that relies on it.
	// Calls may overlap: the latest time counts. It must not block.
	Extend func(until time.Time)
	// Ask has the replica at an address Answer a question. Nil: nobody is asked, so that
	// this replica is not valid while the store is away, and takes long to declare one of
	// several others dead.
	Ask func(ctx context.Context, address string, q Question) error
	// Logger is slog.Default where it is nil.
	Logger *slog.Logger

	clock func() time.Duration // of tests; nil is now
}

// Errors of Take.
var (
	ErrClosed   = errors.New("this replica has left the cluster")
	ErrDraining = errors.New("this replica drains: nothing begins here")
)

// A Replica is this process as a member of a cluster. Its methods may be called from many
// goroutines.
type Replica struct {
	id      string
	since   time.Time // when it joined
	options Options
	logger  *slog.Logger
	clock   func() time.Duration
	bucket  kv.Bucket

	ctx    context.Context // of the goroutines
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	close  sync.Once
	beats  chan struct{} // asks for a beat before its time
	sweeps chan struct{} // asks for a look at which leases to delete or mend
	deaths chan struct{} // asks for a look at who is dead

	mu      sync.Mutex
	changed chan struct{} // closed and made anew when what Take and Drain wait for may have come
	view    view
	seen    uint64 // the latest revision of it

	// The record.
	revision uint64        // that it is known to have; 0: there is none
	epoch    uint64        // that was last written, or tried
	beat     uint64        // how many were tried
	sent     time.Duration // when the last one that arrived was sent
	contact  time.Duration // since when they arrived without a gap
	silent   bool          // none has arrived for long, which was logged
	draining bool
	closed   bool

	// Validity.
	live     bool                // the epoch is: until has not passed, nothing was lost
	until    time.Duration       // valid so long; it only grows while the epoch is live
	electors map[string][]Member // the others in Knows of the last beat that arrived and of all tries since, by Knows
	promises map[string]*promise // by ID, those given to us
	agreed   map[string]uint64   // by ID, the revision at which we agreed that it is dead: it is promised nothing at that

	// Leases, by key.
	leases     map[string]*held
	taking     map[string]chan struct{} // closed when the Take that is at it has ended
	unreleased int                      // lost ones whose work may not have ended yet
	stuck      bool                     // there are some for long, which was logged
	leaving    chan struct{}            // closed when this replica drains or is closed
}

// Join makes this process a member. It returns when the others can see it, or with an
// error when ctx ends before. The caller must call Close.
func Join(ctx context.Context, options Options) (*Replica, error) {
	r := &Replica{
		id:       rand.Text()[:16],
		since:    time.Now().UTC().Truncate(time.Second),
		options:  options,
		logger:   options.Logger,
		clock:    options.clock,
		beats:    make(chan struct{}, 1),
		sweeps:   make(chan struct{}, 1),
		deaths:   make(chan struct{}, 1),
		changed:  make(chan struct{}),
		view:     newView(),
		electors: map[string][]Member{},
		promises: map[string]*promise{},
		agreed:   map[string]uint64{},
		leases:   map[string]*held{},
		taking:   map[string]chan struct{}{},
		leaving:  make(chan struct{}),
	}
	if r.options.Name == "" {
		r.options.Name = r.id
	}
	if r.logger == nil {
		r.logger = slog.Default()
	}
	if r.clock == nil {
		r.clock = now
	}
	bucket, err := options.Store.Bucket(ctx, Bucket)
	if err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	r.bucket = bucket
	r.ctx, r.cancel = context.WithCancel(context.Background())
	listed := make(chan struct{})
	r.run(func() { r.watch(listed) })
	select {
	case <-listed:
	case <-ctx.Done():
		r.stop()
		return nil, fmt.Errorf("join the cluster: %w", context.Cause(ctx))
	}
	r.run(r.beatOn)
	r.run(r.tickOn)
	r.run(r.sweepOn)
	r.run(r.buryOn)
	for {
		at := r.clock()
		r.mu.Lock()
		valid, changed := r.validLocked(at), r.changed
		_, seen := r.view.members[r.id]
		r.mu.Unlock()
		if valid && seen {
			return r, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			r.Close()
			return nil, fmt.Errorf("join the cluster: %w", context.Cause(ctx))
		}
	}
}

// Bucket is the name of the bucket that members and leases are in.
const Bucket = "state"

// run starts a goroutine that stop waits for.
func (r *Replica) run(task func()) {
	r.tasks.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				r.logger.Error("panic in the cluster's membership: what this replica holds is lost", "panic", p, "stack", string(debug.Stack()))
				r.cancel() // no beat is sent any more
				r.mu.Lock()
				defer r.mu.Unlock()
				r.closed = true
				r.loseLocked()
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

func sortMembers(all []Member) {
	slices.SortFunc(all, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
}

// Member returns the member of an ID.
func (r *Replica) Member(id string) (Member, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.view.members[id]; m != nil {
		return m.Member, true
	}
	return Member{}, false
}

// Address returns where a replica is reached. One that was declared dead may be cut off
// from the store alone, and still have what needs no lease: it is remembered for a while.
func (r *Replica) Address(id string) (address string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.view.members[id]; m != nil {
		return m.Address, true
	}
	d, ok := r.view.gone[id]
	return d.address, ok
}

// Leases returns the leases that members hold, by name.
func (r *Replica) Leases() []LeaseInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []LeaseInfo
	for _, l := range r.view.leases {
		if !l.deleted && r.view.holds(l) {
			all = append(all, l.LeaseInfo)
		}
	}
	sortLeases(all)
	return all
}

func sortLeases(all []LeaseInfo) {
	slices.SortFunc(all, func(a, b LeaseInfo) int { return cmp.Compare(a.Name, b.Name) })
}

func (r *Replica) validLocked(at time.Duration) bool { return r.live && at < r.until }

// Degraded reports whether the store cannot be reached, so that nothing new is placed: no
// beat has arrived for longer than an election in the store takes, or the connection is
// known to be gone.
func (r *Replica) Degraded() bool {
	at := r.clock()
	connected := r.options.Store.Connected()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.degradedLocked(at, connected)
}

func (r *Replica) degradedLocked(at time.Duration, connected bool) bool {
	return at >= r.sent+Patience || at >= r.sent+Validity && !connected
}

// Leaving returns a channel that is closed when a member drains, or is gone with all that
// it held: what has it do something looks for another. For this replica it is closed when
// it drains or is closed.
func (r *Replica) Leaving(id string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id == r.id {
		return r.leaving
	}
	if m := r.view.members[id]; m != nil {
		return m.leaving
	}
	return closedChannel
}

var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Drain tells the others that this replica is leaving, so that nothing new is placed
// here and they stop using what runs here, and returns when all its leases were released,
// or with an error when ctx ends before. Close must follow.
func (r *Replica) Drain(ctx context.Context) error {
	r.mu.Lock()
	r.leaveLocked()
	r.mu.Unlock()
	kick(r.beats)
	for {
		r.mu.Lock()
		left, changed := len(r.leases)+len(r.taking)+r.unreleased, r.changed
		r.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("%d leases are still held here: %w", left, context.Cause(ctx))
		}
	}
}

func (r *Replica) leaveLocked() {
	if !r.draining {
		r.draining = true
		close(r.leaving)
		r.wakeLocked()
	}
}

// Close leaves the cluster. Leases that are still held are lost; when their work has
// ended and they were released the record is deleted, so that others can take them at
// once. It returns when nothing of the replica is left, after about four seconds at the
// latest where holders do not release or the store cannot be reached.
func (r *Replica) Close() {
	r.close.Do(func() {
		r.mu.Lock()
		r.leaveLocked()
		r.closed = true
		r.loseLocked()
		r.mu.Unlock()
		for {
			at := r.clock()
			r.mu.Lock()
			left, free, changed := r.unreleased, r.until+settled, r.changed
			r.mu.Unlock()
			if left == 0 || at >= free {
				break
			}
			select {
			case <-changed:
			case <-time.After(min(free-at, tick)):
			}
		}
		r.stop()
		r.forget()
	})
}

// forget deletes the record. When that fails the others declare us dead.
func (r *Replica) forget() {
	ctx, cancel := context.WithTimeout(context.Background(), answer)
	defer cancel()
	for {
		e, err := r.bucket.Get(ctx, memberKey(r.id))
		if err == nil {
			err = r.bucket.Delete(ctx, memberKey(r.id), e.Revision)
		}
		switch {
		case err == nil, errors.Is(err, kv.ErrNotFound):
			return
		case errors.Is(err, kv.ErrConflict): // a beat that was under way
		default:
			r.logger.Warn("the cluster's state still names this replica, until it is declared dead", "err", err)
			return
		}
	}
}

// wakeLocked wakes those who wait for a change.
func (r *Replica) wakeLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
