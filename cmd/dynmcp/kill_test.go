package main_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"dynmcp/internal/mcptest"
)

// kills is how often dynmcp is killed in each way; bench/soak does it a
// thousand times.
const kills = 50

// hostile are servers whose trees resist: grandchildren, some of which ignore
// SIGTERM or have a session of their own, one whose parent has ended, and a
// leader that heeds neither the end of its input nor SIGTERM.
func hostile(t *testing.T) []entry {
	return []entry{
		fake(t, "forks", "-fault", "double-fork"),
		fake(t, "deaf", "-fault", "double-fork,ignore-eof,ignore-term"),
	}
}

func TestNothingSurvivesAKill(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no guard here")
	}
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range kills / 10 {
				ten := make([]*mcptest.Host, 10)
				for i := range ten {
					servers := hostile(t)
					ten[i] = serve(t, servers...)
					for _, s := range servers {
						s.WaitFor("child", 5)
					}
				}
				for _, host := range ten {
					host.Signal(sig)
				}
				for _, host := range ten {
					host.Wait()
					mustVanish(t, host.Marker())
				}
			}
		})
	}
}

// mustVanish waits for the processes that carry a marker; a guard has three
// seconds for what is below it.
func mustVanish(t *testing.T, marker string) {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); len(mcptest.Processes(marker)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("left behind: %v", mcptest.Processes(marker))
		}
	}
}

// A kill in the middle of a start: the command is not there yet, or just now.
func TestNothingSurvivesAKillDuringAStart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no guard here")
	}
	t.Parallel()
	for i := range 20 {
		host := start(t, hostile(t)...)
		host.Go("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`)
		time.Sleep(time.Duration(i) * 2 * time.Millisecond)
		host.Kill()
		mustVanish(t, host.Marker())
	}
}
