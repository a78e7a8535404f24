//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A user is the environment of one user's runs.
type user struct {
	t         *testing.T
	variables []string
	runtime   string // the directory of the sockets
}

func newUser(t *testing.T) user {
	t.Helper()
	dir := filepath.Dir(socketPath(t))
	home := t.TempDir()
	return user{t, []string{"XDG_RUNTIME_DIR=" + dir, "TMPDIR=" + dir, "HOME=" + home, "XDG_STATE_HOME=" + home, "DYNMCP_LOG="}, filepath.Join(dir, "dynmcp")}
}

// serve starts a run on stdin and stdout.
func (u user) serve(args ...string) *mcptest.Host {
	u.t.Helper()
	host := mcptest.Start(u.t, mcptest.HostOptions{Args: append([]string{mcptest.Dynmcp(u.t)}, args...), Env: u.variables})
	greet(host)
	return host
}

// run runs a verb that must end with this status, and returns what it prints.
func (u user) run(status int, args ...string) string {
	u.t.Helper()
	return runVerb(u.t, append(os.Environ(), u.variables...), status, args...)
}

// All runs of a user are found, with their servers, which verbs stop and start.
func TestRunsAreFoundAndSteered(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	if out := u.run(0, "ps"); out != "No run of dynmcp was found.\n" {
		t.Errorf("without a run: %s", out)
	}
	one := fake(t, "files")
	broken := entry{one.Ledger, "broken", map[string]any{"command": "/bin/sh", "args": []string{"-c", "echo no database >&2; exit 3"}, "description": "Breaks."}}
	config := mcptest.Config(t, document([]entry{one, broken}))
	host := u.serve("-c", config)
	settle(t, host, "files")
	contains(t, u.run(0, "stop", "files"), `Stopped "files"`)
	one.WaitFor("exit", 1)
	contains(t, u.run(0, "start", "files"), `Started "files"`)
	one.WaitFor("start", 2)
	contains(t, u.run(0, "restart", "files"), `Restarted "files"`)
	one.WaitFor("start", 3)
	contains(t, u.run(1, "start", "broken"), "broken", "exited with status 3")
	contains(t, u.run(1, "start", "nothing"), `no run has a server "nothing"`)

	var runs []struct {
		PID          int
		Kind, Config string
		Servers      []struct{ Name, State, Era, Error, Stderr string }
	}
	if err := json.Unmarshal([]byte(u.run(0, "ps", "--json")), &runs); err != nil || len(runs) != 1 {
		t.Fatalf("ps: %v %+v", err, runs)
	}
	files, failed := runs[0].Servers[0], runs[0].Servers[1]
	if runs[0].Kind != "stdio" || runs[0].Config != config || files.State != "ready" || files.Era != "handshake" || failed.State != "failed" || failed.Stderr != "no database" {
		t.Errorf("got %+v", runs)
	}

	u.serve("-c", config)
	contains(t, u.run(1, "stop", "files"), "2 runs have a server", "--run ")

	contains(t, u.run(1, "stop"), "no server name given", "--run ID or --all")
	contains(t, u.run(1, "stop", "--all", "files"), "--all does not go with a server")
	contains(t, u.run(1, "stop", "--run", "1"), "no run 1 has this process id")
	if err := json.Unmarshal([]byte(u.run(0, "ps", "--json")), &runs); err != nil || len(runs) != 2 {
		t.Fatalf("ps: %v %+v", err, runs)
	}
	contains(t, u.run(0, "stop", "--run", fmt.Sprint(runs[0].PID)), fmt.Sprintf("Ended run %d", runs[0].PID))
	one.WaitFor("exit", 3)
	contains(t, u.run(0, "stop", "--all"), fmt.Sprintf("Ended run %d", runs[1].PID))
	if out := u.run(0, "ps"); out != "No run of dynmcp was found.\n" {
		t.Errorf("all runs were ended: %s", out)
	}
}

// Who starts a run on an address of another run is told which one it is.
func TestRunThatHasTheAddress(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	config := mcptest.Config(t, document([]entry{fake(t, "files")}))
	p := mcptest.Run(t, mcptest.HostOptions{
		Args: []string{mcptest.Dynmcp(t), "serve", "--http", "127.0.0.1:0", "--debug-http", "127.0.0.1:0", "-c", config},
		Env:  u.variables, Lingers: true,
	})
	p.WaitStderr("/mcp\n")
	var runs []struct {
		PID     int
		Listens []string
	}
	if err := json.Unmarshal([]byte(u.run(0, "ps", "--json")), &runs); err != nil || len(runs) != 1 || len(runs[0].Listens) != 2 {
		t.Fatalf("ps: %v %+v", err, runs)
	}
	for _, address := range runs[0].Listens {
		for _, line := range [][]string{{"serve", "-c", config, "--http"}, {"serve", "-c", config, "--http", "127.0.0.1:0", "--debug-http"}, {"ui", "--no-open", "--listen"}} {
			contains(t, u.run(1, append(line, address)...), fmt.Sprintf("the address %s is in use by the run %d of dynmcp", address, runs[0].PID), "another port", config)
		}
	}
}

// ls shows how the last start ended, and as many tools as ps, also of a server that does not run.
func TestServersAreListedWithTheirLastStart(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	files := fake(t, "files")
	files.fields["description"], files.fields["tool_filter"] = "Files.", []string{"!big"}
	broken := entry{files.Ledger, "broken", map[string]any{"command": "/bin/sh", "args": []string{"-c", "exit 3"}, "description": "Breaks."}}
	config := mcptest.Config(t, document([]entry{files, broken}, `"policy": [{"match": "files/echo", "do": "deny"}, {"do": "allow"}]`))
	type listed struct {
		Name, State, Error string
		Tools, Denied      int
	}
	list := func() (all []listed) {
		if err := json.Unmarshal([]byte(u.run(0, "ls", "-c", config, "--json")), &all); err != nil || len(all) != 2 {
			t.Fatalf("ls: %v %+v", err, all)
		}
		return all
	}
	if got := list(); got[0] != (listed{Name: "files"}) || got[1] != (listed{Name: "broken"}) {
		t.Errorf("before any start: %+v", got)
	}
	u.run(0, "test", "files", "-c", config)
	u.serve("-c", config)
	u.run(1, "start", "broken")
	var runs []struct{ Servers []listed }
	if err := json.Unmarshal([]byte(u.run(0, "ps", "--json")), &runs); err != nil || len(runs) != 1 {
		t.Fatalf("ps: %v %+v", err, runs)
	}
	got, idle := list(), runs[0].Servers[0]
	if got[0].State != "ok" || got[0].Denied != 1 || got[0].Tools != idle.Tools || idle.Tools == 0 || idle.State != "idle" {
		t.Errorf("ls: %+v, ps: %+v", got[0], idle)
	}
	if got[1].State != "failed" || !strings.Contains(got[1].Error, "status 3") {
		t.Errorf("got %+v", got[1])
	}
	contains(t, u.run(0, "ls", "-c", config), "(1 denied)", " min ago", "broken failed to start: ")
}

// A run changes its profile when it is told to. Its hosts are notified, and servers of both
// profiles keep running.
func TestUseChangesTheProfileOfARun(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	files, mail, diary := fake(t, "files"), fake(t, "mail"), fake(t, "diary")
	config := mcptest.Config(t, document([]entry{files, mail, diary}, `"profiles": {"work": ["files", "mail"], "home": ["files", "diary"]}`))
	host := u.serve("-c", config, "--profile", "work")
	settle(t, host, "files")
	mail.WaitFor("start", 1)
	contains(t, u.run(0, "use", "home", "-c", config), "has the profile home")
	diary.WaitFor("start", 1)
	mail.WaitFor("exit", 1)
	if m := use(host, "diary/pid", nil); m.IsError() {
		t.Errorf("a server of the profile: %s", m.Raw)
	}
	if m := use(host, "mail/pid", nil); !m.IsError() {
		t.Errorf("a server outside of it answers: %s", m.Raw)
	}
	if n := files.Count("start"); n != 1 {
		t.Errorf("a server of both was started %d times", n)
	}
	contains(t, u.run(0, "ps"), config+"  home")
	contains(t, u.run(1, "use", "hom", "-c", config), `unknown profile "hom"; did you mean home?`)
	contains(t, u.run(0, "ps"), config+"  home")
	u.run(0, "use", "all", "-c", config)
	mail.WaitFor("start", 2)
	contains(t, u.run(1, "use", "home", "-c", mcptest.Config(t, `{"mcp": {}}`)), "no run has this config")
	contains(t, u.run(1, "use", "home", "--run", "1"), "no run 1")
}

// A question of the policy may be answered from a shell while its host still asks. The
// question is withdrawn from the host then.
func TestQuestionsAreAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	config := mcptest.Config(t, document([]entry{fake(t, "files")}, `"policy": [{"do": "ask"}]`))
	open := make(chan struct{})
	defer close(open)
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config}, Env: u.variables, OnRequest: map[string]func(json.RawMessage) (any, error){
		"elicitation/create": func(json.RawMessage) (any, error) { <-open; return `{"action":"cancel"}`, nil },
	}})
	host.Initialize(handshake, `{"elicitation":{}}`)
	host.Call("tools/list", nil)
	asked := 0
	question := func(input string) (id string, call *mcptest.Pending) {
		t.Helper()
		call = host.Go("tools/call", useParams("files/echo", json.RawMessage(input)))
		asked++
		host.WaitMethod("elicitation/create", asked)
		out := u.run(0, "ps", "--json")
		var runs []struct {
			Questions []struct{ ID, Tool, Arguments string }
		}
		if err := json.Unmarshal([]byte(out), &runs); err != nil || len(runs) != 1 || len(runs[0].Questions) != 1 {
			t.Fatalf("ps: %v %s", err, out)
		}
		q := runs[0].Questions[0]
		if q.Tool != "files/echo" || q.Arguments != input {
			t.Errorf("got %+v", q)
		}
		return q.ID, call
	}
	id, call := question(`{"n":1}`)
	contains(t, u.run(0, "ps"), "asks: may files/echo be called with {\"n\":1}?", "dynmcp answer "+id)
	contains(t, u.run(1, "answer", id, "perhaps"), `"perhaps" is no answer`)
	u.run(0, "answer", id, "once")
	contains(t, call.Wait().Text(), `{"n":1}`)
	host.WaitMethod("notifications/cancelled", 1)
	contains(t, u.run(1, "answer", id, "once"), "no run asks "+id)

	id, call = question(`{"n":2}`)
	u.run(0, "answer", id, "no")
	contains(t, call.Wait().Text(), "the person who was asked did not allow it", "not_sent")
	id, call = question(`{"n":3}`)
	u.run(0, "answer", id, "session")
	contains(t, call.Wait().Text(), `{"n":3}`)
	contains(t, use(host, "files/echo", json.RawMessage(`{"n":4}`)).Text(), `{"n":4}`)
}

// The socket of a run is for its user alone, and is removed when the run ends. The socket of
// a killed run is removed later.
func TestSocketsOfRuns(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	host := u.serve("-c", mcptest.Config(t, document([]entry{fake(t, "files")})))
	sockets := func() []string {
		found, _ := filepath.Glob(filepath.Join(u.runtime, "*.run"))
		return found
	}
	if len(sockets()) != 1 {
		t.Fatalf("there are %q", sockets())
	}
	info, err := os.Lstat(sockets()[0])
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the socket: %v %v", info.Mode(), err)
	}
	end(t, host)
	if left := sockets(); len(left) != 0 {
		t.Errorf("left over: %q", left)
	}
	killed := u.serve("-c", mcptest.Config(t, document([]entry{fake(t, "files")})))
	killed.Kill()
	killed.Wait()
	if len(sockets()) != 1 {
		t.Fatalf("a killed run left %q", sockets())
	}
	contains(t, u.run(0, "ps"), "No run of dynmcp was found.")
	if left := sockets(); len(left) != 0 {
		t.Errorf("left over: %q", left)
	}
}

// The messages of a run are shown to its user, as a recording or as text, until the run ends.
func TestInspect(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	contains(t, u.run(1, "inspect"), "no run of dynmcp was found")
	host := u.serve("-c", mcptest.Config(t, document([]entry{fake(t, "files")})))
	watch := func(args ...string) *mcptest.Host {
		return mcptest.Start(t, mcptest.HostOptions{Args: append([]string{mcptest.Dynmcp(t), "inspect"}, args...), Env: u.variables})
	}
	file := filepath.Join(t.TempDir(), "run.jsonl")
	all, shown, written := watch("--json"), watch("--server", "files", "--errors"), watch("--write", file)
	all.WaitFor(func(m mcptest.Message) bool { return strings.Contains(m.Raw, `"dynmcp_recording":1`) })
	seen := func(m mcptest.Message) bool { return strings.Contains(m.Raw, "failed as asked") }
	request := func(m mcptest.Message) bool { return strings.Contains(m.Raw, `→ files tools/call`) }
	for !slices.ContainsFunc(shown.Messages(), request) { // it shows what passes once it watches
		use(host, "files/fail", `{"code":-32042}`)
	}
	all.WaitFor(seen)
	mcptest.Eventually(t, "the messages are in the file", func() bool {
		use(host, "files/fail", `{"code":-32042}`)
		text, _ := os.ReadFile(file) // it may not be there yet
		return strings.Contains(string(text), "failed as asked")
	})
	contains(t, shown.WaitFor(request).Raw, `{"name":"fail"`)
	shown.WaitFor(func(m mcptest.Message) bool { return seen(m) && strings.Contains(m.Raw, "← files tools/call") })
	end(t, host)
	all.Process.Wait()
	shown.Process.Wait()
	written.Process.Wait()
	contains(t, shown.Stderr(), "has ended")
}
