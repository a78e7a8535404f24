package metrics

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	prom "github.com/VictoriaMetrics/metrics"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/event"
)

// help has the HELP text of each metric.
var help = [][2]string{
	{"dynmcp_calls_total", "Calls for servers that have ended, by how, and by outcome: done, not_sent or unknown."},
	{"dynmcp_call_duration_seconds", "Time from a host's call to its answer, of calls that were sent."},
	{"dynmcp_call_bytes_total", "Bytes of the params of calls and of their results."},
	{"dynmcp_dropped_notifications_total", "Notifications that were dropped because a host read too slowly or a server sent too many."},
	{"dynmcp_own_calls_total", "Calls that dynmcp's own tools have answered."},
	{"dynmcp_own_tokens_total", "Tokens of those answers, estimated."},
	{"dynmcp_search_queries_total", "Queries of searches for tools, by whether the answer shows a definition."},
	{"dynmcp_search_next_calls_total", "Calls of tools that came next after a search in the same session."},
	{"dynmcp_upstream_state", "1 for the state that a server is in."},
	{"dynmcp_upstream_starts_total", "How often a server was connected."},
	{"dynmcp_upstream_start_failures_total", "How often a start of a server failed."},
	{"dynmcp_calls_in_flight", "Calls of hosts that a server has to answer."},
	{"dynmcp_calls_waiting", "Calls that wait because of a limit of their server."},
	{"dynmcp_sandbox_bytes_total", "Bytes that passed the proxy of a server's sandbox since it started."},
	{"dynmcp_sandbox_refused_total", "Connections that a server's sandbox refused since it started."},
	{"dynmcp_sessions", "Hosts that are connected."},
	{"dynmcp_held_bytes", "Bytes held for hosts."},
	{"dynmcp_held_bytes_limit", "The most bytes that may be held for hosts."},
}

// withHelp completes the HELP lines, which the library leaves empty.
var withHelp = sync.OnceValue(func() *strings.Replacer {
	var pairs []string
	for _, h := range help {
		line := "# HELP " + h[0]
		pairs = append(pairs, line+"\n", line+" "+h[1]+"\n")
	}
	return strings.NewReplacer(pairs...)
})

var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

// series names a metric with its labels, which are pairs of a name and a value.
func series(metric string, labels ...string) string {
	text := []byte(metric)
	for i := 0; i+1 < len(labels); i += 2 {
		text = append(text, "{,"[min(i, 1)])
		text = append(text, labels[i]...)
		text = append(text, `="`...)
		text = append(text, inLabel.Replace(labels[i+1])...)
		text = append(text, '"')
	}
	if len(labels) > 0 {
		text = append(text, '}')
	}
	return string(text)
}

var inLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (m *Monitor) count(n int, metric string, labels ...string) {
	m.metrics.GetOrCreateCounter(series(metric, labels...)).Add(n)
}

func (m *Monitor) countCall(end event.Call) {
	m.count(1, "dynmcp_calls_total", "kind", end.Kind, "method", methodLabel(end.Method), "outcome", string(end.Outcome), "upstream", end.Upstream)
	if !end.Sent.IsZero() {
		took := m.metrics.GetOrCreatePrometheusHistogramExt(series("dynmcp_call_duration_seconds", "upstream", end.Upstream), seconds)
		took.Update(end.End.Sub(end.Began).Seconds())
	}
	m.count(end.Asked, "dynmcp_call_bytes_total", "direction", "params", "upstream", end.Upstream)
	m.count(end.Answered, "dynmcp_call_bytes_total", "direction", "result", "upstream", end.Upstream)
}

// countOwn counts a call of one of dynmcp's own tools.
func (m *Monitor) countOwn(end event.Call) {
	m.count(1, "dynmcp_own_calls_total", "tool", end.Tool)
	m.count(activity.Tokens(end.Result), "dynmcp_own_tokens_total", "tool", end.Tool)
	if end.Queries > 0 {
		m.count(end.Queries, "dynmcp_search_queries_total", "found", strconv.FormatBool(end.Shown > 0))
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.counts[end.From.ID] != nil { // else it has ended
			m.searched[end.From.ID] = true
		}
	}
}

// methodLabel returns the method of a call, "other" for unknown ones: a host must not be able to
// create labels.
func methodLabel(method string) string {
	switch method {
	case "tools/call", "resources/read", "prompts/get", "completion/complete", "tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list":
		return method
	}
	return "other"
}

// states are the values of the label state.
var states = []string{"idle", "loading", "ready", "lost", event.Failed, "evicted"}

// runMetrics returns the state of the run.
func (m *Monitor) runMetrics() *prom.Set {
	now := prom.NewSet()
	run := m.run.Load()
	if run == nil {
		return now
	}
	gauge := func(n float64, metric string, labels ...string) {
		now.GetOrCreateGauge(series(metric, labels...), nil).Set(n)
	}
	count := func(n uint64, metric string, labels ...string) {
		now.GetOrCreateCounter(series(metric, labels...)).Set(n)
	}
	for _, u := range (*run).Upstreams() {
		for _, state := range states {
			is := 0.
			if u.State == state {
				is = 1
			}
			gauge(is, "dynmcp_upstream_state", "state", state, "upstream", u.Name)
		}
		count(uint64(u.Starts), "dynmcp_upstream_starts_total", "upstream", u.Name)
		count(uint64(u.Failed), "dynmcp_upstream_start_failures_total", "upstream", u.Name)
		gauge(float64(u.InFlight), "dynmcp_calls_in_flight", "upstream", u.Name)
		gauge(float64(u.Waiting), "dynmcp_calls_waiting", "upstream", u.Name)
		if box := u.Sandbox; box != nil {
			count(uint64(box.ProxyBytes), "dynmcp_sandbox_bytes_total", "upstream", u.Name)
			count(uint64(box.Denied), "dynmcp_sandbox_refused_total", "upstream", u.Name)
		}
	}
	hosts := slices.DeleteFunc((*run).Sessions(), func(s event.Session) bool { return s.Replica })
	gauge(float64(len(hosts)), "dynmcp_sessions")
	held, most := (*run).Memory()
	gauge(float64(held), "dynmcp_held_bytes")
	gauge(float64(most), "dynmcp_held_bytes_limit")
	return now
}

// Metrics serves the metrics as Prometheus reads them.
func (m *Monitor) Metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var text bytes.Buffer
		m.metrics.WritePrometheus(&text)
		m.runMetrics().WritePrometheus(&text)
		prom.WriteProcessMetrics(&text)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = io.WriteString(w, m.withReplica(withHelp().Replace(text.String())))
	})
}

// withReplica adds the label replica to each line of the metrics, if there is one.
func (m *Monitor) withReplica(text string) string {
	if m.opts.Replica == "" {
		return text
	}
	var labelled strings.Builder
	for line := range strings.Lines(text) {
		at := strings.IndexAny(line, "{ ")
		switch {
		case strings.HasPrefix(line, "#") || at < 0:
			labelled.WriteString(line)
		case line[at] == '{':
			labelled.WriteString(strings.TrimSuffix(series(line[:at], "replica", m.opts.Replica), "}") + "," + line[at+1:])
		default:
			labelled.WriteString(series(line[:at], "replica", m.opts.Replica) + line[at:])
		}
	}
	return labelled.String()
}
