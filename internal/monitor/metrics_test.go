package monitor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/aggregator"
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
	o := m.Observer()
	calls := func(n int) {
		name := fmt.Sprint("n", n)
		from := aggregator.SessionInfo{ID: name, User: name, Host: name}
		o.Session(from, true)
		for _, kind := range []string{"ok", "tool_error", "error"} {
			o.Call(aggregator.CallEnd{Session: name, Upstream: "up", Method: name, Tool: name, TraceParent: name, Kind: kind, Outcome: transports.Executed, From: from, Surface: "discover"})
		}
		o.Builtin(aggregator.BuiltinEnd{From: from, Surface: "discover", Tool: "discover_tool", Queries: n})
		o.Session(from, false)
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
