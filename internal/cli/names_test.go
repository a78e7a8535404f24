package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/display"
)

// A name of a peer's choice is short in the log; a text about a failure is not cut.
func TestNamesAreCutInTheLog(t *testing.T) {
	long := strings.Repeat("x", 2*display.MostName)
	for _, key := range []string{"method", "tool", "upstream", "namespace", "id", "err"} {
		var text bytes.Buffer
		LoggerAt(&text, slog.LevelInfo).Info("message", key, long)
		want := display.MostName
		if key == "err" {
			want = len(long)
		}
		if got := strings.Count(text.String(), "x"); got != want {
			t.Errorf("%s: %d characters, want %d", key, got, want)
		}
	}
}
