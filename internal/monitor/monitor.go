// Package monitor shows the activity of a run that serves many hosts, as a live page, as
// metrics and as traces. It is an Observer of the aggregator, and changes nothing.
package monitor

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	prom "github.com/VictoriaMetrics/metrics"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/internal/tap"
)

// MonitorOptions configure a Monitor.
type MonitorOptions struct {
	Version string
	// Replica is the name of this replica, a label of the metrics; "" without a cluster.
	Replica string
	// Redact removes secrets from a text. Of a text whose end is missing (not whole) it returns
	// the part that is safe to show. It is applied before anything is stored.
	Redact func(text string, whole bool) (safe string)
	// Trace is called with each call; may be nil.
	Trace func(aggregator.CallEnd)
}

// A Monitor stores recent events: bounded, redacted.
type Monitor struct {
	opts    MonitorOptions
	began   time.Time
	run     atomic.Pointer[aggregator.Aggregator] // nil before Watch
	metrics *prom.Set                             // counted as events occur

	incoming chan Message // not redacted yet
	lost     atomic.Int64 // messages dropped for lack of room
	done     chan struct{}
	ended    sync.WaitGroup

	mu       sync.Mutex
	messages []Message // the last ones, oldest first
	lastSeq  int64
	stats    map[string]*callStats // by upstream
	counts   map[string]*counts    // by session
	watchers map[chan event]bool
	searched map[string]bool // sessions whose last call was a search
}

// Limits of stored and shown data.
const (
	maxMessages    = 500
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

	text []byte // until it is redacted
}

// A Connection is the beginning or the end of a host's session.
type Connection struct {
	Event     string `json:"event"` // "connected" or "disconnected"
	Namespace string `json:"namespace"`
	Session   string `json:"session"`
	Host      string `json:"host,omitempty"`
}

// An event is sent to watchers of the stream.
type event struct {
	name string
	data any
}

type counts struct{ In, Out int64 }

// callStats are statistics of the calls of an upstream.
type callStats struct {
	calls, failed int64
	byKind        map[string]int64
	times         []time.Duration // of the last calls, without the start of their upstream
	next          int             // index in times to overwrite next
}

// New returns a monitor. Close must be called.
func New(opts MonitorOptions) *Monitor {
	if opts.Redact == nil {
		opts.Redact = func(text string, _ bool) string { return text }
	}
	m := &Monitor{
		opts:     opts,
		metrics:  prom.NewSet(),
		began:    time.Now(),
		incoming: make(chan Message, 1024),
		done:     make(chan struct{}),
		stats:    map[string]*callStats{},
		counts:   map[string]*counts{},
		watchers: map[chan event]bool{},
		searched: map[string]bool{},
	}
	prom.ExposeMetadata(true)
	m.count(0, "dynmcp_dropped_notifications_total")
	m.ended.Go(m.keep)
	return m
}

// Watch makes the monitor show the state of a run.
func (m *Monitor) Watch(run *aggregator.Aggregator) { m.run.Store(run) }

// Close ends the streams of watchers.
func (m *Monitor) Close() {
	close(m.done)
	m.ended.Wait()
}

// Observer returns the monitor's callbacks for the aggregator.
func (m *Monitor) Observer() *aggregator.Observer {
	dropped := func(aggregator.SessionInfo) { m.count(1, "dynmcp_dropped_notifications_total") }
	return &aggregator.Observer{Call: m.call, Builtin: m.builtin, Session: m.session, Dropped: dropped, Close: func() {}}
}

// Follow makes the monitor show the messages of hosts, which costs a copy of each.
func (m *Monitor) Follow(t *tap.Tap) { t.Watch(m.message) }

func (m *Monitor) call(end aggregator.CallEnd) {
	m.countCall(end)
	if m.opts.Trace != nil {
		m.opts.Trace(end)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if end.Tool != "" && m.searched[end.Session] {
		delete(m.searched, end.Session)
		m.count(1, "dynmcp_search_next_calls_total", "upstream", end.Upstream)
	}
	s := m.stats[end.Upstream]
	if s == nil {
		s = &callStats{byKind: map[string]int64{}}
		m.stats[end.Upstream] = s
	}
	s.add(end)
}

// add counts a call.
func (s *callStats) add(end aggregator.CallEnd) {
	s.calls++
	if end.Kind != "ok" {
		s.failed++
		s.byKind[end.Kind]++
	}
	if end.Sent.IsZero() {
		return
	}
	took := end.End.Sub(end.Sent)
	if len(s.times) < maxTimes {
		s.times = append(s.times, took)
		return
	}
	s.times[s.next] = took
	s.next = (s.next + 1) % maxTimes
}

// quantile returns the duration that the given fraction of the last calls did not exceed, at most
// 1; 0 if there were none.
func (s *callStats) quantile(part float64) time.Duration {
	if s == nil {
		return 0
	}
	return activity.Quantile(slices.Sorted(slices.Values(s.times)), part)
}

func (m *Monitor) session(s aggregator.SessionInfo, opened bool) {
	c := Connection{Event: "disconnected", Namespace: s.Server, Session: s.ID, Host: m.opts.Redact(s.Host, true)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if opened {
		c.Event, m.counts[s.ID] = "connected", &counts{}
	} else {
		delete(m.counts, s.ID)
		delete(m.searched, s.ID)
	}
	m.tellLocked(event{"connection", c})
}

// message receives a passing message, which it must not delay: keep redacts it later.
func (m *Monitor) message(conn tap.Connection, in bool, pieces [][]byte) {
	if conn.Session == "" { // an upstream
		return
	}
	msg := Message{At: time.Now(), Direction: tap.Direction(in), Namespace: conn.Server, Session: conn.Session}
	for _, piece := range pieces {
		msg.Size += len(piece)
		msg.text = append(msg.text, piece[:min(len(piece), readText-len(msg.text))]...)
	}
	m.mu.Lock()
	switch c := m.counts[conn.Session]; { // nil after its end
	case c == nil:
	case in:
		c.In++
	default:
		c.Out++
	}
	m.mu.Unlock()
	select {
	case m.incoming <- msg:
	default:
		m.lost.Add(1)
	}
}

// keep redacts received messages and notifies watchers, until Close.
func (m *Monitor) keep() {
	for {
		select {
		case <-m.done:
			return
		case msg := <-m.incoming:
			msg.redact(m.opts.Redact)
			m.mu.Lock()
			m.lastSeq++
			msg.Seq = m.lastSeq
			if m.messages = append(m.messages, msg); len(m.messages) > maxMessages {
				m.messages = slices.Delete(m.messages, 0, len(m.messages)-maxMessages)
			}
			m.tellLocked(event{"message", msg})
			m.mu.Unlock()
		}
	}
}

// redact sets Message from text: all of it as JSON if it is short, otherwise its beginning as a
// string.
func (msg *Message) redact(safe func(string, bool) string) {
	whole := len(msg.text) == msg.Size
	text := safe(string(msg.text), whole)
	msg.text = nil
	if whole && len(text) <= maxMessageText && json.Valid([]byte(text)) {
		msg.Message = json.RawMessage(text)
		return
	}
	msg.Cut = !whole || len(text) > maxMessageText
	msg.Message, _ = json.Marshal(string([]byte(text)[:min(len(text), maxMessageText)])) // a string always marshals
}

// tellLocked notifies watchers; one that is behind misses the event.
func (m *Monitor) tellLocked(e event) {
	for w := range m.watchers {
		select {
		case w <- e:
		default:
			m.lost.Add(1)
		}
	}
}

// watch returns a channel for new events, and the stored messages. ok is false if there are too
// many watchers.
func (m *Monitor) watch() (events chan event, before []Message, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.watchers) == maxWatchers {
		return nil, nil, false
	}
	events = make(chan event, 256)
	m.watchers[events] = true
	return events, slices.Clone(m.messages), true
}

func (m *Monitor) unwatch(events chan event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watchers, events)
}

// A State describes a run.
type State struct {
	Version   string          `json:"version"`
	Replica   string          `json:"replica,omitempty"`
	Uptime    float64         `json:"uptime_seconds"`
	Upstreams []UpstreamState `json:"upstreams"`
	Sessions  []SessionState  `json:"sessions"`
	Failures  []FailureState  `json:"failures"` // with causes that hosts were not told
	Messages  int64           `json:"messages"` // so far
	Lost      int64           `json:"messages_not_shown"`
}

// An UpstreamState describes an upstream.
type UpstreamState struct {
	Name      string           `json:"name"`
	State     string           `json:"state"`
	Lazy      bool             `json:"lazy"`
	Transport string           `json:"transport"`
	PID       int              `json:"pid,omitempty"`
	Uptime    float64          `json:"uptime_seconds,omitempty"`
	Starts    int64            `json:"starts"`
	Failed    int64            `json:"starts_failed"`
	FailedFor float64          `json:"failed_seconds,omitempty"` // since the first failed start after the last success
	Protocol  string           `json:"protocol,omitempty"`
	Tools     int              `json:"tools"`
	InFlight  int              `json:"in_flight"`
	Waiting   int              `json:"waiting,omitempty"` // because of max_calls
	Calls     int64            `json:"calls"`
	Errors    int64            `json:"errors"`
	Kinds     map[string]int64 `json:"errors_by_kind,omitempty"`
	P50       float64          `json:"p50_ms"` // of the last calls, without the start of the upstream
	P99       float64          `json:"p99_ms"`
	Err       string           `json:"error,omitempty"`
	Sandbox   *sandbox.Status  `json:"sandbox,omitempty"`
}

// A FailureState is a failure whose cause a host was not told, by its reference.
type FailureState struct {
	Reference string    `json:"reference"`
	Upstream  string    `json:"upstream"`
	At        time.Time `json:"at"`
	Text      string    `json:"text"`
}

// A SessionState is a host's session.
type SessionState struct {
	ID        string `json:"id"`
	Host      string `json:"host,omitempty"`
	User      string `json:"user,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	In        int64  `json:"in"` // messages from it
	Out       int64  `json:"out"`
}

// State returns the present state of the run.
func (m *Monitor) State() State {
	st := State{Version: m.opts.Version, Replica: m.opts.Replica, Uptime: time.Since(m.began).Seconds(), Upstreams: []UpstreamState{}, Sessions: []SessionState{}, Failures: []FailureState{}, Lost: m.lost.Load()}
	run := m.run.Load()
	if run == nil {
		return st
	}
	upstreams, sessions := run.Status().Upstreams(), run.Status().Sessions()
	m.mu.Lock()
	defer m.mu.Unlock()
	st.Messages = m.lastSeq
	for _, u := range upstreams {
		s := UpstreamState{
			Name: u.Name, State: string(u.State), Lazy: u.Lazy, Transport: u.Transport, PID: u.Process.PID, Starts: u.Starts, Failed: u.Failed,
			Protocol: u.Protocol, Tools: u.Tools, InFlight: u.InFlight, Waiting: u.Waiting, Err: m.opts.Redact(u.Err, true),
		}
		if b := u.Process.Sandbox; b != nil {
			s.Sandbox = &sandbox.Status{Missing: b.Missing, ProxyBytes: b.ProxyBytes, Denied: b.Denied}
			for _, why := range b.LastDenied {
				s.Sandbox.LastDenied = append(s.Sandbox.LastDenied, m.opts.Redact(why, true))
			}
		}
		if !u.FailedAt.IsZero() {
			s.FailedFor = time.Since(u.FailedAt).Seconds()
		}
		if !u.Since.IsZero() {
			s.Uptime = time.Since(u.Since).Seconds()
		}
		if calls := m.stats[u.Name]; calls != nil {
			s.Calls, s.Errors, s.Kinds = calls.calls, calls.failed, maps.Clone(calls.byKind)
			s.P50, s.P99 = calls.quantile(0.5).Seconds()*1e3, calls.quantile(0.99).Seconds()*1e3
		}
		st.Upstreams = append(st.Upstreams, s)
	}
	for _, f := range run.Status().Failures() {
		st.Failures = append(st.Failures, FailureState{f.Reference, f.Upstream, f.At, m.opts.Redact(f.Text, true)})
	}
	for _, s := range sessions {
		shown := SessionState{ID: s.ID, Host: m.opts.Redact(s.Host, true), User: s.User, Namespace: s.Server}
		if c := m.counts[s.ID]; c != nil {
			shown.In, shown.Out = c.In, c.Out
		}
		st.Sessions = append(st.Sessions, shown)
	}
	return st
}
