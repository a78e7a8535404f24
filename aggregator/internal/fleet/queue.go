package fleet

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

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
	if most > 0 && q.running >= most || q.othersWaitLocked(t) {
		return false
	}
	q.running++
	return true
}

// othersWaitLocked reports whether another call waits before this one.
func (q *Queue) othersWaitLocked(t *Ticket) bool { return len(q.waiting) > 0 && q.waiting[0] != t }

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
