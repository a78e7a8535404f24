package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Hot reload: what a changed config changes, and what it leaves alone.

// A live is a run of dynmcp whose config the test edits.
type live struct {
	*mcptest.Host
	t    *testing.T
	path string
}

func run(t *testing.T, flags []string, entries ...entry) *live {
	t.Helper()
	path := mcptest.Config(t, document(entries))
	l := &live{mcptest.StartDynmcp(t, append([]string{"-c", path}, flags...)...), t, path}
	greet(l.Host)
	return l
}

// write replaces the config as editors do: in place, or by renaming another file.
func (l *live) write(text string, rename bool) {
	l.t.Helper()
	path := l.path
	if rename {
		path += "~"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	if !rename {
		return
	}
	if err := atomicfile.Rename(path, l.path); err != nil { // Wine refuses while it is read
		l.t.Fatal(err)
	}
}

// edit makes the config one of these entries and waits until it is in force.
func (l *live) edit(entries ...entry) {
	l.t.Helper()
	loads := l.loads()
	l.write(document(entries), false)
	l.await(loads + 1)
}

const reloaded = "config reloaded"

func (l *live) loads() int { return strings.Count(l.Stderr(), reloaded) }

// await waits until the config was reloaded n times.
func (l *live) await(n int) {
	l.t.Helper()
	mcptest.Eventually(l.t, fmt.Sprintf("the config was loaded %d times", n), func() bool { return l.loads() >= n })
}

func (l *live) pid(server string) string {
	l.t.Helper()
	m := use(l.Host, server+"/pid", nil)
	if m.IsError() {
		l.t.Fatalf("%s: %s", server, m.Raw)
	}
	return m.Text()
}

func TestReloadAddsChangesAndRemoves(t *testing.T) {
	t.Parallel()
	alpha, beta, gamma := fake(t, "alpha"), fake(t, "beta"), fake(t, "gamma")
	l := run(t, nil, alpha, beta)
	kept, changed := l.pid("alpha"), l.pid("beta")

	l.edit(alpha, beta, gamma) // gamma is not lazy: it starts by itself
	gamma.WaitFor("start", 1)
	l.WaitMethod(toolsChanged, 1)
	l.pid("gamma")
	if l.pid("alpha") != kept || l.pid("beta") != changed {
		t.Error("a server that was not touched was started again")
	}

	l.edit(alpha, beta.with("timeout", "1m"), gamma)
	if got := l.pid("beta"); got == changed {
		t.Error("a server whose entry changed was not started again")
	}
	l.edit(alpha)
	beta.WaitFor("exit", 2)
	gamma.WaitFor("exit", 1)
	if m := use(l.Host, "beta/pid", nil); !m.IsError() {
		t.Errorf("a server that was removed answers: %s", m.Raw)
	}
	if l.pid("alpha") != kept {
		t.Error("a server that was not touched was started again")
	}
	if listed := catalogue(t, l.Host); strings.Contains(listed, "gamma") {
		t.Errorf("a server that was removed is listed: %s", listed)
	}
}

func TestReloadOfAWrongConfigChangesNothing(t *testing.T) {
	t.Parallel()
	alpha, beta := fake(t, "alpha"), fake(t, "beta")
	l := run(t, nil, alpha)
	kept := l.pid("alpha")
	for text, want := range map[string]string{
		"{\n  \"mcp\": {\"alpha\": }\n}":                            ":2:20",
		`{"mcp": {"beta": {"comand": "x"}}, "exposed": []}`:         "comand",
		`{"mcp": {"beta": {"command": "x"}}, "expose": ["nobody"]}`: "nobody",
		"": "config.json:1:1",
	} {
		l.write(text, false)
		l.WaitStderr(want)
	}
	if err := os.Remove(l.path); err != nil {
		t.Fatal(err)
	}
	l.WaitStderr("not found")
	if l.pid("alpha") != kept || l.loads() != 0 {
		t.Error("the config that was right is not in force any more")
	}
	l.write(document([]entry{alpha, beta}), true)
	l.await(1)
	l.pid("beta")
	if l.pid("alpha") != kept {
		t.Error("a server that was not touched was started again")
	}
}

func TestReloadOfALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	alpha, beta := fake(t, "alpha"), fake(t, "beta")
	version := func(name string, entries ...entry) {
		writeFile(t, filepath.Join(dir, name), "mcp.json", document(entries))
		// As Kubernetes does it: a link to a directory is put in place of another.
		if err := os.Symlink(name, filepath.Join(dir, "data~")); err != nil {
			t.Skip(err)
		}
		if err := os.Rename(filepath.Join(dir, "data~"), filepath.Join(dir, "data")); err != nil {
			t.Fatal(err)
		}
	}
	version("one", alpha)
	path := filepath.Join(dir, "mcp.json")
	if err := os.Symlink(filepath.Join("data", "mcp.json"), path); err != nil {
		t.Fatal(err)
	}
	l := &live{mcptest.StartDynmcp(t, "-c", path), t, path}
	greet(l.Host)
	version("two", alpha, beta)
	l.await(1)
	l.pid("beta")
}

func TestReloadOnSIGHUP(t *testing.T) {
	t.Parallel()
	bad := deferred(t, "bad", "Broken", "-fault", "fail-first:1").with("load_budget", 1)
	l := run(t, []string{"--watch=false"}, bad)
	if m := load(l.Host, "bad"); !m.IsError() {
		t.Fatalf("it loaded: %s", m.Raw)
	}
	if m := load(l.Host, "bad"); !m.IsError() || bad.Count("start") != 1 {
		t.Fatalf("it is still offered: %s", m.Raw)
	}
	// One that watches the same file has seen the change, this one has not.
	watching := &live{mcptest.StartDynmcp(t, "-c", l.path), t, l.path}
	watching.Initialize(handshake, nil)
	l.write(document([]entry{bad, fake(t, "late")}), false)
	watching.await(1)
	if l.loads() != 0 {
		t.Error("the config was read without a signal")
	}
	l.Signal(syscall.SIGHUP)
	l.await(1)
	l.pid("late")
	if m := load(l.Host, "bad"); m.IsError() {
		t.Errorf("what was evicted is not offered again: %s", m.Raw)
	}
}

// A call of a server that is replaced has time to end.
func TestReloadLetsCallsInFlightEnd(t *testing.T) {
	t.Parallel()
	gate := mcptest.NewGate(t)
	alpha, beta := fake(t, "alpha"), fake(t, "beta")
	l := run(t, nil, alpha, beta)
	was := l.pid("beta")
	var calls []*mcptest.Pending
	for _, server := range []string{"alpha", "beta"} {
		calls = append(calls, l.Go("tools/call", useParams(server+"/sleep", map[string]string{"until": gate.Path})))
	}
	alpha.WaitFor("call sleep", 1)
	beta.WaitFor("call sleep", 1)
	l.edit(beta.with("timeout", "1m")) // and alpha is gone
	if now := l.pid("beta"); now == was {
		t.Error("the server was not replaced")
	}
	gate.Open()
	for _, call := range calls {
		if m := call.Wait(); m.IsError() {
			t.Errorf("got %s", m.Raw)
		}
	}
	alpha.WaitFor("exit", 1)
	beta.WaitFor("exit", 1)
}

// Half of the configs are wrong, and each of the others changes one server. Calls of the
// other server are not disturbed.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	alpha := fake(t, "alpha")
	l := run(t, nil, alpha, fake(t, "beta"))
	kept := l.pid("alpha")
	refused := func() int { return strings.Count(l.Stderr(), "the last one stays") }
	calls := 0
	for n := range 20 {
		text := document([]entry{alpha, fake(t, "beta").with("timeout", fmt.Sprintf("%dm", n+1))})
		told := l.loads
		if n%2 == 0 {
			text, told = text[:len(text)/2], refused
		}
		before := told()
		l.write(text, n%4 == 1)
		l.Signal(syscall.SIGHUP)
		mcptest.Eventually(t, "the config was read", func() bool {
			calls++
			input := fmt.Sprintf(`{"n":%d}`, calls)
			if m := use(l.Host, "alpha/echo", input); m.Text() != input {
				t.Fatalf("call %d: got %s", calls, m.Raw)
			}
			return told() > before
		})
	}
	if l.pid("alpha") != kept || alpha.Count("start") != 1 {
		t.Error("a server that was not touched was started again")
	}
}
