package monitor

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/lazy"
)

// metrics are exported in the text format of Prometheus, from a registry of their own.
type metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	bytes    *prometheus.CounterVec
	dropped  prometheus.Counter
	own      *prometheus.CounterVec // calls of dynmcp's own tools
	searches *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	next     *prometheus.CounterVec
}

func newMetrics(m *Monitor) metrics {
	all := metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dynmcp_calls_total", Help: "Calls for upstreams that have ended, by how, and by outcome: done, not_sent or unknown.",
		}, []string{"upstream", "method", "kind", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "dynmcp_call_duration_seconds", Help: "Time from a host's call to its answer, of calls that were sent.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"upstream"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dynmcp_call_bytes_total", Help: "Bytes of the params of calls and of their results.",
		}, []string{"upstream", "direction"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "dynmcp_dropped_notifications_total", Help: "Notifications that were dropped because a host read too slowly.",
		}),
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	all.own = counter("dynmcp_own_calls_total", "Calls that dynmcp's own tools have answered.", "tool")
	all.tokens = counter("dynmcp_own_tokens_total", "Tokens of those answers, estimated.", "tool")
	all.searches = counter("dynmcp_search_queries_total", "Queries of searches for tools, by whether the answer shows a definition.", "found")
	all.next = counter("dynmcp_search_next_calls_total", "Calls of tools that came next after a search in the same session.", "upstream")
	registry := prometheus.Registerer(all.registry)
	if m.opts.Replica != "" {
		registry = prometheus.WrapRegistererWith(prometheus.Labels{"replica": m.opts.Replica}, registry)
	}
	registry.MustRegister(all.calls, all.seconds, all.bytes, all.dropped, all.own, all.tokens, all.searches, all.next, &runCollector{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return all
}

func (ms *metrics) call(end aggregator.CallEnd) {
	ms.calls.WithLabelValues(end.Upstream, methodLabel(end.Method), end.Kind, string(end.Outcome)).Inc()
	if !end.Sent.IsZero() {
		ms.seconds.WithLabelValues(end.Upstream).Observe(end.End.Sub(end.Began).Seconds())
	}
	ms.bytes.WithLabelValues(end.Upstream, "params").Add(float64(end.Asked))
	ms.bytes.WithLabelValues(end.Upstream, "result").Add(float64(end.Answered))
}

// ownCall counts an answer of one of dynmcp's own tools.
func (ms *metrics) ownCall(end aggregator.OwnEnd) {
	ms.own.WithLabelValues(end.Tool).Inc()
	ms.tokens.WithLabelValues(end.Tool).Add(float64(activity.Tokens(end.Result)))
	if end.Queries > 0 {
		ms.searches.WithLabelValues(strconv.FormatBool(end.Shown > 0)).Add(float64(end.Queries))
	}
}

// own handles a call of one of dynmcp's own tools.
func (m *Monitor) own(end aggregator.OwnEnd) {
	m.metrics.ownCall(end)
	if end.Queries > 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.searched[end.From.ID] = true
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

// A runCollector collects the state of a run when it is scraped.
type runCollector struct{ monitor *Monitor }

var (
	stateDesc    = prometheus.NewDesc("dynmcp_upstream_state", "1 for the state that an upstream is in.", []string{"upstream", "state"}, nil)
	startsDesc   = prometheus.NewDesc("dynmcp_upstream_starts_total", "How often an upstream was connected.", []string{"upstream"}, nil)
	failedDesc   = prometheus.NewDesc("dynmcp_upstream_start_failures_total", "How often a start of an upstream failed.", []string{"upstream"}, nil)
	inFlightDesc = prometheus.NewDesc("dynmcp_calls_in_flight", "Calls of hosts that an upstream has to answer.", []string{"upstream"}, nil)
	waitingDesc  = prometheus.NewDesc("dynmcp_calls_waiting", "Calls that wait because of max_calls.", []string{"upstream"}, nil)
	proxiedDesc  = prometheus.NewDesc("dynmcp_sandbox_bytes_total", "Bytes that passed the proxy of an upstream's sandbox since it started.", []string{"upstream"}, nil)
	refusedDesc  = prometheus.NewDesc("dynmcp_sandbox_refused_total", "Connections that an upstream's sandbox refused since it started.", []string{"upstream"}, nil)
	sessionsDesc = prometheus.NewDesc("dynmcp_sessions", "Hosts that are connected.", nil, nil)
	heldDesc     = prometheus.NewDesc("dynmcp_held_bytes", "Bytes held for hosts.", nil, nil)
	mostHeldDesc = prometheus.NewDesc("dynmcp_held_bytes_limit", "The most bytes that may be held for hosts.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *runCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		stateDesc, startsDesc, failedDesc, inFlightDesc, waitingDesc, proxiedDesc, refusedDesc, sessionsDesc, heldDesc, mostHeldDesc,
	} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *runCollector) Collect(values chan<- prometheus.Metric) {
	run := c.monitor.run.Load()
	if run == nil {
		return
	}
	for _, u := range run.Status().Upstreams() {
		for _, state := range []lazy.State{lazy.Idle, lazy.Loading, lazy.Ready, lazy.Lost, aggregator.Failed, lazy.Evicted} {
			is := 0.
			if u.State == state {
				is = 1
			}
			values <- prometheus.MustNewConstMetric(stateDesc, prometheus.GaugeValue, is, u.Name, string(state))
		}
		values <- prometheus.MustNewConstMetric(startsDesc, prometheus.CounterValue, float64(u.Starts), u.Name)
		values <- prometheus.MustNewConstMetric(failedDesc, prometheus.CounterValue, float64(u.Failed), u.Name)
		values <- prometheus.MustNewConstMetric(inFlightDesc, prometheus.GaugeValue, float64(u.InFlight), u.Name)
		values <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(u.Waiting), u.Name)
		if box := u.Process.Sandbox; box != nil {
			values <- prometheus.MustNewConstMetric(proxiedDesc, prometheus.CounterValue, float64(box.ProxyBytes), u.Name)
			values <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(box.Refused), u.Name)
		}
	}
	hosts := slices.DeleteFunc(run.Status().Sessions(), func(s aggregator.SessionInfo) bool { return s.Replica })
	values <- prometheus.MustNewConstMetric(sessionsDesc, prometheus.GaugeValue, float64(len(hosts)))
	held, most := run.Status().Held()
	values <- prometheus.MustNewConstMetric(heldDesc, prometheus.GaugeValue, float64(held))
	values <- prometheus.MustNewConstMetric(mostHeldDesc, prometheus.GaugeValue, float64(most))
}
