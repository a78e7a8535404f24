package record

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/event"
)

// A call takes its session's share of the record, whether a server or dynmcp answers.
func TestCallsTakeTheShareOfTheirSession(t *testing.T) {
	from := event.Session{ID: "s", Share: "192.0.2.1", Host: "claude-code"}
	if got := entryOf(event.Call{From: from}).User; got != "192.0.2.1" {
		t.Errorf("a call of a server takes the share of %q", got)
	}
	if got := builtinEntry(event.Builtin{From: from}).User; got != "192.0.2.1" {
		t.Errorf("a call of a tool of dynmcp's own takes the share of %q", got)
	}
}
