package main_test

import (
	"slices"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Containers end with the run, too, although its processes are only their clients.
func TestContainersEndWithAKilledRun(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, containers := mcptest.Engine(t)
			s := fake(t, "deaf", "-fault", "ignore-eof,ignore-term")
			args := slices.Concat([]string{"run", "-i", "--rm", s.fields["command"].(string)}, s.fields["args"].([]string))
			host := serve(t, s.with("command", engine).with("args", args))
			if len(containers()) != 1 {
				t.Fatalf("%d containers run", len(containers()))
			}
			host.Signal(sig)
			host.Wait()
			mcptest.WaitVanished(t, host.Marker())
			if left := containers(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
