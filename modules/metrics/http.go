package metrics

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// pingEvery is the interval of pings on an idle stream.
const pingEvery = 15 * time.Second

// writeWithin is how long a watcher may take to read one event.
const writeWithin = 10 * time.Second

// Page serves the state as JSON, the events as a stream, and the metrics.
func (m *Monitor) Page() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /debug/state": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			_ = json.NewEncoder(w).Encode(m.State()) // fails only if the client is gone
		}),
		"GET /debug/stream": http.HandlerFunc(m.stream),
		"GET /metrics":      m.Metrics(),
	}
}

// pingNow returns the ping event.
func pingNow() shown {
	return shown{"ping", map[string]string{"time": time.Now().UTC().Format(time.RFC3339)}}
}

// stream sends the stored messages and then new events: message, connection, ping.
func (m *Monitor) stream(w http.ResponseWriter, r *http.Request) {
	events, before, ok := m.watch()
	if !ok {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, `{"error":"%d watch already"}`+"\n", maxWatchers)
		return
	}
	defer m.unwatch(events)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	send := func(e shown) bool {
		data, err := json.Marshal(e.data)
		if err != nil {
			return true
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeWithin))
		_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.name, data)
		return err == nil && out.Flush() == nil
	}
	for _, msg := range before {
		if !send(shown{"message", msg}) {
			return
		}
	}
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	if !send(pingNow()) {
		return
	}
	for {
		var e shown
		select {
		case e = <-events:
		case <-ticker.C:
			e = pingNow()
		case <-r.Context().Done():
			return
		case <-m.done:
			return
		}
		if !send(e) {
			return
		}
	}
}
