package aggregator

import (
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/aggregator/internal/observe"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// lastCall observes calls.
type lastCall struct {
	event.Observers
	got event.Call
}

func (l *lastCall) Called(c event.Call) { l.got = c }

// No name of a peer's choice reaches records, metrics and pages whole if it is long.
func TestNamesAreCutForObservers(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	s := withConfig(t, "").openSession(Identity{User: long})
	s.Introduce(wire.Quote(long))
	var last lastCall
	reporter := observe.Reporter{Observers: event.Observers{&last}, Log: slog.New(slog.DiscardHandler)}
	reporter.Ended(event.Call{From: s.Info(), Upstream: long, Method: long, Tool: long, TraceParent: long})
	got := last.got
	for place, name := range map[string]string{
		"host": got.From.Host, "user": got.From.User, "server": got.Upstream, "method": got.Method, "tool": got.Tool, "trace": got.TraceParent,
	} {
		if n := utf8.RuneCountInString(name); n != display.MostName || !strings.HasPrefix(long, name) {
			t.Errorf("%s: %d characters, want %d", place, n, display.MostName)
		}
	}
}
