package metrics

import (
	"maps"
	"time"

	"github.com/dynmcp/dynmcp/internal/event"
)

// A State describes a run.
type State struct {
	Version   string          `json:"version"`
	Replica   string          `json:"replica,omitempty"`
	Uptime    float64         `json:"uptime_seconds"`
	Upstreams []UpstreamState `json:"upstreams"`
	Sessions  []SessionState  `json:"sessions"`
	Failures  []event.Failure `json:"failures"` // with causes that hosts were not told
	Messages  int64           `json:"messages"` // so far
	Lost      int64           `json:"messages_not_shown"`
}

// An UpstreamState describes an upstream.
type UpstreamState struct {
	event.Server

	Uptime    float64        `json:"uptime_seconds,omitempty"`
	FailedFor float64        `json:"failed_seconds,omitempty"` // since the first failed start after the last success
	Calls     int            `json:"calls"`
	Errors    int            `json:"errors"`
	Kinds     map[string]int `json:"errors_by_kind,omitempty"`
	P50       float64        `json:"p50_ms"` // of the last calls, without the start of the upstream
	P99       float64        `json:"p99_ms"`
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
	st := State{Version: m.opts.Version, Replica: m.opts.Replica, Uptime: time.Since(m.began).Seconds(), Upstreams: []UpstreamState{}, Sessions: []SessionState{}, Failures: []event.Failure{}}
	run := m.run.Load()
	if run == nil {
		return st
	}
	safe := func(text string) string { return m.opts.Redact(text, true) }
	upstreams, sessions := (*run).Upstreams(), (*run).Sessions()
	m.mu.Lock()
	defer m.mu.Unlock()
	st.Messages, st.Lost = m.lastSeq, m.lost
	for _, u := range upstreams {
		s := UpstreamState{Server: u.Redact(safe)}
		if !u.FailedAt.IsZero() {
			s.FailedFor = time.Since(u.FailedAt).Seconds()
		}
		if !u.Since.IsZero() {
			s.Uptime = time.Since(u.Since).Seconds()
		}
		if calls := m.stats[u.Name]; calls != nil {
			calls.Measure()
			s.Calls, s.Errors, s.Kinds, s.P50, s.P99 = calls.Calls, calls.Errors, maps.Clone(calls.Kinds), calls.Sent50, calls.Sent99
		}
		st.Upstreams = append(st.Upstreams, s)
	}
	for _, f := range (*run).Failures() {
		f.Text = safe(f.Text)
		st.Failures = append(st.Failures, f)
	}
	for _, s := range sessions {
		shown := SessionState{ID: s.ID, Host: safe(s.Host), User: s.User, Namespace: s.Server}
		if c := m.counts[s.ID]; c != nil {
			shown.In, shown.Out = c.In, c.Out
		}
		st.Sessions = append(st.Sessions, shown)
	}
	return st
}
