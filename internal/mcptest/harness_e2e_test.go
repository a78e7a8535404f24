//go:build e2e

package mcptest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A recorder is a testing.TB that is expected to fail. It records failures, and ends the goroutine
// where a test would.
type recorder struct {
	testing.TB
	text     strings.Builder
	skipped  bool
	cleanups []func()
}

func (r *recorder) Helper()                      {}
func (r *recorder) Cleanup(f func())             { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(f string, args ...any) { fmt.Fprintf(&r.text, f+"\n", args...) }
func (r *recorder) Fatalf(f string, args ...any) { r.Errorf(f, args...); runtime.Goexit() }
func (r *recorder) Fatal(args ...any)            { r.Fatalf("%s", fmt.Sprint(args...)) }
func (r *recorder) Skipf(f string, args ...any)  { r.skipped = true; r.Fatalf(f, args...) }

// failing runs body as a test and returns the record of its failures.
func failing(t *testing.T, body func(testing.TB)) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := range r.cleanups {
				r.cleanups[len(r.cleanups)-1-i]()
			}
		}()
		body(r)
	}()
	<-done
	return r
}

func reported(t *testing.T, r *recorder, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(r.text.String(), text) {
			t.Errorf("got report %q, want it to hold %q", r.text.String(), text)
		}
	}
}

func TestWatchdogTellsWhatHappened(t *testing.T) {
	r := failing(t, func(t testing.TB) {
		h := mcptest.StartFake(t)
		h.Initialize(version, nil)
		h.Tool("stderr", `{"text":"oh dear"}`)
		h.WaitStderr("oh dear")
		t.Cleanup(mcptest.SetWatchdog(50 * time.Millisecond))
		h.Tool("sleep", nil)
	})
	reported(t, r, "an answer to request 3 never came", "lines received", `"protocolVersion":"2025-11-25"`, "oh dear", "fakemcp")
}

func TestDeathBeforeTheAnswerFails(t *testing.T) {
	r := failing(t, func(t testing.TB) { mcptest.StartFake(t, "-fault", "exit-now").Call("ping", nil) })
	reported(t, r, "closed stdout before an answer to request 1 came", "API_KEY is not set", "left with status 7")
}

func TestUnaskedKillFails(t *testing.T) {
	defer mcptest.SetWatchdog(300 * time.Millisecond)()
	r := failing(t, func(t testing.TB) { mcptest.StartFake(t, "-fault", "ignore-eof") })
	reported(t, r, "had to be killed")
}

func TestOrphansFail(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
		t.Skip("processes are found by their marker on Linux and Windows only")
	}
	var restore func()
	r := failing(t, func(t testing.TB) {
		h := mcptest.StartFake(t)
		h.Initialize(version, nil)
		h.Tool("spawn", `{"setsid":true,"mode":"ignore-term"}`)
		restore = mcptest.SetWatchdog(300 * time.Millisecond) // how long the orphan is waited for
	})
	restore()
	reported(t, r, "left behind: ", "-idle ignore-term")
}

func TestMissingLedgerEventFails(t *testing.T) {
	defer mcptest.SetWatchdog(20 * time.Millisecond)()
	r := failing(t, func(t testing.TB) { mcptest.NewLedger(t).WaitFor("start", 1) })
	reported(t, r, `"start" came 0 times, want 1`)
}

func TestMissingStderrFails(t *testing.T) {
	r := failing(t, func(t testing.TB) {
		h := mcptest.StartFake(t)
		h.CloseStdin()
		h.WaitStderr("hello")
	})
	reported(t, r, `never held "hello"`)
}

func TestBrokenBuildFails(t *testing.T) {
	r := failing(t, func(t testing.TB) { mcptest.Binary(t, "github.com/dynmcp/dynmcp/internal/mcptest/nonsense") })
	reported(t, r, "build github.com/dynmcp/dynmcp/internal/mcptest/nonsense")
}

func TestHandlers(t *testing.T) {
	h := ready(t)
	for method, want := range map[string]string{
		"ping":       `{"result":{}}`,
		"roots/list": `{"error":{"code":-32601,"message":"Method not found: roots/list"}}`,
	} {
		if got := string(h.Tool("ask", fmt.Sprintf(`{"method":%q}`, method)).Member("structuredContent")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestRawIDsComeBackAsTheyWere(t *testing.T) {
	h := ready(t)
	for _, id := range []string{`"é\u00e9"`, `-0`, `1.50`, `null`} {
		if m := h.CallRaw(id, "ping", nil); string(m.ID) != id {
			t.Errorf("got id %s, want %s", m.ID, id)
		}
	}
}

func TestConfigIsWritten(t *testing.T) {
	for _, c := range []struct {
		content any
		want    string
	}{{`{"a": 1.0} // text`, `{"a": 1.0} // text`}, {map[string]any{"a": "<"}, `{"a":"<"}`}} {
		got, err := os.ReadFile(mcptest.Config(t, c.content))
		if err != nil || string(got) != c.want {
			t.Errorf("got %s, %v, want %s", got, err, c.want)
		}
	}
}

func TestNpx(t *testing.T) {
	t.Setenv("CI", "")
	t.Setenv("DYNMCP_REQUIRE_NPX", "")
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if r := failing(t, func(t testing.TB) { mcptest.Npx(t, "x") }); !r.skipped {
		t.Error("without npx the test went on")
	}
	t.Setenv("DYNMCP_REQUIRE_NPX", "1")
	r := failing(t, func(t testing.TB) { mcptest.Npx(t, "x") })
	if reported(t, r, "needs npx"); r.skipped {
		t.Error("the test was skipped where npx is required")
	}
	name := "npx"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := mcptest.Npx(t, "x", "-y"); len(got) != 4 || got[2] != "x" {
		t.Errorf("got %q", got)
	}
}

// TestEveryFaultIsTested searches the sources of the tests for each mode.
func TestEveryFaultIsTested(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(data)
	}
	out, err := exec.Command(mcptest.Fake(t), "-faults").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		mode := strings.Fields(line)[0]
		tested := false
		for _, before := range []string{`"`, `,`} {
			for _, after := range []string{`"`, `:`, `,`} {
				tested = tested || strings.Contains(sources.String(), before+mode+after)
			}
		}
		if !tested {
			t.Errorf("no test provokes %s", mode)
		}
	}
}
