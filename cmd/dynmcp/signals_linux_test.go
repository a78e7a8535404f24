package main_test

import (
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// If the tests run with signals ignored (nohup, a background job of a script), their children
// must not: some tests send these signals.
func init() {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// Signals that nohup, or a script for its background jobs, ignores stay ignored.
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
			leaves(t, host)
		})
	}
}

// A verb that handles signals ends with the first one, even while it reads a config that
// never ends.
func TestSignalsEndReading(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		verb []string
		want int // exit status, -1 is that the signal ended it
	}{
		{"serve", []string{"serve", "--http", "127.0.0.1:0"}, 0},
		{"doctor", []string{"doctor"}, 128 + int(syscall.SIGTERM)},
		{"stdio", nil, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			// Descriptor 3 is open for writing as well: reading it does not end.
			sh := []string{"sh", "-c", `fifo=$1; shift; exec 3<>"$fifo"; exec "$0" "$@" -c /dev/fd/3`, mcptest.Dynmcp(t), fifo}
			host := mcptest.Start(t, mcptest.HostOptions{Args: append(sh, test.verb...)})
			file, err := os.OpenFile(fifo, os.O_WRONLY, 0) // opens when the shell has
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.WriteString("{"); err != nil {
				t.Fatal(err)
			}
			for waiting := 1; waiting > 0; runtime.Gosched() {
				if waiting, err = unix.IoctlGetInt(int(file.Fd()), unix.TIOCINQ); err != nil {
					t.Fatal(err)
				}
			}
			host.Signal(syscall.SIGTERM)
			began := time.Now()
			if code := host.Wait(); code != test.want || time.Since(began) > 15*time.Second {
				t.Errorf("it ended after %v with exit status %d, want %d", time.Since(began), code, test.want)
			}
		})
	}
}
