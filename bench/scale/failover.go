package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/procs"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
	"github.com/dynmcp/dynmcp/modules/cluster/members"
)

// traffic counts the requests of replicas to the shared state, and its notifications.
type traffic struct{ reads, writes, written, told, toldBytes atomic.Int64 }

// counted is a store that counts its traffic.
type counted struct {
	*memkv.Connection
	*traffic
}

type countedBucket struct {
	records.Bucket
	*traffic
}

func (c counted) Bucket(ctx context.Context, name string) (records.Bucket, error) {
	b, err := c.Connection.Bucket(ctx, name)
	return countedBucket{b, c.traffic}, err
}

func (b countedBucket) Get(ctx context.Context, key string) (records.Record, error) {
	b.reads.Add(1)
	return b.Bucket.Get(ctx, key)
}

func (b countedBucket) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	b.wrote(key, value)
	return b.Bucket.Create(ctx, key, value)
}

func (b countedBucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	b.wrote(key, value)
	return b.Bucket.Update(ctx, key, value, revision)
}

func (b countedBucket) Delete(ctx context.Context, key string, revision uint64) error {
	b.wrote(key, nil)
	return b.Bucket.Delete(ctx, key, revision)
}

func (b countedBucket) wrote(key string, value []byte) {
	b.writes.Add(1)
	b.written.Add(int64(len(key) + len(value)))
}

func (b countedBucket) Watch(ctx context.Context, prefix string, changed func(records.Record), ready func()) error {
	return b.Bucket.Watch(ctx, prefix, func(e records.Record) {
		b.told.Add(1)
		b.toldBytes.Add(int64(len(e.Key) + len(e.Value)))
		changed(e)
	}, ready)
}

// simulated is a cluster with all replicas in this process.
type simulated struct {
	traffic traffic
	links   []*memkv.Connection
	ctx     context.Context // leases are held until it ends
	stop    context.CancelFunc
	holding sync.WaitGroup

	mu       sync.Mutex
	replicas []*members.Replica // only start adds to it
	until    []time.Time        // how long each replica may run its servers
	alive    []int              // indices of the replicas that were not cut off
}

// start joins replicas and places servers.
func start(replicas, servers int) (*simulated, error) {
	s := &simulated{until: make([]time.Time, replicas)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	memory := memkv.New()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	for i, m := range fleet(0, replicas) {
		link := memory.Connect()
		r, err := members.Join(s.ctx, members.ReplicaOptions{Store: counted{link, &s.traffic}, Name: m.Name, Address: strconv.Itoa(i), Version: "0.3.0", Logger: quiet,
			Extend: func(until time.Time) {
				s.mu.Lock()
				defer s.mu.Unlock()
				if until.After(s.until[i]) {
					s.until[i] = until
				}
			},
			Load: func() members.Load { return members.Load{Sessions: 100, Servers: 10, Calls: 10} }})
		if err != nil {
			s.end()
			return nil, err
		}
		s.links = append(s.links, link)
		s.mu.Lock()
		s.replicas, s.alive = append(s.replicas, r), append(s.alive, i)
		s.mu.Unlock()
	}
	for i := range servers {
		m, _ := s.replicas[0].Where(server(i))
		holder := slices.IndexFunc(s.replicas, func(r *members.Replica) bool { return r.ID() == m.ID })
		if _, err := s.hold(s.replicas[holder], server(i)); err != nil {
			s.end()
			return nil, err
		}
	}
	return s, nil
}

// hold takes a lease, and releases it when it is lost or s.ctx ends. It returns the
// time when it had the lease.
func (s *simulated) hold(r *members.Replica, name string) (time.Time, error) {
	var held *members.HeldError
	for {
		lease, err := r.Take(s.ctx, name)
		switch {
		case err == nil:
			taken := time.Now()
			s.holding.Go(func() {
				select {
				case <-lease.Lost():
				case <-s.ctx.Done():
				}
				lease.Release()
			})
			return taken, nil
		case !errors.As(err, &held):
			return time.Time{}, err
		}
		// A call retries as well if it cannot reach the holder.
		select {
		case <-time.After(50 * time.Millisecond):
		case <-s.ctx.Done():
			return time.Time{}, s.ctx.Err()
		}
	}
}

// end closes all replicas.
func (s *simulated) end() {
	s.stop()
	s.holding.Wait()
	var closing sync.WaitGroup
	for _, r := range s.replicas {
		closing.Go(r.Close)
	}
	closing.Wait()
}

// A loss is the failure of the replica of one server.
type loss struct {
	after time.Duration // until another replica had the lease
	apart time.Duration // from the end of the old replica's right to run it until then
}

// fail cuts a random replica off without notice, which looks like its death to the
// others, and returns the losses of its servers.
func (s *simulated) fail() ([]loss, error) {
	s.mu.Lock()
	if len(s.alive) < 2 {
		s.mu.Unlock()
		return nil, nil
	}
	which := rand.IntN(len(s.alive))
	victim := s.alive[which]
	s.alive = slices.Delete(s.alive, which, which+1)
	s.mu.Unlock()
	id := s.replicas[victim].ID()
	var names []string
	for _, l := range s.replicas[victim].State().Leases {
		if l.Owner == id {
			names = append(names, l.Name)
		}
	}
	began := time.Now()
	s.links[victim].Cut()
	losses := make([]loss, len(names))
	failed := make([]error, len(names))
	var taking sync.WaitGroup
	for i, name := range names {
		taking.Go(func() {
			taken, err := s.hold(s.replicas[s.any()], name) // as if the next call arrived there
			for errors.Is(err, records.ErrUnavailable) {
				taken, err = s.hold(s.replicas[s.any()], name) // that replica has failed in the meantime
			}
			s.mu.Lock()
			until := s.until[victim]
			s.mu.Unlock()
			losses[i], failed[i] = loss{taken.Sub(began), taken.Sub(until)}, err
			if err == nil && taken.Before(until) {
				failed[i] = fmt.Errorf("%s was taken while its holder had it", name)
			}
		})
	}
	taking.Wait()
	return losses, errors.Join(failed...)
}

// any returns the index of a replica that has not failed.
func (s *simulated) any() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive[rand.IntN(len(s.alive))]
}

// failing lets count replicas fail, either together, at random times within ten seconds,
// or one after the other. It returns the losses of their servers.
func (s *simulated) failing(count int, together bool) (all []loss, err error) {
	var mu sync.Mutex
	var failing sync.WaitGroup
	for range count {
		failing.Go(func() {
			if time.Sleep(rand.N(time.Second)); together {
				time.Sleep(rand.N(9 * time.Second))
			}
			losses, failed := s.fail()
			mu.Lock()
			defer mu.Unlock()
			all, err = append(all, losses...), errors.Join(err, failed)
		})
		if !together {
			failing.Wait()
		}
	}
	failing.Wait()
	return all, err
}

func printLosses(w io.Writer, replicas, servers int, failed string, all []loss) {
	seconds := make([]float64, len(all))
	apart := time.Hour
	for i, l := range all {
		seconds[i], apart = l.after.Seconds(), min(apart, l.apart)
	}
	if slices.Sort(seconds); len(seconds) == 0 {
		seconds, apart = []float64{math.NaN()}, 0 // the replicas had no servers
	}
	fmt.Fprintf(w, "  %8d %8d %16s %8d %8.2f %8.2f %8.2f %8.2f %13.2fs\n", replicas, servers, failed, len(all), seconds[0], seconds[len(seconds)/2], seconds[len(seconds)*99/100], seconds[len(seconds)-1], apart.Seconds())
}

func failover(w io.Writer, kills int) error {
	fmt.Fprintf(w, "fail-over: seconds from a replica's death until another has the lease of its server, and may start it (declared dead after %v of silence, beats every %v);\n"+
		"apart: the time between the end of the dead one's right to run and that\n", members.TTL, members.HeartbeatInterval)
	fmt.Fprintf(w, "  %8s %8s %16s %8s %8s %8s %8s %8s %14s\n", "replicas", "servers", "fail", "lost", "least", "p50", "p99", "most", "apart, least")
	type steady struct {
		replicas                int
		reads, writes, written  float64
		told, toldBytes, micros float64
	}
	var rates []steady
	for _, size := range [][2]int{{3, 30}, {10, 100}, {30, 300}, {100, 1000}} {
		s, err := start(size[0], size[1])
		if err != nil {
			return err
		}
		const quiet = 10 * time.Second
		before := s.traffic.now()
		cpu := procs.CPU(os.Getpid())
		time.Sleep(quiet)
		used := procs.CPU(os.Getpid()) - cpu
		after := s.traffic.now()
		per := func(i int) float64 { return float64(after[i]-before[i]) / quiet.Seconds() }
		rates = append(rates, steady{replicas: size[0], reads: per(0), writes: per(1), written: per(2), told: per(3), toldBytes: per(4),
			micros: float64(used.Microseconds()) / quiet.Seconds() / float64(size[0])})

		// In total, less than half of the replicas fail.
		single := min(5, (size[0]-1)/2)
		together := min(kills, (size[0]-1)/2-single)
		one, failed := s.failing(single, false)
		many, failedToo := s.failing(together, true)
		s.end()
		if err := errors.Join(failed, failedToo); err != nil {
			return err
		}
		printLosses(w, size[0], size[1], fmt.Sprintf("%d, one by one", single), one)
		if together > 0 {
			printLosses(w, size[0], size[1], fmt.Sprintf("%d within 10 s", together), many)
		}
	}
	fmt.Fprintf(w, "\ntraffic: what membership takes when nothing happens, a second; NATS carries each write to two more nodes (R3), and answers it\n")
	fmt.Fprintf(w, "  %8s %8s %8s %12s %14s %12s %22s\n", "replicas", "reads", "writes", "written KB", "told", "told KB", "CPU of a replica, ms")
	for _, r := range rates {
		fmt.Fprintf(w, "  %8d %8.1f %8.1f %12.1f %14.1f %12.1f %22.2f\n", r.replicas, r.reads, r.writes, r.written/1024, r.told, r.toldBytes/1024, r.micros/1e3)
	}
	fmt.Fprintln(w)
	return nil
}

func (t *traffic) now() [5]int64 {
	return [5]int64{t.reads.Load(), t.writes.Load(), t.written.Load(), t.told.Load(), t.toldBytes.Load()}
}
