package main_test

import (
	"os"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Control-C ends a verb: nothing that it started is left, and a running call is cancelled.
func TestInterruptedVerbs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		server []string
		verb   []string
		until  string // in the ledger
	}{
		{"a start", []string{"-fault", "hang-init"}, []string{"call", "slow/echo"}, "start"},
		{"a test", []string{"-fault", "hang-init"}, []string{"test", "slow"}, "start"},
		{"a search", []string{"-fault", "hang-init"}, []string{"find", "echo"}, "start"},
		{"a call", nil, []string{"call", "slow/sleep", "ms=0"}, "call sleep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			slow := fake(t, "slow", c.server...)
			config := mcptest.Config(t, document([]entry{slow}))
			host := mcptest.Start(t, mcptest.HostOptions{Args: append([]string{mcptest.Dynmcp(t)}, append(c.verb, "-c", config)...), Console: true})
			slow.WaitFor(c.until, 1)
			host.Signal(os.Interrupt)
			if code := host.Wait(); code != 130 {
				t.Errorf("got exit status %d, want 130", code)
			}
			contains(t, host.Stderr(), "dynmcp: interrupted")
			for _, line := range host.Lines() {
				if strings.Contains(string(line), "FAIL") {
					t.Errorf("an interrupt is no failure: %s", line)
				}
			}
			if c.until != "start" {
				slow.WaitFor("cancelled", 1)
			}
		})
	}
}
