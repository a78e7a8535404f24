package main_test

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

var consoleEvents = map[string]struct {
	event  mcptest.ConsoleEvent
	status int // of a verb
}{
	"Ctrl-Break": {mcptest.CtrlBreak, 128 + 2},
	"closed":     {mcptest.CtrlClose, 128 + 15},
}

// What a console sends beside Ctrl-C ends a session, its servers and what they started.
func TestConsoleEndsASession(t *testing.T) {
	t.Parallel()
	for name, c := range consoleEvents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := mcptest.Config(t, document([]entry{fake(t, "alpha"), deferred(t, "later", "Later")}))
			host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config}, Console: true})
			greet(host)
			pids := tree(t, host, "alpha", "later")
			host.Signal(c.event)
			leaves(t, host)
			mcptest.WaitGone(t, pids...)
			mcptest.WaitVanished(t, host.Marker()) // its console ends behind it
		})
	}
}

// A verb that they interrupt cancels its call, and its exit status tells the shell.
func TestConsoleInterruptsACall(t *testing.T) {
	t.Parallel()
	for name, c := range consoleEvents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := fake(t, "slow")
			config := mcptest.Config(t, document([]entry{slow}))
			host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "call", "slow/sleep", "ms=0", "-c", config}, Console: true})
			slow.WaitFor("call sleep", 1)
			host.Signal(c.event)
			if code := host.Wait(); code != c.status {
				t.Errorf("got exit status %d, want %d", code, c.status)
			}
			contains(t, host.Stderr(), "dynmcp: interrupted")
			slow.WaitFor("cancelled", 1)
		})
	}
}
