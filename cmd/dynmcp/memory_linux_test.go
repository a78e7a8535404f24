package main_test

import (
	"strconv"
	"strings"
	"testing"
)

// memory is the most that a process has held so far, in KB.
func memory(t *testing.T, pid int) int {
	t.Helper()
	kb, err := strconv.Atoi(strings.TrimSuffix(status(t, pid, "status", "VmHWM:"), " kB"))
	if err != nil {
		t.Fatal(err)
	}
	return kb
}
