package main_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// On every system hosts share a run, which knows their names, verbs find and steer it, and hosts
// survive its end.
func TestHostsShareARunEverywhere(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "dynmcp") // paths of t.TempDir are too long for sockets of some systems
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	e := fake(t, "files")
	config := mcptest.Config(t, document([]entry{e}))
	variables := []string{"XDG_RUNTIME_DIR=" + dir, "TMPDIR=" + dir, "LOCALAPPDATA=" + dir, "HOME=" + dir, "XDG_STATE_HOME=" + dir}
	start := func() *mcptest.Host {
		args := []string{mcptest.Dynmcp(t), "connect", "-c", config, "--idle", "20m"}
		return mcptest.Start(t, mcptest.HostOptions{Args: args, Env: variables, Lingers: true})
	}
	verb := func(args ...string) string { return runVerb(t, append(os.Environ(), variables...), 0, args...) }
	first, second := start(), start()
	greetAs(first, "codex-mcp-client")
	checkEcho(t, first, "files/echo", `{"n":1}`)
	if got := second.Call("tools/call", modernUse("files/echo", `{"n":1}`)).Text(); got != `{"n":1}` {
		t.Errorf("got %s", got)
	}
	if got := e.Count("start"); got != 1 {
		t.Errorf("the server was started %d times", got)
	}
	type run struct {
		PID   int
		Kind  string
		Hosts []string
	}
	only := func() run {
		t.Helper()
		var runs []run
		if err := json.Unmarshal([]byte(verb("ps", "--json")), &runs); err != nil || len(runs) != 1 {
			t.Fatalf("ps: %v %+v", err, runs)
		}
		return runs[0]
	}
	before := only()
	slices.Sort(before.Hosts)
	if before.Kind != "serve" || !slices.Equal(before.Hosts, []string{"codex-mcp-client", "t"}) {
		t.Errorf("got %+v", before)
	}
	contains(t, verb("restart", "files"), `Restarted "files"`)
	e.WaitFor("start", 2)

	process, err := os.FindProcess(before.PID)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	first.WaitStderr("msg=lost")
	checkEcho(t, first, "files/echo", `{"n":2}`)
	if after := only(); after.PID == before.PID || after.Kind != "serve" {
		t.Errorf("got %+v, before %+v", after, before)
	}
}
