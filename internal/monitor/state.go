package monitor

import (
	"maps"
	"time"

	"github.com/dynmcp/dynmcp/internal/sandbox"
)

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
	Waiting   int              `json:"waiting,omitempty"` // because of a limit of the server
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
	upstreams, sessions := (*run).Upstreams(), (*run).Sessions()
	m.mu.Lock()
	defer m.mu.Unlock()
	st.Messages = m.lastSeq
	for _, u := range upstreams {
		s := UpstreamState{
			Name: u.Name, State: u.State, Lazy: u.Lazy, Transport: u.Transport, PID: u.PID, Starts: u.Starts, Failed: u.Failed,
			Protocol: u.Protocol, Tools: u.Tools, InFlight: u.InFlight, Waiting: u.Waiting, Err: m.opts.Redact(u.Err, true),
		}
		if b := u.Sandbox; b != nil {
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
	for _, f := range (*run).Failures() {
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
