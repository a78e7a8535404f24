//go:build e2e

package mcptest_test

import (
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

func TestJunk(t *testing.T) {
	t.Parallel()
	h := ready(t, "-fault", "junk:40", "-fault-tool", "pid")
	before := len(h.Lines())
	h.Tool("pid", nil)
	if got := len(h.Lines()) - before; got != 41 {
		t.Errorf("got %d lines, want 40 and the answer", got)
	}
}

func TestStderrFlood(t *testing.T) {
	t.Parallel()
	h := ready(t, "-fault", "stderr-flood:100000", "-fault-tool", "pid")
	h.Tool("pid", nil)
	if got := strings.Count(h.WaitStderr("that was all"), "x"); got != 100_000 {
		t.Errorf("got %d bytes, want 100000", got)
	}
}

func TestNoiseOnDiscover(t *testing.T) {
	t.Parallel()
	const complaint = "Traceback"
	h := mcptest.StartFake(t, "-fault", "noisy-exit-discover")
	h.Go("server/discover", `{}`)
	if got := h.Wait(); got != 4 || len(h.Stderr()) < 6000 || !strings.Contains(h.Stderr(), complaint) {
		t.Errorf("got status %d and %d bytes", got, len(h.Stderr()))
	}
	h = ready(t, "-fault", "noisy-hang-discover")
	if !unanswered(h, h.Go("server/discover", `{}`)) || len(h.WaitStderr(complaint)) == 0 {
		t.Error("it was answered")
	}
}
