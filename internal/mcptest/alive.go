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

// WaitVanished waits until no process has the environment entry NAME=VALUE; see Processes.
func WaitVanished(t testing.TB, entry string) {
	t.Helper()
	if !waitNone(watchdog, func() []int { return Processes(entry) }) {
		t.Fatalf("left behind: %s", describe(Processes(entry)))
	}
}

// Eventually waits until holds returns true, for states without an event. The test fails with what
// if that takes too long.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !eventually(watchdog, holds) {
		t.Fatalf("%s: this never became true", what)
	}
}

// Soon is Eventually for states that take milliseconds: it fails after half a minute.
func Soon(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if d := min(watchdog, 30*time.Second); !eventually(d, holds) {
		t.Fatalf("%s: this was not true after %v", what, d)
	}
}

// waitNone waits until living returns no processes.
func waitNone(d time.Duration, living func() []int) bool {
	return eventually(d, func() bool { return len(living()) == 0 })
}

// eventually polls: there is no event for the end of a process that is not our child, or for a
// line in a file.
func eventually(d time.Duration, holds func() bool) bool {
	deadline := time.Now().Add(d)
	for pause := time.Millisecond; !holds(); pause = min(2*pause, 20*time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
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
