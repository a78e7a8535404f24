package members

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
)

// kill is how long guards take to kill after their deadline.
const kill = 500 * time.Millisecond

// Replicas on one store are cut off from it, stopped, killed and drained at random, for a long
// virtual time. A ledger records what runs under each name; the entries of a name must never
// overlap. DYNMCP_MODEL_SEEDS replaces the short runs by that many runs of an hour.
func TestNothingRunsTwice(t *testing.T) {
	seeds, minutes := 4, 6
	if n, err := strconv.Atoi(os.Getenv("DYNMCP_MODEL_SEEDS")); err == nil {
		seeds, minutes = n, 60
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, memory: memkv.New(), rand: rand.New(rand.NewPCG(uint64(seed), 20)), began: time.Now()}
				defer w.tasks.Wait()
				for range 3 + seed%5 {
					w.join()
				}
				for end := time.Now().Add(time.Duration(minutes) * time.Minute); time.Now().Before(end) && !t.Failed(); {
					time.Sleep(w.between(0, 6*time.Second))
					w.fault()
				}
				w.settle()
				if !t.Failed() {
					w.failOver()
				}
				for _, n := range w.live() {
					w.leave(n)
				}
				if t.Failed() {
					log := w.log.Bytes()
					t.Logf("%d works; the log's end:\n%s", w.works, log[max(0, len(log)-6000):])
				}
				if w.works < minutes {
					t.Errorf("only %d works ran", w.works)
				}
			})
		})
	}
}

type world struct {
	t      *testing.T
	memory *memkv.Memory
	began  time.Time
	tasks  sync.WaitGroup
	faults sync.WaitGroup

	mu     sync.Mutex
	rand   *rand.Rand
	nodes  []*node
	joined int
	log    bytes.Buffer
	ledger []*work // may still run, or are the last of their names
	works  int
}

// A node is a process with a replica in it.
type node struct {
	w      *world
	name   string
	skew   float64 // how much faster its clock is
	r      *Replica
	ctx    context.Context
	kill   context.CancelFunc
	users  sync.WaitGroup
	conn   *memkv.Connection
	direct *memkv.Connection // carries the requests that arrive late

	mu       sync.Mutex // all below; the world's lock may be taken before
	dead     bool
	faults   map[string]int           // number of active faults, by kind
	gates    map[string]chan struct{} // closed when the last fault of the kind ends
	deadline time.Time                // of the guards
}

// A work ran on a node under a lease.
type work struct {
	node     *node
	name     string
	held     *held
	revision uint64 // when it began
	start    time.Time
	end      time.Time // zero: it runs, unless the guards have killed it
}

func (w *world) between(low, high time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return low + time.Duration(w.rand.Int64N(int64(high-low)))
}

func (w *world) oneIn(n int) bool { return w.between(0, time.Duration(n)) == 0 }

func (w *world) live() []*node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.nodes)
}

func (w *world) anyNode() *node {
	all := w.live()
	if len(all) == 0 {
		return nil
	}
	return all[w.between(0, time.Duration(len(all)))]
}

func (w *world) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(&w.log, "%8.3f "+format+"\n", append([]any{time.Since(w.began).Seconds()}, args...)...)
}

// join starts a replica and its users.
func (w *world) join() {
	n := &node{w: w, conn: w.memory.Connect(), direct: w.memory.Connect(), faults: map[string]int{}, gates: map[string]chan struct{}{}}
	n.skew = float64(w.between(0, 60)-30) / 1000
	w.mu.Lock()
	w.joined++
	n.name = fmt.Sprint("n", w.joined)
	w.mu.Unlock()
	n.ctx, n.kill = context.WithCancel(context.Background())
	w.tasks.Go(func() {
		for n.ctx.Err() == nil {
			ctx, cancel := context.WithTimeout(n.ctx, 20*time.Second)
			r, err := Join(ctx, ReplicaOptions{Store: &nodeStore{n.conn, n}, Name: n.name, Address: n.name, clock: n.clock,
				Extend: n.extend, Logger: slog.New(slog.NewTextHandler(nodeLog{n}, nil))})
			cancel()
			if err != nil {
				time.Sleep(time.Second)
				continue
			}
			n.mu.Lock()
			n.r = r
			n.mu.Unlock()
			w.mu.Lock()
			w.nodes = append(w.nodes, n)
			w.mu.Unlock()
			for range 2 {
				n.users.Go(n.use)
			}
			return
		}
	})
}

type nodeLog struct{ n *node }

func (l nodeLog) Write(p []byte) (int, error) {
	if i := bytes.Index(p, []byte("level=")); i >= 0 && !bytes.Contains(p, []byte("the watch of the cluster's state has ended")) {
		l.n.w.logf("%s %s", l.n.name, bytes.TrimSpace(p[i:]))
	}
	return len(p), nil
}

// pass returns when no fault of a kind is active.
func (n *node) pass(kind string) {
	for {
		n.mu.Lock()
		gate := n.gates[kind]
		n.mu.Unlock()
		if gate == nil {
			return
		}
		<-gate
		time.Sleep(n.w.between(0, 300*time.Millisecond)) // they do not all continue at once
	}
}

// clock blocks while the process is stopped, before and after it is read.
func (n *node) clock() time.Duration {
	n.pass("stopped")
	t := bubbleClock() + time.Duration(float64(time.Since(n.w.began))*n.skew)
	n.pass("stopped")
	return t
}

func (n *node) extend(until time.Time) {
	n.pass("stopped")
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.endKilledLocked()
	n.mu.Lock()
	defer n.mu.Unlock()
	if until.After(n.deadline) {
		n.deadline = until
	}
}

// endKilledLocked ends the works that the guards have killed. The world's lock is held.
func (n *node) endKilledLocked() {
	n.mu.Lock()
	deadline := n.deadline
	n.mu.Unlock()
	for _, work := range n.w.ledger {
		if end := deadline.Add(kill); work.node == n && work.end.IsZero() && !time.Now().Before(deadline) {
			work.end = end
		}
	}
}

// start begins a work, unless the guards refuse.
func (w *world) start(n *node, name string, l *Lease) *work {
	revision := l.Revision()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	n.mu.Lock()
	fenced := n.dead || !now.Before(n.deadline)
	n.mu.Unlock()
	if fenced {
		return nil
	}
	for _, other := range w.ledgerNodes() {
		other.endKilledLocked()
	}
	for _, other := range w.ledger {
		if other.name != name || other.held == l.held {
			continue
		}
		if other.end.IsZero() || other.end.After(now) {
			w.t.Errorf("%.3f: %s on %s (revision %d) began while it ran on %s (revision %d, since %.3f)", now.Sub(w.began).Seconds(),
				name, n.name, revision, other.node.name, other.revision, other.start.Sub(w.began).Seconds())
		}
		if other.revision >= revision {
			w.t.Errorf("%s has revision %d after %d", name, revision, other.revision)
		}
	}
	started := &work{node: n, name: name, held: l.held, revision: revision, start: now}
	w.ledger = slices.DeleteFunc(w.ledger, func(old *work) bool { return !old.end.IsZero() && old.end.Before(now) })
	w.ledger = append(w.ledger, started)
	w.works++
	return started
}

// ledgerNodes returns the nodes in the ledger, including those that have left w.nodes.
func (w *world) ledgerNodes() []*node {
	var all []*node
	for _, work := range w.ledger {
		if !slices.Contains(all, work.node) {
			all = append(all, work.node)
		}
	}
	return all
}

// end ends a work, and returns how long guards still take for it.
func (w *world) end(work *work) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	work.node.endKilledLocked()
	if work.end.IsZero() {
		work.end = time.Now()
	}
	return time.Until(work.end)
}

var names = []string{"git", "files", "browser"}

// use takes leases and works under them, until the process ends or leaves.
func (n *node) use() {
	w, r := n.w, n.r
	for n.ctx.Err() == nil {
		select {
		case <-time.After(w.between(0, 3*time.Second)):
		case <-n.ctx.Done():
			return
		}
		name := names[w.between(0, time.Duration(len(names)))]
		ctx, cancel := context.WithTimeout(n.ctx, w.between(time.Second, 20*time.Second))
		l, err := r.Take(ctx, name)
		cancel()
		n.pass("stopped")
		if err != nil {
			_, held := errors.AsType[*HeldError](err)
			if !held && !errors.Is(err, ErrDraining) && !errors.Is(err, ErrClosed) && !errors.Is(err, records.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
				w.t.Errorf("take: %v", err)
			}
			if errors.Is(err, ErrDraining) || errors.Is(err, ErrClosed) {
				return
			}
			continue
		}
		if work := w.start(n, name, l); work != nil {
			select {
			case <-l.Lost():
			case <-r.Leaving(r.ID()):
			case <-time.After(w.between(0, 40*time.Second)):
			case <-n.ctx.Done():
				return // crash has ended it
			}
			n.pass("stopped")
			time.Sleep(w.between(0, 300*time.Millisecond)) // it is killed or closes
			n.pass("stopped")
			time.Sleep(w.end(work)) // while guards kill it
		}
		l.Release()
	}
}

// begin begins a fault of a kind; end ends it.
func (n *node) begin(kind string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.faults[kind]++; n.faults[kind] == 1 {
		n.gates[kind] = make(chan struct{})
		if kind == "cut" {
			n.conn.Cut()
		}
	}
}

func (n *node) end(kind string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.faults[kind]--; n.faults[kind] == 0 {
		close(n.gates[kind])
		delete(n.gates, kind)
		if kind == "cut" {
			n.conn.Heal()
		}
	}
}

func (n *node) has(kind string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults[kind] > 0
}

// crash ends a process. Its guards kill what it ran.
func (w *world) crash(n *node) {
	w.mu.Lock()
	w.nodes = slices.DeleteFunc(w.nodes, func(m *node) bool { return m == n })
	n.mu.Lock()
	n.dead = true
	n.mu.Unlock()
	n.endKilledLocked()
	for _, work := range w.ledger {
		if work.node == n && work.end.IsZero() {
			work.end = time.Now().Add(kill)
		}
	}
	w.mu.Unlock()
	w.logf("%s crashes", n.name)
	w.tasks.Go(func() {
		n.kill()
		n.r.cancel()
		n.users.Wait()
		n.r.stop()
	})
}

// leave drains and closes a replica.
func (w *world) leave(n *node) {
	w.mu.Lock()
	w.nodes = slices.DeleteFunc(w.nodes, func(m *node) bool { return m == n })
	w.mu.Unlock()
	w.logf("%s leaves", n.name)
	w.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(n.ctx, w.between(time.Millisecond, 20*time.Second))
		defer cancel()
		_ = n.r.Drain(ctx)
		n.r.Close()
		n.users.Wait()
		n.kill()
		w.logf("%s has left", n.name)
	})
}

// fault begins a random fault, which ends by itself.
func (w *world) fault() {
	n := w.anyNode()
	if n == nil {
		w.join()
		return
	}
	short, long := w.between(500*time.Millisecond, 8*time.Second), w.between(time.Second, 40*time.Second)
	kinds := []string{"stopped", "stopped", "cut", "stalled", "deaf", "behind", "lossy", "lossy", "store", "crash", "leave", "join", "everything", "broken", "broken"}
	kind := kinds[w.between(0, time.Duration(len(kinds)))]
	length := short
	if w.oneIn(4) {
		length = long
	}
	victims := []*node{n}
	switch kind {
	case "crash", "leave":
		if kind == "crash" {
			w.crash(n)
		} else {
			w.leave(n)
		}
		w.faults.Go(func() { time.Sleep(length); w.join() })
		return
	case "broken":
		w.breakRecord()
		return
	case "join":
		if len(w.live()) < 8 {
			w.join()
		}
		return
	case "everything": // all crash at once, and others start
		if w.oneIn(4) {
			all := w.live()
			for _, n := range all {
				w.crash(n)
			}
			for range max(3, min(6, len(all))) {
				w.join()
			}
		}
		return
	case "store": // an election, or worse
		victims, kind = w.live(), "stalled"
		if w.oneIn(3) {
			kind = "cut"
		}
	}
	w.logf("%s for %v: %d, of them %s", kind, length, len(victims), victims[0].name)
	for _, n := range victims {
		n.begin(kind)
	}
	w.faults.Go(func() {
		time.Sleep(length)
		for _, n := range victims {
			n.end(kind)
		}
	})
}

// breakRecord corrupts a random record.
func (w *world) breakRecord() {
	bucket, err := w.memory.Connect().Bucket(w.t.Context(), Bucket)
	if err != nil {
		w.t.Error(err)
		return
	}
	list, err := records.List(w.t.Context(), bucket, "")
	if err != nil || len(list) == 0 {
		return
	}
	keys := slices.Sorted(maps.Keys(list))
	one := func() string { return keys[w.between(0, time.Duration(len(keys)))] }
	key := one()
	value := list[key].Value
	switch kind := w.between(0, 8); {
	case kind == 0:
		value = nil
	case kind == 1:
		value = []byte("{}")
	case kind == 2:
		value = value[:len(value)/2]
	case kind == 3:
		if other := one(); other != key {
			value = list[other].Value
			break
		}
		fallthrough
	default:
		bit := w.between(0, time.Duration(8*max(1, len(value))))
		if len(value) == 0 {
			return // it was broken so before
		}
		value[bit/8] ^= 1 << (bit % 8)
	}
	if value == nil {
		value = []byte{}
	}
	w.logf("broken: %s is %q", key, value)
	if _, err := bucket.Put(w.t.Context(), key, value); err != nil {
		w.t.Error(err)
	}
}

// settle waits for all faults to end, and checks that the replicas recover.
func (w *world) settle() {
	w.faults.Wait()
	time.Sleep(4 * TTL)
	for len(w.live()) < 3 {
		w.join()
		time.Sleep(time.Minute)
	}
	w.logf("all faults have ended")
	all := w.live()
	for _, n := range all {
		if !n.r.Valid() || n.r.Degraded() || len(n.r.Members()) != len(all) {
			w.t.Errorf("%s: valid %t, degraded %t, %d members of %d", n.name, n.r.Valid(), n.r.Degraded(), len(n.r.Members()), len(all))
		}
	}
}

// failOver kills a replica that holds leases. Others must have taken them within the bound.
func (w *world) failOver() {
	n := w.anyNode()
	mine := map[string]*Lease{}
	for _, name := range []string{"x", "y", "z"} {
		l, err := n.r.Take(w.t.Context(), name)
		if err != nil {
			w.t.Error(err)
			return
		}
		mine[name] = l
	}
	time.Sleep(w.between(3*HeartbeatInterval, 5*HeartbeatInterval))
	w.crash(n)
	killed := time.Now()
	for name := range mine {
		w.tasks.Go(func() {
			for {
				l, err := w.anyNode().r.Take(context.Background(), name)
				if err == nil {
					l.Release()
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if took := time.Since(killed); took > failover {
				w.t.Errorf("%s was taken %v after its replica was killed", name, took)
			}
		})
	}
	time.Sleep(2 * TTL)
}

// A nodeStore is a node's connection to the store.
type nodeStore struct {
	*memkv.Connection
	n *node
}

func (s *nodeStore) Bucket(ctx context.Context, name string) (records.Bucket, error) {
	b, err := s.Connection.Bucket(ctx, name)
	if err != nil {
		return nil, err
	}
	direct, err := s.n.direct.Bucket(ctx, name)
	return &nodeBucket{b, direct, s.n}, err
}

// A nodeBucket reaches the store over a bad network: answers are late or lost, and requests
// may arrive after their caller gave up.
type nodeBucket struct {
	records.Bucket
	direct records.Bucket
	n      *node
}

func (b *nodeBucket) Get(ctx context.Context, key string) (records.Record, error) {
	return ask(ctx, b, func(ctx context.Context, to records.Bucket) (records.Record, error) { return to.Get(ctx, key) })
}

func (b *nodeBucket) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	return ask(ctx, b, func(ctx context.Context, to records.Bucket) (uint64, error) { return to.Create(ctx, key, value) })
}

func (b *nodeBucket) Update(ctx context.Context, key string, value []byte, at uint64) (uint64, error) {
	return ask(ctx, b, func(ctx context.Context, to records.Bucket) (uint64, error) { return to.Update(ctx, key, value, at) })
}

func (b *nodeBucket) Delete(ctx context.Context, key string, revision uint64) error {
	_, err := ask(ctx, b, func(ctx context.Context, to records.Bucket) (any, error) { return nil, to.Delete(ctx, key, revision) })
	return err
}

func ask[T any](ctx context.Context, b *nodeBucket, do func(context.Context, records.Bucket) (T, error)) (nothing T, err error) {
	n, w := b.n, b.n.w
	n.pass("stopped")
	time.Sleep(w.between(0, 20*time.Millisecond))
	n.mu.Lock()
	dead := n.dead
	n.mu.Unlock()
	if dead || n.has("stalled") && !w.oneIn(10) {
		<-ctx.Done()
		return nothing, records.ErrUnavailable
	}
	if n.has("stalled") || n.has("lossy") && w.oneIn(3) { // the request arrives later
		w.tasks.Go(func() {
			time.Sleep(w.between(0, 12*time.Second))
			_, _ = do(context.Background(), b.direct)
		})
		<-ctx.Done()
		return nothing, records.ErrUnavailable
	}
	answer, err := do(ctx, b.Bucket)
	if n.has("lossy") && w.oneIn(3) {
		<-ctx.Done()
		answer, err = nothing, records.ErrUnavailable
	}
	time.Sleep(w.between(0, 20*time.Millisecond))
	n.pass("stopped")
	return answer, err
}

// Watch blocks while the process is stopped or deaf, and is late while it is behind.
func (b *nodeBucket) Watch(ctx context.Context, prefix string, changed func(records.Record), ready func()) error {
	return b.Bucket.Watch(ctx, prefix, func(e records.Record) {
		b.n.pass("deaf")
		if b.n.has("behind") {
			time.Sleep(b.n.w.between(0, time.Second))
		}
		b.n.pass("stopped")
		changed(e)
	}, ready)
}
