package aggregator

import (
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/aggregator/internal/observe"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// No name of a peer's choice reaches records, metrics and pages whole if it is long.
func TestNamesAreCutForObservers(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	s := withConfig(t, "").openSession(Identity{User: long})
	s.Introduce(wire.Quote(long))
	var got CallEnd
	reporter := observe.Reporter{Observer: &Observer{Call: func(end CallEnd) { got = end }}, Log: slog.New(slog.DiscardHandler)}
	reporter.Ended(CallEnd{From: s.Info(), Upstream: long, Method: long, Tool: long, TraceParent: long})
	for place, name := range map[string]string{
		"host": got.From.Host, "user": got.From.User, "server": got.Upstream, "method": got.Method, "tool": got.Tool, "trace": got.TraceParent,
	} {
		if n := utf8.RuneCountInString(name); n != display.MostName || !strings.HasPrefix(long, name) {
			t.Errorf("%s: %d characters, want %d", place, n, display.MostName)
		}
	}
}
