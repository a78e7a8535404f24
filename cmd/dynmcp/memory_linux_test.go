package main_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// memory is the most that a process has held so far, in KB.
func memory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kb int
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	return kb
}
