package record

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/event"
)

// A call takes its session's share of the record.
func TestCallsTakeTheShareOfTheirSession(t *testing.T) {
	from := event.Session{ID: "s", Share: "192.0.2.1", Host: "claude-code"}
	if got := entryOf(event.Call{From: from}).User; got != "192.0.2.1" {
		t.Errorf("a call takes the share of %q", got)
	}
}
