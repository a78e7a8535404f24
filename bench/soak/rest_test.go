package main

import (
	"os/exec"
	"runtime"
	"testing"
)

// Guards are known by their name, with a fence and without.
func TestGuardsAreKnown(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	for name, want := range map[string]bool{"dynmcp-guard": true, "dynmcp-guard-fenced": true, "dynmcp-guardian": false, "sleep": false} {
		cmd := exec.Command("sleep", "600")
		cmd.Args[0] = name
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if got := isGuard(cmd.Process.Pid); got != want {
			t.Errorf("%s: got %t", name, got)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
