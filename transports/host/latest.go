package host

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// Of some notifications only the last one of its subject counts: that a resource
// changed, how a task stands. The first is sent at once, those that follow soon after are
// merged: one waits for each subject. So does one that the host has no room for.

const (
	// mergeFor is how long notifications of one subject are merged after one was sent.
	mergeFor = 50 * time.Millisecond
	// mergePause is the longest pause between two offers to a host that does not read.
	mergePause = 2 * time.Second
	// maxMerged is how many subjects may wait, and maxMergedBytes how much: servers make up
	// parts of what was subscribed to. One more is dropped.
	maxMerged      = 4096
	maxMergedBytes = 1 << 20
	// maxAtOnce is how many are sent in mergeFor.
	maxAtOnce = 256
)

// subjectOf returns what a notification is about, by the member of its params that says
// so, "" of those that are not merged.
func subjectOf(method string, params json.RawMessage) string {
	member := ""
	switch method {
	case "notifications/resources/updated":
		member = "uri"
	case "notifications/tasks", "notifications/tasks/status":
		member = "taskId"
	case "notifications/elicitation/complete":
		member = "elicitationId"
	default:
		return ""
	}
	return method + " " + string(wire.Get(params, member)) + " " + string(wire.Get(params, "_meta", transports.MetaSubscriptionID))
}

// latest are the notifications of a session that are merged. The zero value is ready to
// use.
type latest struct {
	mu      sync.Mutex
	sent    map[string]bool // the subjects of what was sent since timer was set
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

// put sends a notification with send, or keeps it in the place of the last one that waits.
// It reports false if there was no room for it.
func (l *latest) put(subject string, m latestMessage, send func(latestMessage) error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return true
	}
	old, waits := l.waiting[subject]
	if !waits && !l.sent[subject] && len(l.sent) < maxAtOnce && len(l.order) == 0 {
		if err := send(m); !errors.Is(err, wire.ErrFull) {
			l.noteLocked(subject, send)
			return true
		}
	}
	size := len(m.params) - len(old.params)
	if !waits && len(l.order) >= maxMerged || l.size+size > maxMergedBytes {
		return false
	}
	if !waits {
		l.order = append(l.order, subject)
	}
	if l.waiting == nil {
		l.waiting = map[string]latestMessage{}
	}
	m.params = slices.Clone(m.params) // they are lent
	l.waiting[subject] = m
	l.size += size
	l.armLocked(mergeFor, send)
	return true
}

func (l *latest) noteLocked(subject string, send func(latestMessage) error) {
	if l.sent == nil {
		l.sent = map[string]bool{}
	}
	l.sent[subject] = true
	l.armLocked(mergeFor, send)
}

func (l *latest) armLocked(pause time.Duration, send func(latestMessage) error) {
	if l.timer == nil {
		l.pause = pause
		l.timer = time.AfterFunc(pause, func() { l.flush(send) })
	}
}

// flush sends what waits, as much as the host has room for.
func (l *latest) flush(send func(latestMessage) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	last := l.pause
	l.timer, l.sent = nil, nil
	if len(l.order) == 0 {
		return
	}
	if !l.sendLocked(min(len(l.order), maxAtOnce), send) {
		l.armLocked(min(2*last, mergePause), send)
	}
}

// sendLocked sends the first n that wait, and reports whether there was room for any.
func (l *latest) sendLocked(n int, send func(latestMessage) error) (sent bool) {
	for _, subject := range l.order[:n] {
		m := l.waiting[subject]
		if errors.Is(send(m), wire.ErrFull) {
			return sent
		}
		sent = true
		l.order = l.order[1:]
		l.size -= len(m.params)
		delete(l.waiting, subject)
		l.noteLocked(subject, send)
	}
	return sent
}

// close sends all that waits, and merges nothing from then on.
func (l *latest) close(send func(latestMessage) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sendLocked(len(l.order), send)
	if l.closed = true; l.timer != nil {
		l.timer.Stop()
	}
	l.waiting, l.order, l.sent = nil, nil, nil
}
