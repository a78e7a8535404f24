package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/transports"
)

// Nothing that a host or a server names makes another series.
func TestSeriesAreBounded(t *testing.T) {
	m, s := watched(t, MonitorOptions{})
	series := func() int {
		text, _ := get(t, s.URL+"/metrics")
		n := 0
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "dynmcp_") {
				n++
			}
		}
		return n
	}
	o := m
	calls := func(n int) {
		name := fmt.Sprint("n", n)
		from := event.Session{ID: name, User: name, Host: name}
		o.Opened(from)
		for _, kind := range []string{"ok", "tool_error", "error"} {
			o.Called(event.Call{Upstream: "up", Method: name, Tool: name, TraceParent: name, Kind: kind, Outcome: transports.Executed, From: from, Surface: "discover"})
		}
		o.Called(event.Call{From: from, Surface: "discover", Tool: "discover_tool", Queries: n})
		o.Closed(from)
	}
	calls(1)
	first := series()
	for n := range 100 {
		calls(n)
	}
	if got := series(); got != first || first == 0 {
		t.Errorf("there are %d series after 100 names, and %d after one", got, first)
	}
}
