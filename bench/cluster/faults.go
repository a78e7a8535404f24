//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/ledger"
)

// A fault is what was done to a node, with the times of its beginning and end as in ledgers.
type fault struct {
	node     *node
	replica  int // its index, -1 of a server of NATS
	kind     string
	from, to int64 // to is when the node worked again
}

// Kinds of faults.
const (
	killed     = "killed"
	stopped    = "stopped"
	ended      = "ended by SIGTERM"
	cutNATS    = "cut off from NATS"
	cutPeers   = "cut off from replicas"
	cutAll     = "cut off"
	mostAbsent = 22 * time.Second
	// leastStopped is the shortest stop of a replica that runs servers: until another replica has
	// taken them over (15 s), while the first would still run them if its guards did not end them.
	leastStopped = 18 * time.Second
)

// A storm injects random faults into nodes until stop is closed.
type storm struct {
	*cluster
	every  time.Duration // between two faults, on average
	steady bool          // NATS has no faults before a replica that runs servers was stopped
	stop   chan struct{}
	first  chan struct{} // closed when a replica that ran servers was stopped
	work   sync.WaitGroup

	mu     sync.Mutex
	faults []fault
	err    error // of a node that does not work again
}

// start begins faults of replicas, one after the other, and concurrently of servers of NATS.
func (s *storm) start() {
	kinds := []string{killed, stopped, ended}
	if s.net.spaces {
		kinds = append(kinds, cutNATS, cutPeers, cutAll)
	}
	s.work.Go(func() { s.blow(s.replicas, true, kinds) })
	natsKinds := []string{killed, stopped, ended}
	if s.net.spaces {
		natsKinds = append(natsKinds, cutNATS)
	}
	s.work.Go(func() {
		if s.steady {
			select {
			case <-s.first:
			case <-s.stop:
			}
		}
		s.blow(s.nats, false, natsKinds)
	})
}

// end stops the storm and waits for the end of the last fault.
func (s *storm) end() ([]fault, error) {
	close(s.stop)
	s.work.Wait()
	return s.faults, s.err
}

// rest waits, and reports whether the storm continues.
func (s *storm) rest(d time.Duration) bool {
	select {
	case <-s.stop:
		return false
	case <-time.After(d):
		return true
	}
}

func (s *storm) blow(nodes []*node, replicas bool, kinds []string) {
	// Every kind occurs once, in random order, before one is repeated. The stop of a replica that
	// runs servers comes first.
	var left []int
	for s.rest(s.every/2 + rand.N(s.every)) {
		if len(left) == 0 {
			left = rand.Perm(len(kinds))
			if first := slices.Index(kinds, stopped); replicas && !s.stoppedOwner() {
				left = append([]int{first}, slices.DeleteFunc(left, func(i int) bool { return i == first })...)
			}
		}
		kind := kinds[left[0]]
		left = left[1:]
		i := rand.IntN(len(nodes))
		replica := -1
		if replicas {
			if kind == stopped {
				i = s.ownerOr(i)
			}
			replica = i
		}
		if err := s.hit(nodes[i], replica, kind); err != nil {
			s.mu.Lock()
			s.err = fmt.Errorf("%s was %s: %w", nodes[i].name, kind, err)
			s.mu.Unlock()
			return
		}
	}
}

// stoppedOwner reports whether a replica that ran servers was stopped.
func (s *storm) stoppedOwner() bool {
	select {
	case <-s.first:
		return true
	default:
		return false
	}
}

// ownerOr returns the replica that runs most of the servers with place "one", or other if none does.
// If no replica that ran servers was stopped yet, it waits for one.
func (s *storm) ownerOr(other int) int {
	owner := s.owner()
	for owner < 0 && !s.stoppedOwner() && s.rest(50*time.Millisecond) {
		owner = s.owner()
	}
	if owner < 0 {
		return other
	}
	return owner
}

// owner returns the replica that runs most of the servers with place "one", -1 if none does.
func (s *storm) owner() int {
	living, err := ledger.Living(s.ledgers(), ledger.Now()-int64(10*ledger.Beat))
	if err != nil {
		return -1
	}
	runs := make([]int, len(s.replicas))
	for _, p := range living {
		if i := slices.IndexFunc(s.replicas, func(n *node) bool { return n.name == p.Replica }); i >= 0 && strings.HasPrefix(p.Server, "one-") {
			runs[i]++
		}
	}
	if most := slices.Max(runs); most > 0 {
		return slices.Index(runs, most)
	}
	return -1
}

// hit injects one fault into a node and waits until the node works again.
func (s *storm) hit(n *node, replica int, kind string) (err error) {
	absent := time.Second + rand.N(mostAbsent-time.Second)
	owns := replica >= 0 && kind == stopped && s.owner() == replica
	if owns {
		absent = leastStopped + rand.N(mostAbsent-leastStopped)
		if s.steady {
			absent = mostAbsent
		}
	}
	f := fault{node: n, replica: replica, kind: kind, from: ledger.Now()}
	cut := map[string][]int{cutNATS: {toNATS}, cutPeers: {toReplicas}, cutAll: {toNATS, toReplicas, toHosts}}[kind]
	switch kind {
	case killed:
		absent /= 3
		err = n.end(syscall.SIGKILL)
	case stopped:
		n.signal(syscall.SIGSTOP)
	case ended:
		absent = rand.N(time.Second)
		err = n.end(syscall.SIGTERM)
	default:
		err = s.net.cut(n.name, cut...)
	}
	if err != nil {
		return err
	}
	if owns {
		time.Sleep(absent) // also if the calls have ended
	} else {
		s.rest(absent)
	}
	switch kind {
	case killed, ended:
		err = n.start()
	case stopped:
		n.signal(syscall.SIGCONT)
	default:
		err = s.net.heal(n.name, cut...)
	}
	if err != nil {
		return err
	}
	err = n.works()
	f.to = ledger.Now() // also if it does not work: failures until now have a reason
	if owns && !s.stoppedOwner() {
		close(s.first)
	}
	s.mu.Lock()
	s.faults = append(s.faults, f)
	s.mu.Unlock()
	fmt.Printf("  %s was %s for %v\n", n.name, kind, time.Duration(f.to-f.from).Round(10*time.Millisecond))
	return err
}
