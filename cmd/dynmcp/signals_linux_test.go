package main_test

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Where the tests themselves run with signals ignored (nohup, a background job of a
// script), what they start must not: some of them send these.
func init() {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// What nohup, or a script for its background jobs, had ignored stays ignored.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]func(some entry) []string{
		"serving a server": func(some entry) []string {
			return append([]string{"--", some.fields["command"].(string)}, some.fields["args"].([]string)...)
		},
		"serving a config": func(some entry) []string {
			return []string{"-c", mcptest.Config(t, document([]entry{some}))}
		},
		"calling a tool": func(some entry) []string {
			return []string{"call", "some/echo", "-c", mcptest.Config(t, document([]entry{some}))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := mcptest.NewGate(t)
			some := fake(t, "some", "-fault", "gate-call:"+gate.Path)
			sh := []string{"sh", "-c", `trap "" INT HUP; exec "$0" "$@"`, mcptest.Dynmcp(t)}
			host := mcptest.Start(t, mcptest.HostOptions{Args: append(sh, args(some)...)})
			var call *mcptest.Pending
			switch name {
			case "serving a server":
				greet(host)
				call = host.Go("tools/call", useParams("echo", `{}`))
			case "serving a config":
				greet(host)
				call = host.Go("tools/call", useParams("some/echo", `{}`))
			}
			some.WaitFor("call echo", 1)
			ignored, err := strconv.ParseUint(status(t, host.Pid(), "status", "SigIgn:"), 16, 64)
			if both := uint64(1)<<(syscall.SIGINT-1) | 1<<(syscall.SIGHUP-1); err != nil || ignored&both != both {
				t.Errorf("of the signals %b only %b are ignored, %v", both, ignored&both, err)
			}
			host.Signal(os.Interrupt)
			host.Signal(syscall.SIGHUP)
			gate.Open()
			if call != nil {
				if m := call.Wait(); m.Text() != `{}` {
					t.Errorf("got %s", m.Raw)
				}
				host.CloseStdin()
			}
			if code := host.Wait(); code != 0 {
				t.Errorf("got exit status %d, %s", code, host.Stderr())
			}
		})
	}
}
