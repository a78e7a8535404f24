package mcptest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Alive reports whether a process exists and is no zombie.
func Alive(pid int) bool { return exists(pid) && !zombie(pid) }

// WaitGone waits until none of the processes is alive.
func WaitGone(t testing.TB, pids ...int) {
	t.Helper()
	living := func() []int {
		return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !Alive(pid) })
	}
	if !waitNone(watchdog, living) {
		t.Fatalf("still alive: %s", describe(living()))
	}
}

// waitNone polls: there is no event for the end of a process that is not our child.
func waitNone(d time.Duration, living func() []int) bool {
	deadline := time.Now().Add(d)
	for len(living()) > 0 {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
	return true
}

func describe(pids []int) string {
	var parts []string
	for _, pid := range pids {
		parts = append(parts, fmt.Sprintf("%d (%s)", pid, commandLine(pid)))
	}
	return strings.Join(parts, ", ")
}
