package main_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// kills is how often dynmcp is killed in each way; bench/soak does it a
// thousand times.
const kills = 4

// hostile are servers whose trees are hard to end: grandchildren, some of which ignore
// SIGTERM or have a session of their own, one whose parent has ended, and a leader that heeds
// neither the end of its input nor SIGTERM.
func hostile(t *testing.T) []entry {
	return []entry{
		fake(t, "forks", "-fault", "double-fork"),
		fake(t, "deaf", "-fault", "double-fork,ignore-eof,ignore-term"),
	}
}

func TestNothingSurvivesAKill(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
		t.Skip("there is neither a guard nor a job here")
	}
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hosts := make([]*mcptest.Host, kills)
			for i := range hosts {
				servers := hostile(t)
				hosts[i] = serve(t, servers...)
				for _, s := range servers {
					s.WaitFor("child", 5)
				}
			}
			for _, host := range hosts {
				host.Signal(sig)
			}
			for _, host := range hosts {
				host.Wait()
				mcptest.WaitVanished(t, host.Marker())
			}
		})
	}
}

// A kill during a start, just before or after the command runs. The pauses only spread the
// kills: nothing may be left after any of them.
func TestNothingSurvivesAKillDuringAStart(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
		t.Skip("there is neither a guard nor a job here")
	}
	t.Parallel()
	for i := range 10 {
		host := start(t, hostile(t)...)
		host.Go("initialize", hello)
		time.Sleep(time.Duration(i) * 4 * time.Millisecond)
		host.Kill()
		mcptest.WaitVanished(t, host.Marker())
	}
}
