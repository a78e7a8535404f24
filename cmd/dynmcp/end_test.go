package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The end: whatever ends dynmcp, everything it started ends with it.

// ends are the ways in which a host ends dynmcp politely.
var ends = map[string]func(*mcptest.Host){
	"EOF":     func(h *mcptest.Host) { h.CloseStdin() },
	"SIGINT":  func(h *mcptest.Host) { h.Signal(os.Interrupt) },
	"SIGTERM": func(h *mcptest.Host) { h.Signal(syscall.SIGTERM) },
	"SIGTERM, then EOF": func(h *mcptest.Host) {
		h.Signal(syscall.SIGTERM)
		h.CloseStdin()
	},
}

// tree starts children of some servers, and returns the process ids of all.
func tree(t *testing.T, host *mcptest.Host, servers ...string) []int {
	t.Helper()
	var pids []int
	add := func(m mcptest.Message) {
		pid, err := strconv.Atoi(m.Text())
		if err != nil {
			t.Fatal(m.Raw)
		}
		pids = append(pids, pid)
	}
	for _, server := range servers {
		add(use(host, server+"/pid", nil))
		for _, mode := range []string{"plain", "ignore-term", "fork"} {
			add(use(host, server+"/spawn", fmt.Sprintf(`{"mode":%q}`, mode)))
		}
	}
	return pids
}

func TestEndTakesTheWholeTreeAlong(t *testing.T) {
	t.Parallel()
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := mcptest.Config(t, document([]entry{fake(t, "alpha"), deferred(t, "later", "Later"), deferred(t, "never", "Never")}))
			host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config}, Console: name == "SIGINT"})
			greet(host)
			pids := tree(t, host, "alpha", "later")
			end(host)
			leaves(t, host)
			mcptest.WaitGone(t, pids...)
			if runtime.GOOS == "windows" && name == "SIGINT" {
				mcptest.WaitVanished(t, host.Marker()) // its console ends behind it
			}
			if left := mcptest.Processes(host.Marker()); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestEndInSingleWrap(t *testing.T) {
	t.Parallel()
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := wrap(t)
			pid, _ := strconv.Atoi(use(host, "pid", nil).Text())
			end(host)
			leaves(t, host)
			mcptest.WaitGone(t, pid)
		})
	}
}

func TestEndOfStubbornServers(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"ignores everything": {"-fault", "ignore-term,ignore-eof"},
		"does not read":      {"-fault", "no-read-after-init", "-no", "tools,resources,prompts"},
		"hangs at its start": {"-fault", "hang-init,ignore-eof"},
		"has a family":       {"-fault", "double-fork"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := fake(t, "stubborn", args...)
			host := start(t, e)
			host.Initialize(handshake, nil)
			e.WaitFor("initialize", 1)
			var pids []int
			for _, line := range e.Events() {
				kind, pid, _ := strings.Cut(line, " ")
				if n, err := strconv.Atoi(pid); err == nil && (kind == "start" || kind == "child") {
					pids = append(pids, n)
				}
			}
			end(t, host)
			mcptest.WaitGone(t, pids...)
			if left := mcptest.Processes(host.Marker()); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestRequestsBeforeTheEndAreAnswered(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"config": {"-c", mcptest.Config(t, document([]entry{fake(t, "alpha"), deferred(t, "later", "Later")}))},
		"single": {"--", mcptest.Fake(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := mcptest.StartDynmcp(t, args...)
			tools := []string{"echo", "sleep", "echo"}
			if name == "config" {
				tools = []string{"alpha/echo", "alpha/sleep", "later/echo"}
			}
			// As from a shell: printf '…' | dynmcp
			init := host.Go("initialize", hello)
			host.Notify("notifications/initialized", nil)
			list := host.Go("tools/list", nil)
			var calls []*mcptest.Pending
			for _, tool := range tools {
				calls = append(calls, host.Go("tools/call", useParams(tool, `{"ms":50}`)))
			}
			host.CloseStdin()
			if m := init.Wait(); m.Error != nil {
				t.Error(m.Raw)
			}
			contains(t, list.Wait().Raw, "discover_tool")
			for n, call := range calls {
				if m := call.Wait(); m.IsError() {
					t.Errorf("%s: got %s", tools[n], m.Raw)
				}
			}
			leaves(t, host)
		})
	}
}

func TestCallThatHangsDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	host := serve(t, e)
	call := host.Go("tools/call", useParams("alpha/sleep", nil))
	e.WaitFor("call sleep", 1)
	host.CloseStdin()
	m := call.Wait()
	contains(t, m.Raw, `"isError":true`, "alpha: dynmcp is shutting down", "outcome unknown")
	e.WaitFor("cancelled", 1)
	leaves(t, host)
}

func TestHostThatReadsNoMoreEndsTheRun(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	cmd := exec.Command(mcptest.Dynmcp(t), "-c", mcptest.Config(t, document([]entry{e})))
	cmd.Env = mcptest.Environ(t)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	unread, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = stdout
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = stdout.Close(), unread.Close()
	fmt.Fprintln(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+hello+`}`)
	fmt.Fprintln(stdin, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("got %v, want exit status 1", err)
	}
	contains(t, stderr.String(), "dynmcp: the host does not read")
	for _, line := range e.Events() {
		if pid, err := strconv.Atoi(strings.TrimPrefix(line, "start ")); err == nil {
			mcptest.WaitGone(t, pid)
		}
	}
}
