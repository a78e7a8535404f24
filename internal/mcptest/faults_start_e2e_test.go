//go:build e2e

package mcptest_test

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// lingering starts a fake that must be killed.
func lingering(t *testing.T, args ...string) *mcptest.Host {
	t.Helper()
	h := mcptest.Start(t, mcptest.HostOptions{Args: append([]string{mcptest.Fake(t)}, args...), Lingers: true})
	return h
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`

func TestExitNow(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t, "-fault", "exit-now")
	if got := h.Wait(); got != 7 {
		t.Errorf("got status %d, want 7", got)
	}
	if got := strings.Count(h.Stderr(), "\n"); got != 3 || len(h.Lines()) != 0 {
		t.Errorf("got %q and %q", h.Stderr(), h.Lines())
	}
}

func TestExitLeak(t *testing.T) {
	t.Parallel()
	h := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Fake(t), "-fault", "exit-leak:API_KEY"}, Env: []string{"API_KEY=s3cret"}})
	if got := h.Wait(); got != 7 || !strings.Contains(h.Stderr(), "API_KEY=s3cret") {
		t.Errorf("got status %d and %q", got, h.Stderr())
	}
}

func TestFailFirst(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	for n, want := range []int{7, 7, 0} {
		h := mcptest.StartFake(t, "-ledger", ledger.Path, "-fault", "fail-first:2")
		h.CloseStdin()
		if got := h.Wait(); got != want {
			t.Errorf("start %d: got status %d, want %d", n+1, got, want)
		}
	}
	if got := ledger.Count("start"); got != 3 {
		t.Errorf("got %d starts, want 3", got)
	}
}

func TestExitAt(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t, "-fault", "exit-at:2")
	h.Send(initialize)
	h.WaitFor(mcptest.Message.IsAnswer)
	h.Notify("notifications/initialized", nil)
	if got := h.Wait(); got != 4 {
		t.Errorf("got status %d, want 4", got)
	}
}

// TestFraming compares the bytes before, within and after the first answer.
func TestFraming(t *testing.T) {
	t.Parallel()
	for fault, fits := range map[string]func(out string) bool{
		"banner":        func(s string) bool { return strings.HasPrefix(s, "Fake MCP server") && strings.Count(s, "\n") == 4 },
		"banner:5":      func(s string) bool { return strings.Count(s, "\n") == 6 },
		"bom":           func(s string) bool { return strings.HasPrefix(s, "\ufeff{") },
		"bom,banner:1":  func(s string) bool { return strings.HasPrefix(s, "\ufeffFake") },
		"crlf":          func(s string) bool { return strings.HasSuffix(s, "}\r\n") },
		"blank":         func(s string) bool { return strings.HasSuffix(s, "}\n\n \n") },
		"pretty":        func(s string) bool { return strings.HasPrefix(s, "{\n  \"result\": {\n") },
		"crlf,pretty":   func(s string) bool { return strings.HasSuffix(s, "\n}\r\n") },
		"bad-version":   func(s string) bool { return strings.Contains(s, `"protocolVersion":"2099-01-01"`) },
		"slow-init:1":   func(s string) bool { return json.Valid([]byte(s)) },
		"hang-discover": func(s string) bool { return json.Valid([]byte(s)) },
	} {
		h := mcptest.StartFake(t, "-fault", fault)
		h.Send(initialize)
		h.CloseStdin()
		h.Wait()
		if out := strings.Join(h.Lines(), "\n") + "\n"; !fits(out) {
			t.Errorf("%s: got %q", fault, out)
		}
	}
}

func TestStderrFaults(t *testing.T) {
	t.Parallel()
	for fault, fits := range map[string]func(s string) bool{
		"stderr-spam:1000":      func(s string) bool { return len(s) == 1000 && strings.Count(s, "\n") == 10 },
		"stderr-nonewline:1000": func(s string) bool { return s == strings.Repeat("x", 1000) },
	} {
		h := mcptest.StartFake(t, "-fault", fault)
		h.CloseStdin()
		if h.Wait(); !fits(h.Stderr()) {
			t.Errorf("%s: got %d bytes", fault, len(h.Stderr()))
		}
	}
}

func TestIgnoreTerm(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	ledger := mcptest.NewLedger(t)
	h := mcptest.StartFake(t, "-ledger", ledger.Path, "-fault", "ignore-term")
	h.Initialize(version, nil)
	h.Signal(syscall.SIGTERM)
	ledger.WaitFor("ignored terminated", 1)
	h.Call("ping", nil)
}

func TestIgnoreEOF(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	h := lingering(t, "-ledger", ledger.Path, "-fault", "ignore-eof")
	h.CloseStdin()
	ledger.WaitFor("ignored eof", 1)
	if !mcptest.Alive(h.Pid()) {
		t.Error("the process left")
	}
}

// TestNoReadAfterInit writes more than the capacity of a pipe, which must not finish.
func TestNoReadAfterInit(t *testing.T) {
	t.Parallel()
	h := lingering(t, "-fault", "no-read-after-init")
	h.Initialize(version, nil)
	written := make(chan error)
	go func() { written <- h.Write(strings.Repeat("x", 4<<20)) }()
	select {
	case err := <-written:
		t.Errorf("4 MiB were written, %v", err)
	case <-h.Exited():
		t.Error("the process left")
	default:
	}
	h.Kill()
	if err := <-written; err == nil {
		t.Error("4 MiB were written to a process that does not read")
	}
}

func TestCloseStdin(t *testing.T) {
	t.Parallel()
	h := lingering(t, "-fault", "close-stdin")
	h.Initialize(version, nil)
	h.Tool("echo", nil)
	for h.Write("\n") == nil { // the answer may overtake the close
	}
	if !mcptest.Alive(h.Pid()) {
		t.Error("the process left")
	}
}

func TestDoubleFork(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
		t.Skip("processes are found by their marker on Linux and Windows only")
	}
	ledger := mcptest.NewLedger(t)
	h := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Fake(t), "-ledger", ledger.Path, "-fault", "double-fork"}, Orphans: true})
	ledger.WaitFor("child", 5)
	h.CloseStdin()
	h.Wait()
	// The fifth child was started by a child that has exited.
	if got := mcptest.Processes(h.Marker()); len(got) != 4 && len(got) != 5 {
		t.Errorf("got %v, want four survivors", got)
	}
}

func TestOddLists(t *testing.T) {
	t.Parallel()
	h := ready(t, "-bare", "-tools", "1", "-name", "f", "-fault", "dup-uri,dup-tool,bad-entry")
	if got := keys(t, h.Call("resources/list", nil), "resources", "uri"); !slices.Equal(got, []string{"fake://f/text", "fake://f/blob", "fake://f/text"}) {
		t.Errorf("got %q", got)
	}
	m := h.Call("tools/list", nil)
	if !strings.Contains(m.Raw, `,7,null,{"description":"nameless"},{"name":7,`) || strings.Count(m.Raw, "tool_001") != 2 {
		t.Errorf("got %s", m.Raw)
	}
	h = ready(t, "-fault", "malformed")
	for method, entry := range map[string]string{
		"tools/list": `{"name":"m1","inputSchema":null}`, "prompts/list": `{"name":5}`,
		"resources/list": `{"uri":"m:2"}`, "resources/templates/list": `{"uriTemplate":5,"name":"m"}`,
	} {
		if m := h.Call(method, nil); !strings.Contains(m.Raw, entry) {
			t.Errorf("%s lacks %s: %s", method, entry, m.Raw)
		}
	}
}
