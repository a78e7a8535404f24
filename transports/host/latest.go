package host

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// Of some notifications only the last one for its subject matters, such as a changed resource
// or the status of a task. The first is sent at once; those that follow soon after are merged,
// and one waits per subject. One for which the host has no room waits in the same way.
//
// Notifications that MCP does not know wait too while the host has no room, each of them, so that
// answers overtake them.

const (
	// mergeFor is how long notifications of one subject are merged after one was sent.
	mergeFor = 50 * time.Millisecond
	// mergePause is the longest pause between two offers to a host that does not read.
	mergePause = 2 * time.Second
	// maxMerged limits the subjects that wait, and maxMergedBytes their size, because servers
	// invent parts of subscribed resources. One more is dropped.
	maxMerged      = 4096
	maxMergedBytes = 1 << 20
	// maxAtOnce is how many are sent within mergeFor.
	maxAtOnce = 256
)

// subjectOf returns the member of a notification's params that identifies its subject, ""
// for a notification that is not merged.
func subjectOf(method string, params json.RawMessage) string {
	member := ""
	switch method {
	case "notifications/resources/updated":
		member = "uri"
	case "notifications/tasks", "notifications/tasks/status":
		member = "taskId"
	case "notifications/elicitation/complete":
		member = "elicitationId"
	}
	if member == "" {
		return ""
	}
	return method + " " + string(wire.Get(params, member)) + " " + string(wire.Get(params, "_meta", transports.MetaSubscriptionID))
}

// latest holds the merged notifications of a session.
type latest struct {
	send   func(latestMessage, Class) error // set before use, as merges and charged
	merges bool                             // those with the same subject; otherwise they only wait
	// charged counts the params that wait in the memory budget; it may be nil.
	charged *membudget.Reservation

	mu      sync.Mutex
	number  int             // of the last one that is not merged
	sent    map[string]bool // the subjects of notifications sent since timer was set
	waiting map[string]latestMessage
	order   []string // of waiting
	size    int      // of its params
	timer   *time.Timer
	pause   time.Duration
	closed  bool
}

type latestMessage struct {
	about  *Request
	method string
	params json.RawMessage
}

// put sends a notification, or stores it in place of the one that waits for its subject. It
// returns false if there was no room.
func (l *latest) put(subject string, m latestMessage) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return true
	}
	if !l.merges {
		l.number++
		subject = strconv.Itoa(l.number)
	}
	old, waits := l.waiting[subject]
	if !waits && !l.sent[subject] && len(l.sent) < maxAtOnce && len(l.order) == 0 {
		if err := l.send(m, Latest); !errors.Is(err, wire.ErrFull) {
			if l.merges {
				l.markSentLocked(subject)
			}
			return true
		}
	}
	size := len(m.params) - len(old.params)
	if !waits && len(l.order) >= maxMerged || l.size+size > maxMergedBytes || !l.charged.Resize(int64(l.size+size)) {
		return false
	}
	if !waits {
		l.order = append(l.order, subject)
	}
	if l.waiting == nil {
		l.waiting = map[string]latestMessage{}
	}
	m.params = slices.Clone(m.params) // they are not valid after put returns
	l.waiting[subject] = m
	l.size += size
	l.armLocked(mergeFor)
	return true
}

// markSentLocked records that a notification of a subject was sent.
func (l *latest) markSentLocked(subject string) {
	if l.sent == nil {
		l.sent = map[string]bool{}
	}
	l.sent[subject] = true
	l.armLocked(mergeFor)
}

// armLocked sets the timer of flush, unless it is set.
func (l *latest) armLocked(pause time.Duration) {
	if l.timer == nil {
		l.pause = pause
		l.timer = time.AfterFunc(pause, l.flush)
	}
}

// flush sends as many waiting notifications as the host has room for.
func (l *latest) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	last := l.pause
	l.timer, l.sent = nil, nil
	if len(l.order) > 0 && !l.sendLocked(min(len(l.order), maxAtOnce), Latest) {
		l.armLocked(min(2*last, mergePause))
	}
}

// sendLocked sends the first n in the queue, and reports whether there was room for any.
func (l *latest) sendLocked(n int, class Class) (sent bool) {
	for _, subject := range l.order[:n] {
		m := l.waiting[subject]
		if errors.Is(l.send(m, class), wire.ErrFull) {
			return sent
		}
		sent = true
		l.order = l.order[1:]
		l.size -= len(m.params)
		l.charged.Release(int64(len(m.params)))
		delete(l.waiting, subject)
		l.markSentLocked(subject)
	}
	return sent
}

// close sends everything that waits, and stops merging.
func (l *latest) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sendLocked(len(l.order), Ordinary)
	if l.closed = true; l.timer != nil {
		l.timer.Stop()
	}
	l.waiting, l.order, l.sent = nil, nil, nil
	l.charged.Resize(0)
}
