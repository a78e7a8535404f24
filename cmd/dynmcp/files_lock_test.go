package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Runs that change one file at the same time wait for each other: none fails, and no entry
// is lost.
func TestConcurrentRunsLoseNoEntry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := writeFile(t, dir, "mcp.json", `{"mcp": {"first": {"command": "x"}, "gone": {"command": "x"}}}`)
	runs := []*exec.Cmd{exec.Command(mcptest.Dynmcp(t), "remove", "gone", "-c", path)}
	for n := range 8 {
		runs = append(runs, exec.Command(mcptest.Dynmcp(t), "add", fmt.Sprintf("s%d", n), "-c", path, "--", "x"))
	}
	outputs := make([]strings.Builder, len(runs))
	for i, run := range runs {
		run.Env, run.Stderr = mcptest.Environ(t), &outputs[i]
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, run := range runs {
		if err := run.Wait(); err != nil {
			t.Errorf("%q: %v, %s", run.Args[1:], err, &outputs[i])
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(text), `"first"`)
	for n := range 8 {
		contains(t, string(text), fmt.Sprintf(`"s%d"`, n))
	}
	if strings.Contains(string(text), `"gone"`) {
		t.Errorf("an entry that was removed came back: %s", text)
	}
}

// A run that finds the file locked says so and goes on when it is not. A lock file
// by itself, which a run that was killed leaves, locks nothing.
func TestLockedFileIsWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := writeFile(t, dir, "mcp.json", `{"mcp": {}}`)
	lock := writeFile(t, dir, ".mcp.json.lock", "")
	if code := mcptest.StartDynmcp(t, "add", "a", "-c", path, "--", "x").Wait(); code != 0 {
		t.Errorf("with a lock file that nobody holds: got exit status %d", code)
	}
	held, err := lockedfile.Edit(lock)
	if err != nil {
		t.Fatal(err)
	}
	run := mcptest.StartDynmcp(t, "add", "b", "-c", path, "--", "x")
	run.WaitStderr("waiting for another dynmcp that is changing " + path)
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	leaves(t, run)
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
