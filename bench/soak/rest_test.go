package main

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// isGuard recognizes guards by their name, with and without a fence.
func TestGuardsAreKnown(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	for name, want := range map[string]bool{"dynmcp-guard": true, "dynmcp-guard-fenced": true, "dynmcp-guardian": false, "other": false} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Args[0] = name
		cmd.Env = append(os.Environ(), "SOAK_TEST_WAITS=1")
		input, err1 := cmd.StdinPipe()
		output, err2 := cmd.StdoutPipe()
		if err := errors.Join(err1, err2, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		if _, err := output.Read(make([]byte, 1)); err != nil { // it has its name once it runs
			t.Fatal(err)
		}
		if got := isGuard(cmd.Process.Pid); got != want {
			t.Errorf("%s: got %t", name, got)
		}
		input.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
