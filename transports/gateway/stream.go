package gateway

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// What waits for a host that does not read, in bytes, before messages that may be
// lost are.
const (
	maxExpendable = 1 << 20
	maxOrdinary   = 4 << 20
)

// maxUnread is what may wait for one host on all its streams, in bytes, before its
// session ends.
const maxUnread = 128 << 20

// The window in which a host that lost its connection can go on where it was: what
// is kept of one stream, and for how long one that has ended is.
const (
	maxReplay = 1 << 20 // bytes
	replayFor = 5 * time.Minute
	maxEnded  = 32 // streams of one session
	pingEvery = 15 * time.Second
	stall     = 60 * time.Second // how long a host may leave what was written unread
)

var errGone = errors.New("the host is gone")

// A stream is a sequence of messages for a host, which one HTTP response carries,
// or several one after the other where the host comes back. It never blocks those
// who write to it.
type stream struct {
	number   int64                  // in the ids of its events
	max      int                    // bytes of one response
	ids      bool                   // events have ids, and are kept for a host that comes back
	open     bool                   // it has no end of its own: it is not the response to one POST
	overflow func()                 // called when a host has far too much unread; must not block
	unread   *unread                // of all streams of the host, nil where it has but this
	reserved *membudget.Reservation // accounts for events; may be nil
	body     *membudget.Reservation // accounts for the request that is answered, until it is; may be nil

	mu         sync.Mutex
	only       bool          // nothing but the answer can be sent: the host takes no event stream
	events     [][]byte      // those that are kept, and those that are not written
	first      int64         // the number of events[0]
	next       int64         // of the one to be written next
	waiting    int           // bytes not written
	replayable int           // bytes of those before next
	done       bool          // nothing more will come
	lost       bool          // nobody will read it
	orphan     bool          // nobody can come back to it
	readers    int           // requests that give it to the host
	on         *conn         // the connection of the last of them, nil where that is not ours
	carried    bool          // by one at least
	carriers   int           // the responses that it was on; the last one writes
	wake       chan struct{} // holds a token when something changed
	endedAt    time.Time
}

// newStream returns a stream whose responses may have max bytes.
func newStream(max int) *stream {
	return &stream{max: max, first: 1, next: 1, wake: make(chan struct{}, 1)}
}

// An unread is how much waits for a host, in bytes.
type unread struct {
	most int64
	now  atomic.Int64
}

// waitLocked says that so many bytes more wait, or fewer. It reports whether that is too much.
func (st *stream) waitLocked(n int) (much bool) {
	st.waiting += n
	much = st.open && st.waiting > 4*st.max
	if st.unread != nil {
		much = st.unread.now.Add(int64(n)) > max(st.unread.most, 4*int64(st.max)) || much
	}
	return much
}

// uncount is called when nobody can come back to the stream any more: what it still
// has is not for the host to read.
func (st *stream) uncount() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.orphan = true
	st.body.Set(0)
	if st.readers == 0 {
		st.reserved.Set(0)
	}
	if st.unread != nil {
		st.unread.now.Add(-int64(st.waiting))
		st.unread = nil
	}
}

// put adds a message. The answer to a POST is the last one.
func (st *stream) put(about *host.Request, class host.Class, parts [][]byte) error {
	size := sizeOf(parts)
	var over []*membudget.Reservation
	defer func() { membudget.Shed(over) }() // without st.mu
	st.mu.Lock()
	defer st.mu.Unlock()
	if class == host.Response && !st.open {
		st.body.Set(0)
	}
	switch {
	case st.lost || st.done:
		return errGone
	case st.only && class != host.Response:
		return wire.ErrFull
	case class == host.Latest && st.waiting > host.MaxLatest, class == host.Expendable && st.waiting > maxExpendable, class == host.Ordinary && st.waiting > maxOrdinary:
		return wire.ErrFull
	case class == host.Response && size > st.max:
		var id []byte
		if about != nil {
			id = about.ID
		}
		parts = wire.Failure(id, transports.OutcomeError(transports.CodeTooLarge, "the response has "+strconv.Itoa(size)+" bytes, more than gateway.max_response_bytes", transports.Executed))
	}
	event := wire.JoinLines(bytes.Join(parts, nil))
	st.events = append(st.events, event)
	much := st.waitLocked(len(event))
	over = st.reserved.Set(st.waiting + st.replayable)
	st.done = class == host.Response && !st.open
	st.tellLocked()
	if much && st.overflow != nil {
		st.lost = true
		st.overflow()
	}
	return nil
}

// readBy says that a request gives the stream to the host, until leave.
func (st *stream) readBy(c *conn) (leave func()) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.readers++
	st.on, st.carried = c, true
	return func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.readers--; st.readers == 0 && st.orphan {
			st.reserved.Set(0)
		}
	}
}

// shed gives back what the stream holds: it is read too slowly, or by nobody.
func (st *stream) shed() {
	st.mu.Lock()
	c := st.on
	unread := st.readers > 0
	if !unread && (st.carried || st.open) {
		st.dropLocked()
	}
	st.mu.Unlock()
	if unread {
		st.cut(c)
	}
}

// cut ends the connection that the stream is on, and the session.
func (st *stream) cut(c *conn) {
	if c != nil {
		c.Close()
	}
	if st.overflow != nil {
		st.overflow()
	}
}

// dropLocked drops all events.
func (st *stream) dropLocked() {
	st.first += int64(len(st.events))
	st.next, st.events, st.replayable = st.first, nil, 0
	st.waitLocked(-st.waiting)
	st.reserved.Set(0)
}

// finish ends a stream to which nothing will be added, such as that of a request
// which is not answered.
func (st *stream) finish() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.done = true
	st.body.Set(0)
	st.tellLocked()
}

// forget drops what nobody will read.
func (st *stream) forget() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.lost = true
	st.dropLocked()
	st.tellLocked()
}

func (st *stream) tellLocked() {
	if st.done && st.endedAt.IsZero() {
		st.endedAt = time.Now()
	}
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// answer returns the answer if that is all there ever was; ready is false as long
// as there is nothing to be sent.
func (st *stream) answer() (text []byte, alone, ready bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.done && len(st.events) == 1 && st.next == 1:
		return st.events[0], true, true
	case st.done && len(st.events) == 0:
		return nil, true, true
	}
	return nil, false, len(st.events) > 0 || st.lost
}

// await returns the answer on a stream that has nothing else; ok is false if ctx ends first.
func (st *stream) await(ctx context.Context) (text []byte, ok bool) {
	for {
		if text, alone, _ := st.answer(); alone {
			return text, true
		}
		select {
		case <-st.wake:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// carry makes a response the one that the stream is on, from the event numbered
// from on, 0 is where it is, and returns the number of the event before it. It
// reports false where that is no longer kept.
func (st *stream) carry(from int64) (carrier int, before int64, ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if from > 0 {
		if from < st.first || from > st.first+int64(len(st.events)) {
			return 0, 0, false
		}
		st.next, st.replayable = from, 0
		st.waitLocked(-st.waiting)
		for i, e := range st.events {
			if st.first+int64(i) < from {
				st.replayable += len(e)
			} else {
				st.waitLocked(len(e))
			}
		}
	}
	st.carriers++
	st.tellLocked()
	return st.carriers, st.next - 1, true
}

// take returns what is to be written by a carrier, and whether it goes on.
func (st *stream) take(carrier int) (events [][]byte, from int64, goesOn bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.carriers != carrier || st.lost {
		st.tellLocked() // the token was for the one that is
		return nil, 0, false
	}
	from = st.next
	for _, e := range st.events[st.next-st.first:] {
		events = append(events, e)
		st.waitLocked(-len(e))
		st.replayable += len(e)
	}
	st.next += int64(len(events))
	for st.first < st.next && (!st.ids || st.replayable > maxReplay) {
		st.replayable -= len(st.events[0])
		st.events, st.first = st.events[1:], st.first+1
	}
	st.reserved.Set(st.waiting + st.replayable)
	return events, from, !st.done
}

// trim drops the oldest events of a stream that nobody reads, so that it keeps no
// more than the window.
func (st *stream) trim() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for st.replayable+st.waiting > maxReplay {
		if st.first < st.next {
			st.replayable -= len(st.events[0])
		} else {
			st.waitLocked(-len(st.events[0]))
			st.next++
		}
		st.events, st.first = st.events[1:], st.first+1
	}
	st.reserved.Set(st.waiting + st.replayable)
}

// expired reports whether nobody can come back to the stream any more.
func (st *stream) expired(now time.Time) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.lost || !st.endedAt.IsZero() && now.Sub(st.endedAt) > replayFor
}

// writing returns a reservation for what is being written to a connection.
func (st *stream) writing(c *conn) *membudget.Reservation {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.reserved.Sibling(func() { st.cut(c) })
}

func (st *stream) isDone() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.done
}
