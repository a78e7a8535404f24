//go:build e2e

package mcptest_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

func TestEnvironmentIsOwn(t *testing.T) {
	t.Setenv("MCPTEST_LEAK", "1")
	dir := t.TempDir()
	h := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Fake(t)}, Env: []string{"GIVEN=é"}, Dir: dir})
	h.Initialize(version, nil)
	if got := h.Tool("env", `{"name":"GIVEN"}`).Text(); got != "é" {
		t.Errorf("got GIVEN=%s", got)
	}
	if m := h.Tool("env", `{"name":"MCPTEST_LEAK"}`); string(m.Member("structuredContent", "set")) != "false" {
		t.Errorf("the test's environment leaked: %s", m.Raw)
	}
	if home, _ := os.UserHomeDir(); h.Tool("env", `{"name":"HOME"}`).Text() == home {
		t.Error("the process has the user's home")
	}
	got, err := filepath.EvalSymlinks(h.Tool("cwd", nil).Text())
	want, _ := filepath.EvalSymlinks(dir)
	if err != nil || got != want {
		t.Errorf("got directory %s, %v, want %s", got, err, want)
	}
	if got := h.Tool("args", nil).Text(); !strings.HasPrefix(got, `["`) {
		t.Errorf("got %s", got)
	}
}

func TestStderrIsKept(t *testing.T) {
	t.Parallel()
	h := ready(t)
	h.Tool("stderr", `{"text":"hello"}`)
	if got := h.WaitStderr("hello"); got != "hello\n" {
		t.Errorf("got %q", got)
	}
}

func TestBig(t *testing.T) {
	t.Parallel()
	if got := len(ready(t).Tool("big", `{"bytes":3000000}`).Text()); got != 3000000 {
		t.Errorf("got %d bytes", got)
	}
}

func TestPidIsAliveUntilItIsNot(t *testing.T) {
	t.Parallel()
	h := ready(t)
	pid, _ := strconv.Atoi(h.Tool("pid", nil).Text())
	if pid != h.Pid() || !mcptest.Alive(pid) {
		t.Errorf("got pid %d, want %d and alive", pid, h.Pid())
	}
	h.Kill()
	mcptest.WaitGone(t, pid)
}

func TestCrashEndsTheProcess(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	h := ready(t, "-ledger", ledger.Path)
	h.Go("tools/call", mcptest.ToolParams("crash", nil))
	if got := h.Wait(); got != 3 {
		t.Errorf("got status %d, want 3", got)
	}
	if ledger.Count("exit crash") != 1 {
		t.Errorf("got %q", ledger.Events())
	}
}

func TestEndOfInputLetsCallsFinish(t *testing.T) {
	t.Parallel()
	h := ready(t)
	p := h.Go("tools/call", mcptest.ToolParams("big", `{"bytes":1000000}`))
	q := h.Go("tools/call", mcptest.ToolParams("sleep", nil))
	h.CloseStdin()
	if got := h.Wait(); got != 0 {
		t.Errorf("got status %d, want 0", got)
	}
	if p.Wait(); q.Done() {
		t.Error("the endless call was answered")
	}
}

func TestSignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	ledger := mcptest.NewLedger(t)
	h := ready(t, "-ledger", ledger.Path)
	h.Signal(syscall.SIGTERM)
	if got := h.Wait(); got != 143 || ledger.Count("exit terminated") != 1 {
		t.Errorf("got status %d and %q", got, ledger.Events())
	}
}

func TestSpawnLeavesAChild(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
		t.Skip("processes are found by their marker on Linux and Windows only")
	}
	for _, args := range []string{`{"env":"MARK=1"}`, `{"env":"MARK=1","setsid":true}`, `{"mode":"ignore-term","env":"MARK=1"}`} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			h := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Fake(t)}, Orphans: true})
			h.Initialize(version, nil)
			pid, err := strconv.Atoi(h.Tool("spawn", args).Text())
			if err != nil || !mcptest.Alive(pid) {
				t.Fatalf("got pid %d, %v", pid, err)
			}
			h.CloseStdin()
			h.Wait()
			if got := mcptest.Processes(h.Marker()); len(got) != 1 || got[0] != pid {
				t.Errorf("got %v, want %d", got, pid)
			}
		})
	}
}

func TestSpawnForks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
		t.Skip("processes are found by their marker on Linux and Windows only")
	}
	ledger := mcptest.NewLedger(t)
	h := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Fake(t), "-ledger", ledger.Path}, Orphans: true})
	h.Initialize(version, nil)
	pid, _ := strconv.Atoi(h.Tool("spawn", `{"mode":"fork"}`).Text())
	ledger.WaitFor("child", 2)
	mcptest.WaitGone(t, pid)
	if got := mcptest.Processes(h.Marker()); len(got) != 2 {
		t.Errorf("got %v, want the fake and its grandchild", got)
	}
}
