package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Servers that print without end: where they must not, and where they may.

// A server that floods its stdout is not restarted, since its memory would be lost. Calls
// work meanwhile, and the log says little.
func TestFloodOfJunkOnStdout(t *testing.T) {
	t.Parallel()
	e := fake(t, "noisy", "-fault", "junk:200000", "-fault-tool", "pid")
	host := serve(t, e)
	before := memory(t, host.Pid())
	flood := host.Go("tools/call", useParams("noisy/pid", nil))
	for range 20 {
		if got := use(host, "noisy/echo", `{"n":1}`).Text(); got != `{"n":1}` {
			t.Fatalf("a call meanwhile: %s", got)
		}
	}
	if m := flood.Wait(); m.IsError() {
		t.Errorf("got %s", m.Raw)
	}
	host.WaitStderr("not a message")
	if got := strings.Count(host.Stderr(), "not a message"); got > 6 {
		t.Errorf("200000 lines made %d warnings, want 6 at most:\n%.3000s", got, host.Stderr())
	}
	grewLittle(t, host, before)
	if e.Count("start") != 1 {
		t.Errorf("it was started %d times", e.Count("start"))
	}
}

// A server without server/discover may complain about it at length, and then refuse, exit or
// not answer. It is started all the same.
func TestNoiseAboutDiscovery(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"stderr-on-discover", "noisy-exit-discover", "noisy-hang-discover"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			e := fake(t, "older", "-fault", fault)
			host := start(t, e)
			host.Call("tools/list", modern()) // of a host that makes no handshake, so neither is one tried at first
			if got := host.Call("tools/call", modernUse("older/echo", `{"n":1}`)).Text(); got != `{"n":1}` {
				t.Errorf("got %s", got)
			}
			if e.Count("server/discover") != 1 || e.Count("initialize") != 1 {
				t.Errorf("got %q", e.Events())
			}
		})
	}
}

// A server that closes its stdin or stdout and lives on counts as dead: the next use starts
// another, and it is ended.
func TestServersThatCloseAnEnd(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"close-stdout", "close-stdin"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			// What was written just before it closed its stdin is lost in the pipe.
			e := fake(t, "half", "-fault", fault, "-fault-times", "1").with("timeout", "5s")
			host := serve(t, e)
			text := ""
			for tries := 0; e.Count("start") < 2; tries++ {
				if text = use(host, "half/echo", `{}`).Text(); tries == 10 {
					t.Fatalf("the same process after %d calls: %s", tries, text)
				}
			}
			if text != "{}" {
				t.Errorf("the call that found it dead, or the next, got %s", text)
			}
			var pid int
			if _, err := fmt.Sscanf(e.Events()[0], "start %d", &pid); err != nil {
				t.Fatal(err)
			}
			mcptest.WaitGone(t, pid)
		})
	}
}

// grewLittle fails the test if dynmcp ever held much more memory than before.
func grewLittle(t *testing.T, host *mcptest.Host, before int) {
	t.Helper()
	const most = 64 << 10
	if grew := memory(t, host.Pid()) - before; grew > most {
		t.Errorf("it grew by %d KB, want %d at most", grew, most)
	}
}
