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

// The unsent bytes of a stream above which messages of a class are dropped.
const (
	maxExpendable = 1 << 20
	maxOrdinary   = 4 << 20
)

// maxUnread is the limit of unsent bytes on all streams of one host. Above it the session ends.
const maxUnread = 128 << 20

const (
	maxReplay = 1 << 20          // replay buffer of one stream in bytes, for a host that lost its connection
	replayFor = 5 * time.Minute  // how long a stream that has ended can be resumed
	maxEnded  = 32               // ended streams that one session keeps
	pingEvery = 15 * time.Second // interval of heartbeats
	stall     = 60 * time.Second // how long a host may leave a write unread
)

var errGone = errors.New("the host is gone")

// A stream is a sequence of messages for a host. An HTTP response carries it. If the host
// resumes the stream, another response does. put never blocks.
type stream struct {
	number   int64                  // in the ids of its events
	max      int                    // bytes of one response
	ids      bool                   // events have ids, and are kept for a host that resumes the stream
	open     bool                   // it does not end with an answer: it is not the response to a POST
	overflow func()                 // called when the host has far too much unread; must not block
	unread   *unread                // shared by all streams of the host; nil if this is the only one
	reserved *membudget.Reservation // for the events; may be nil
	body     *membudget.Reservation // for the body of the request, until its answer; may be nil

	mu         sync.Mutex
	answerOnly bool          // only an answer can be sent: the host accepts no event stream
	events     [][]byte      // those that are not written, and those that are kept
	first      int64         // number of events[0]
	next       int64         // number of the event to write next
	waiting    int           // bytes of the events from next on
	replayable int           // bytes of the events before next
	done       bool          // nothing more will be added
	lost       bool          // nobody will read it
	abandoned  bool          // nobody can resume it
	readers    int           // HTTP requests that read it
	conn       *conn         // connection of the last reader; nil if not from our listener
	carried    bool          // it had a reader
	carriers   int           // number of responses that it was on; only the last one writes
	wake       chan struct{} // holds a token when something has changed
	endedAt    time.Time
}

// newStream returns a stream whose responses may have max bytes.
func newStream(max int) *stream {
	return &stream{max: max, first: 1, next: 1, wake: make(chan struct{}, 1)}
}

// An unread counts the unsent bytes of a host.
type unread struct {
	most int64
	now  atomic.Int64
}

// countLocked adds n, which may be negative, to the unsent bytes. It reports whether they are too many.
func (st *stream) countLocked(n int) (tooMany bool) {
	st.waiting += n
	tooMany = st.open && st.waiting > 4*st.max
	if st.unread != nil {
		tooMany = st.unread.now.Add(int64(n)) > max(st.unread.most, 4*int64(st.max)) || tooMany
	}
	return tooMany
}

// abandon is called when nobody can resume the stream. Its events no longer count as unread.
func (st *stream) abandon() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.abandoned = true
	st.body.Set(0)
	if st.readers == 0 {
		st.reserved.Set(0)
	}
	if st.unread != nil {
		st.unread.now.Add(-int64(st.waiting))
		st.unread = nil
	}
}

// put adds a message. The answer to a POST is the last message of its stream.
func (st *stream) put(about *host.Request, class host.Class, parts [][]byte) error {
	size := sizeOf(parts)
	var over []*membudget.Reservation
	defer func() { membudget.Shed(over) }() // after st.mu is unlocked
	st.mu.Lock()
	defer st.mu.Unlock()
	if class == host.Response && !st.open {
		st.body.Set(0)
	}
	switch {
	case st.lost || st.done:
		return errGone
	case st.answerOnly && class != host.Response:
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
	tooMany := st.countLocked(len(event))
	over = st.reserved.Set(st.waiting + st.replayable)
	st.done = class == host.Response && !st.open
	st.wakeLocked()
	if tooMany && st.overflow != nil {
		st.lost = true
		st.overflow()
	}
	return nil
}

// readBy counts a reader, on the connection c, until leave is called.
func (st *stream) readBy(c *conn) (leave func()) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.readers++
	st.conn, st.carried = c, true
	return func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.readers--; st.readers == 0 && st.abandoned {
			st.reserved.Set(0)
		}
	}
}

// shed frees the memory of the stream, because the budget is exceeded. If somebody reads it,
// too slowly, the connection is closed.
func (st *stream) shed() {
	st.mu.Lock()
	c := st.conn
	unread := st.readers > 0
	if !unread && (st.carried || st.open) {
		st.dropLocked()
	}
	st.mu.Unlock()
	if unread {
		st.cut(c)
	}
}

// cut closes the connection of a reader, and ends the session.
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
	st.countLocked(-st.waiting)
	st.reserved.Set(0)
}

// finish ends the stream without an answer, such as the stream of a cancelled request.
func (st *stream) finish() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.done = true
	st.body.Set(0)
	st.wakeLocked()
}

// forget drops the events of a stream that nobody will read.
func (st *stream) forget() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.lost = true
	st.dropLocked()
	st.wakeLocked()
}

func (st *stream) wakeLocked() {
	if st.done && st.endedAt.IsZero() {
		st.endedAt = time.Now()
	}
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// answer reports whether the stream has ended with at most one event, none of which was sent,
// and returns that event. ready is false as long as there is nothing to send.
func (st *stream) answer() (text []byte, only, ready bool) {
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

// await returns the answer on a stream without other events; ok is false if ctx ends first.
func (st *stream) await(ctx context.Context) (text []byte, ok bool) {
	for {
		if text, only, _ := st.answer(); only {
			return text, true
		}
		select {
		case <-st.wake:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// carry makes a response the carrier of the stream, from the event with the number from on, or
// from the next one if from is 0. It returns the number of the carrier and the number of the
// event before the first; false if the stream no longer has the event.
func (st *stream) carry(from int64) (carrier int, before int64, ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if from > 0 {
		if from < st.first || from > st.first+int64(len(st.events)) {
			return 0, 0, false
		}
		st.next, st.replayable = from, 0
		st.countLocked(-st.waiting)
		for i, e := range st.events {
			if st.first+int64(i) < from {
				st.replayable += len(e)
			} else {
				st.countLocked(len(e))
			}
		}
	}
	st.carriers++
	st.wakeLocked()
	return st.carriers, st.next - 1, true
}

// take returns the events that a carrier has to write, the number of the first, how many of their
// bytes the stream does not keep, and whether the carrier goes on.
func (st *stream) take(carrier int) (events [][]byte, from int64, gone int, goesOn bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.carriers != carrier || st.lost {
		st.wakeLocked() // pass the token to the current carrier
		return nil, 0, 0, false
	}
	from = st.next
	for _, e := range st.events[st.next-st.first:] {
		events = append(events, e)
		st.countLocked(-len(e))
		st.replayable += len(e)
	}
	st.next += int64(len(events))
	for st.first < st.next && (!st.ids || st.replayable > maxReplay) {
		if st.first >= from {
			gone += len(st.events[0])
		}
		st.replayable -= len(st.events[0])
		st.events, st.first = st.events[1:], st.first+1
	}
	st.reserved.Set(st.waiting + st.replayable)
	return events, from, gone, !st.done
}

// trim limits a stream that nobody reads to the replay buffer. It drops the oldest events.
func (st *stream) trim() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for st.replayable+st.waiting > maxReplay {
		if st.first < st.next {
			st.replayable -= len(st.events[0])
		} else {
			st.countLocked(-len(st.events[0]))
			st.next++
		}
		st.events, st.first = st.events[1:], st.first+1
	}
	st.reserved.Set(st.waiting + st.replayable)
}

// expired reports whether the stream can no longer be resumed.
func (st *stream) expired(now time.Time) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.lost || !st.endedAt.IsZero() && now.Sub(st.endedAt) > replayFor
}

// writing returns a reservation for the events that are being written to a connection.
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
