package members

import (
	"fmt"
	"sync"
	"time"
)

// A HeldError means that another replica has the lease.
type HeldError struct{ Member Member }

func (e *HeldError) Error() string { return fmt.Sprintf("it runs on replica %q", e.Member.Name) }

// A Lease is the right to run the work that a name stands for. When the lease is lost, its holder
// ends the work at once, and calls Release when nothing of the work is left.
type Lease struct {
	held    *held
	release sync.Once
}

// held is a lease of this replica; all Leases of its name share it.
type held struct {
	leases  *leases
	key     string
	name    string
	granted time.Time
	lost    chan struct{}

	// Guarded by leases.mu.
	revision uint64
	shares   int
	isLost   bool
}

// Lost returns a channel that is closed when the replica may no longer run the work.
func (l *Lease) Lost() <-chan struct{} { return l.held.lost }

// Release reports that the work has ended. Other replicas can take the lease when all Leases
// that share it here were released.
func (l *Lease) Release() { l.release.Do(func() { l.held.leases.release(l.held) }) }

// leases are the leases of this replica, and the time until which it may use them. Its mutex may
// be held while that of the view is taken, but not vice versa.
type leases struct {
	*base
	view *view

	mu         sync.Mutex
	live       bool          // the epoch has begun and not ended
	epoch      uint64        // the last one written, or attempted
	until      time.Duration // the end of validity; it only grows while the epoch is live
	held       map[string]*held
	taking     map[string]*attempt
	unreleased int  // lost leases whose work may still run
	stuck      bool // some were not released for long; this was logged
	draining   bool
	closed     bool
	leaving    chan struct{} // closed when draining is set
}

// A term describes an epoch in a heartbeat.
type term struct {
	epoch    uint64
	live     bool // as of the heartbeat; if false, the heartbeat begins it
	draining bool
	seen     uint64
}

// term returns the epoch for the next heartbeat. ok is false while leases of the previous
// epoch are not released: a heartbeat would free them and extend the guards' deadline.
func (s *leases) term(at time.Duration) (t term, ok bool) {
	s.expire(at)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.live && s.unreleased > 0 {
		if !s.closed && !s.stuck && at >= s.until+TTL {
			s.stuck = true
			s.logger.Warn("this replica stays out of the cluster until its lost leases are released", "leases", s.unreleased)
		}
		return t, false
	}
	s.stuck = false
	if !s.live {
		s.epoch++ // a new one for each attempt, so that none is written twice
	}
	return term{s.epoch, s.live, s.draining, s.seenLocked()}, true
}

// seenLocked returns the revision up to which this replica holds no lease with a broken
// record.
func (s *leases) seenLocked() uint64 {
	seen, broken := s.view.brokenLeases()
	for key, revision := range broken {
		if h := s.held[key]; h != nil && revision > h.revision {
			seen = min(seen, revision-1)
		}
	}
	return seen
}

// extend moves the end of validity after a heartbeat has arrived, and begins its epoch.
func (s *leases) extend(t term, until, at time.Duration) {
	s.expire(at)
	s.mu.Lock()
	if s.live || !t.live {
		s.until = max(s.until, until)
	}
	s.mu.Unlock()
	s.extendGuards()
	if !t.live {
		s.mu.Lock()
		s.live = !s.closed // after the guards know
		s.mu.Unlock()
		s.changed.wake()
	}
}

// extendGuards tells the guards the end of validity.
func (s *leases) extendGuards() {
	if s.options.Extend == nil {
		return
	}
	// In this order: a pause in between makes the deadline earlier, not later.
	wall := time.Now()
	at := s.clock()
	s.mu.Lock()
	until := s.until
	s.mu.Unlock()
	s.options.Extend(wall.Add(until - at))
}

// expire ends the epoch if its validity has ended: guards have killed its processes.
func (s *leases) expire(at time.Duration) {
	s.mu.Lock()
	expired, count := s.live && at >= s.until, len(s.held)
	if expired {
		s.loseLocked()
	}
	s.mu.Unlock()
	if expired {
		s.logger.Warn("the cluster's state was not reached in time: the leases of this replica are lost", "leases", count)
	}
}

// lose ends the epoch, if there is one.
func (s *leases) lose() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.live
	s.loseLocked()
	return live
}

// loseLocked ends the epoch: every lease is lost.
func (s *leases) loseLocked() {
	s.live = false
	for key, h := range s.held {
		h.isLost = true
		close(h.lost)
		s.unreleased++
		delete(s.held, key)
	}
	s.changed.wake()
}

// valid reports whether this replica may use its leases, and when that ends.
func (s *leases) valid(at time.Duration) (valid bool, until time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.validLocked(at), s.until
}

func (s *leases) validLocked(at time.Duration) bool { return s.live && at < s.until }

// drain marks this replica as draining in the next heartbeat.
func (s *leases) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining {
		s.draining = true
		close(s.leaving)
		s.changed.wake()
	}
}

// close loses all leases for good.
func (s *leases) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.loseLocked()
}

// left returns how many leases are held, being taken, or lost and not yet released.
func (s *leases) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held) + len(s.taking) + s.unreleased
}

func (s *leases) release(h *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.shares--; h.shares > 0 {
		return
	}
	if h.isLost {
		s.unreleased--
		signal(s.beats)
	} else {
		delete(s.held, h.key)
		signal(s.sweeps)
	}
	s.changed.wake()
}

// isFreeLocked reports whether this replica neither holds nor takes a lease.
func (s *leases) isFreeLocked(key string) bool { return s.held[key] == nil && s.taking[key] == nil }

// released returns the leases that this replica owns in its epoch but neither holds nor
// takes.
func (s *leases) released(owned map[string]lease) map[string]lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]lease{}
	for key, l := range owned {
		if s.live && l.Owner == s.id && l.Epoch == s.epoch && s.isFreeLocked(key) {
			all[key] = l
		}
	}
	return all
}

// holder returns the lease that this replica holds, and its epoch.
func (s *leases) holder(key string) (h *held, epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[key], s.epoch
}

func (s *leases) isFree(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isFreeLocked(key)
}

// rewritten records the new revision of a lease's record.
func (s *leases) rewritten(h *held, revision uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.revision = max(h.revision, revision)
}
