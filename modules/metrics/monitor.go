// Package metrics shows the activity of a run that serves many hosts, as a live page, as
// metrics and as traces.
package metrics

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	prom "github.com/VictoriaMetrics/metrics"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// MonitorOptions configure a Monitor.
type MonitorOptions struct {
	Version string
	// Replica is the name of this replica, a label of the metrics; "" without a cluster.
	Replica string
	// Redact removes secrets from a text. Of a text whose end is missing (not whole) it returns
	// the part that is safe to show. It is applied before anything is stored.
	Redact func(text string, whole bool) (safe string)
	// Tracer sends traces of calls; may be nil.
	Tracer Tracer
}

// A Tracer sends a span for each call.
type Tracer interface {
	Call(event.Call)
	// Close sends the remaining spans, for a limited time.
	Close()
}

// A Monitor stores recent events: bounded, redacted.
type Monitor struct {
	opts    MonitorOptions
	began   time.Time
	run     atomic.Pointer[module.State] // nil before Watch
	metrics *prom.Set                    // counted as events occur

	follower *event.Follower // of messages, nil before Follow
	done     chan struct{}

	mu       sync.Mutex
	lost     int64     // messages and events dropped for lack of room
	messages []Message // the last ones, oldest first
	lastSeq  int64
	stats    map[string]*activity.ToolStats // by upstream
	counts   map[string]*counts             // by session
	watchers map[chan shown]bool
	searched map[string]bool // sessions whose last call was a search
}

// Limits of stored and shown data.
const (
	maxMessages    = 500
	maxWaiting     = 16 << 20 // bytes of messages that are not redacted yet
	maxMessageText = 4 << 10  // bytes of a message
	readText       = 16 << 10 // bytes of a message that are inspected
	maxTimes       = 1000     // calls of an upstream whose durations are stored
	maxWatchers    = 64
)

// A Message is a stored message between a host and dynmcp, possibly truncated.
type Message struct {
	Seq       int64           `json:"seq"`
	At        time.Time       `json:"at"`
	Direction string          `json:"direction"` // "in" from the host, "out" to it
	Namespace string          `json:"namespace"` // the server of the session, "" for all
	Session   string          `json:"session"`
	Size      int             `json:"size"`          // bytes of the whole message
	Cut       bool            `json:"cut,omitempty"` // message is only the beginning, as text
	Message   json.RawMessage `json:"message"`
}

// A Connection is the beginning or the end of a host's session.
type Connection struct {
	Event     string `json:"event"` // "connected" or "disconnected"
	Namespace string `json:"namespace"`
	Session   string `json:"session"`
	Host      string `json:"host,omitempty"`
}

// A shown event is sent to watchers of the stream.
type shown struct {
	name string
	data any
}

type counts struct{ In, Out int64 }

// New returns a monitor. End must be called.
func New(opts MonitorOptions) *Monitor {
	if opts.Redact == nil {
		opts.Redact = func(text string, _ bool) string { return text }
	}
	m := &Monitor{
		opts:     opts,
		metrics:  prom.NewSet(),
		began:    time.Now(),
		done:     make(chan struct{}),
		stats:    map[string]*activity.ToolStats{},
		counts:   map[string]*counts{},
		watchers: map[chan shown]bool{},
		searched: map[string]bool{},
	}
	prom.ExposeMetadata(true)
	m.count(0, "dynmcp_dropped_notifications_total")
	return m
}

// Watch makes the monitor show the state of a run.
func (m *Monitor) Watch(run module.State) { m.run.Store(&run) }

// Wants, Called, Opened, Closed, Dropped and End are those of an event.Observer.

func (m *Monitor) Wants() (calls, params bool) { return true, false }
func (m *Monitor) Dropped(event.Session)       { m.count(1, "dynmcp_dropped_notifications_total") }

// End ends the streams of watchers, and sends the last traces.
func (m *Monitor) End() {
	close(m.done)
	if m.follower != nil {
		_ = m.follower.Close() // Read returns no error
	}
	if m.opts.Tracer != nil {
		m.opts.Tracer.Close()
	}
}

// Follow does nothing: what is shown does not depend on the config.
func (m *Monitor) Follow(*schema.Config) error { return nil }

// Hear makes the monitor show the messages of hosts, which costs a copy of each. It is called once.
func (m *Monitor) Hear(t *event.Tap) {
	m.follower = t.Follow(m, event.Limits{Text: readText, Waiting: maxWaiting, Hosts: true})
}

func (m *Monitor) Called(end event.Call) {
	if end.Own() {
		m.countOwn(end)
		return
	}
	m.countCall(end)
	if m.opts.Tracer != nil {
		m.opts.Tracer.Call(end)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if end.Tool != "" && m.searched[end.From.ID] {
		delete(m.searched, end.From.ID)
		m.count(1, "dynmcp_search_next_calls_total", "upstream", end.Upstream)
	}
	s := m.stats[end.Upstream]
	if s == nil {
		s = &activity.ToolStats{}
		m.stats[end.Upstream] = s
	}
	line := activity.LineOf(&end)
	s.Add(&line, maxTimes)
}

func (m *Monitor) Opened(s event.Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[s.ID] = &counts{}
	m.tellLocked(m.connection("connected", s))
}

func (m *Monitor) Closed(s event.Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.counts, s.ID)
	delete(m.searched, s.ID)
	m.tellLocked(m.connection("disconnected", s))
}

func (m *Monitor) connection(what string, s event.Session) shown {
	return shown{"connection", Connection{Event: what, Namespace: s.Server, Session: s.ID, Host: m.opts.Redact(s.Host, true)}}
}

// Read implements event.Reader: it keeps messages of hosts and notifies watchers.
func (m *Monitor) Read(all []event.Message, lost int64) error {
	for i := range all {
		passed := &all[i]
		msg := m.messageOf(passed)
		m.mu.Lock()
		switch c := m.counts[passed.Session]; { // nil after its end
		case c == nil:
		case passed.In:
			c.In++
		default:
			c.Out++
		}
		m.lastSeq++
		msg.Seq = m.lastSeq
		if m.messages = append(m.messages, msg); len(m.messages) > maxMessages {
			m.messages = slices.Delete(m.messages, 0, len(m.messages)-maxMessages)
		}
		m.tellLocked(shown{"message", msg})
		m.mu.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost += lost
	return nil
}

// messageOf returns a message without secrets: all of it as JSON if it is short, otherwise its
// beginning as a string.
func (m *Monitor) messageOf(passed *event.Message) Message {
	msg := Message{At: passed.At, Direction: passed.Direction(), Namespace: passed.Server, Session: passed.Session, Size: passed.Size}
	whole := len(passed.Text) == passed.Size
	text := m.opts.Redact(string(passed.Text), whole)
	if whole && len(text) <= maxMessageText && json.Valid([]byte(text)) {
		msg.Message = json.RawMessage(text)
		return msg
	}
	msg.Cut = !whole || len(text) > maxMessageText
	msg.Message, _ = json.Marshal(string([]byte(text)[:min(len(text), maxMessageText)])) // a string always marshals
	return msg
}

// tellLocked notifies watchers; one that is behind misses the event.
func (m *Monitor) tellLocked(e shown) {
	for w := range m.watchers {
		select {
		case w <- e:
		default:
			m.lost++
		}
	}
}

// watch returns a channel for new events, and the stored messages. ok is false if there are too
// many watchers.
func (m *Monitor) watch() (events chan shown, before []Message, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.watchers) == maxWatchers {
		return nil, nil, false
	}
	events = make(chan shown, 256)
	m.watchers[events] = true
	return events, slices.Clone(m.messages), true
}

func (m *Monitor) unwatch(events chan shown) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watchers, events)
}
