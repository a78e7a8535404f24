package fleet

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// A record holds the state of a server, or of an owner's upstream, for a run. It survives the
// replacement of the upstream by a new config.
type record struct {
	Entry  *record // of the shared server; it may be the record itself
	Queue  Queue
	Slots  Queue        // of calls that wait for max_calls while the server is ready
	Starts atomic.Int64 // number of connections

	// For entries only:

	AsksRoots     atomic.Bool // shared hosts have an upstream per set of roots
	bothEras      atomic.Bool // and one per era, unless it is statelessOnly
	statelessOnly atomic.Bool
	regardsClient atomic.Bool // its lists may depend on the capabilities of hosts, see lists.go
}

// records are the records by owner, "" for all, and the name of the server. The zero value is ready
// to use.
type records struct {
	mu sync.Mutex
	of map[string]map[string]*record
}

// Get returns the record of an owner's upstream of a server.
func (rs *records) Get(server, owner string) *record {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	entry := rs.getLocked(server, "", nil)
	if owner == "" {
		return entry
	}
	return rs.getLocked(server, owner, entry)
}

// getLocked returns the record of an owner, created with this entry; nil means itself.
func (rs *records) getLocked(server, owner string, entry *record) *record {
	if rs.of == nil {
		rs.of = map[string]map[string]*record{}
	}
	if rs.of[owner] == nil {
		rs.of[owner] = map[string]*record{}
	}
	r := rs.of[owner][server]
	if r == nil {
		r = &record{}
		r.Entry = cmp.Or(entry, r)
		rs.of[owner][server] = r
	}
	return r
}

// drop removes the records of an owner that has ended.
func (rs *records) drop(owner string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.of, owner)
}

// sweep removes the records of owners, unless they are in use or calls wait.
func (rs *records) sweep(inUse func(server, owner string) bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for owner, of := range rs.of {
		if owner == "" {
			continue
		}
		maps.DeleteFunc(of, func(server string, r *record) bool {
			return !r.Queue.InUse() && !r.Slots.InUse() && !inUse(server, owner)
		})
		if len(of) == 0 {
			delete(rs.of, owner)
		}
	}
}

// Waiting returns how many calls wait for a slot of a server, for all owners.
func (rs *records) Waiting(server string) (n int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, of := range rs.of {
		if r := of[server]; r != nil {
			n += int(r.Slots.Length.Load())
		}
	}
	return n
}

// A Queue holds the calls to one server that wait to be sent. The zero value is ready to use.
type Queue struct {
	Length atomic.Int32 // of waiting, readable without the lock

	mu      sync.Mutex
	waiting []*Ticket // by number
	running int       // calls that have a slot
}

// A Ticket is the place of a call in a queue.
type Ticket struct {
	queue  *Queue
	number int64
	Next   chan struct{} // holds a token when the ticket may have become the first
}

// Join adds a call to the queue, before those with a higher number and after those with the same
// number, which are parts of one request.
func (q *Queue) Join(number int64) *Ticket {
	t := &Ticket{q, number, make(chan struct{}, 1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	at, _ := slices.BinarySearchFunc(q.waiting, number+1, func(t *Ticket, number int64) int { return cmp.Compare(t.number, number) })
	q.waiting = slices.Insert(q.waiting, at, t)
	q.changedLocked()
	return t
}

// Leave lets the next call continue.
func (t *Ticket) Leave() {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := slices.Index(q.waiting, t); at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	q.changedLocked()
}

// Take takes a slot, if fewer than most are taken (0 is no limit) and no other call waits before this
// one. t is nil for a call that does not wait.
func (q *Queue) Take(t *Ticket, most int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if most > 0 && q.running >= most || len(q.waiting) > 0 && q.waiting[0] != t {
		return false
	}
	q.running++
	return true
}

// GiveBack returns slots, and wakes the first call.
func (q *Queue) GiveBack(slots int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running -= slots
	q.changedLocked()
}

// InUse reports whether calls wait or have slots.
func (q *Queue) InUse() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running > 0 || len(q.waiting) > 0
}

func (q *Queue) changedLocked() {
	q.Length.Store(int32(len(q.waiting)))
	if len(q.waiting) > 0 {
		select {
		case q.waiting[0].Next <- struct{}{}:
		default:
		}
	}
}

// IsFirst reports whether no call waits before this one.
func (t *Ticket) IsFirst() bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.queue.waiting[0] == t
}
