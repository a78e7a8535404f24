//go:build unix

package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/cli/localhttp"
	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A sharing is the environment that the hosts of one user have in common.
type sharing struct {
	t      *testing.T
	dir    string // $XDG_RUNTIME_DIR, and $TMPDIR
	home   string
	config string
}

func newSharing(t *testing.T, entries ...entry) *sharing {
	t.Helper()
	s := &sharing{t: t, dir: filepath.Dir(socketPath(t)), home: t.TempDir(), config: mcptest.Config(t, document(entries))}
	t.Cleanup(func() {
		for _, log := range s.glob("*.log") {
			if text, _ := os.ReadFile(log); strings.Contains(string(text), "WARNING: DATA RACE") || strings.Contains(string(text), "msg=panic") {
				t.Errorf("the run that was shared:\n%s", text)
			}
		}
	})
	return s
}

func (s *sharing) glob(pattern string) []string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.dir, "dynmcp", pattern))
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// start starts a host of the user, with further variables and arguments.
func (s *sharing) start(variables []string, args ...string) *mcptest.Host {
	s.t.Helper()
	args = append([]string{mcptest.Dynmcp(s.t), "connect", "-c", s.config, "--idle", "20m"}, args...)
	variables = append([]string{"XDG_RUNTIME_DIR=" + s.dir, "TMPDIR=" + s.dir, "HOME=" + s.home}, variables...)
	// The shared run has the marker of the host that started it.
	return mcptest.Start(s.t, mcptest.HostOptions{Args: args, Env: variables, Lingers: true})
}

func (s *sharing) greet(variables []string, args ...string) *mcptest.Host {
	s.t.Helper()
	host := s.start(variables, args...)
	host.Initialize(handshake, nil)
	return host
}

// pid is the process of the one run that is shared.
func (s *sharing) pid() int {
	s.t.Helper()
	sockets := s.glob("*.sock")
	if len(sockets) != 1 {
		s.t.Fatalf("there are sockets %q", sockets)
	}
	body, err := localhttp.Open(s.t.Context(), sockets[0], http.MethodGet, "/run")
	if err != nil {
		s.t.Fatal(err)
	}
	defer body.Close()
	var run struct{ PID int }
	if err := json.NewDecoder(body).Decode(&run); err != nil {
		s.t.Fatal(err)
	}
	return run.PID
}

// Of five hosts that start at once, one starts the run that all of them use.
func TestHostsThatConnectAtOnceShareOneRun(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	shared := newSharing(t, e)
	hosts := make([]*mcptest.Host, 5)
	for i := range hosts {
		hosts[i] = shared.start(nil)
	}
	var talking sync.WaitGroup
	for i, host := range hosts {
		talking.Go(func() {
			host.Initialize(handshake, nil)
			for n := range 20 {
				input := fmt.Sprintf(`{"host":%d,"n":%d}`, i, n)
				checkEcho(t, host, "alpha/echo", input)
			}
		})
	}
	talking.Wait()
	if got := e.Count("start"); got != 1 {
		t.Errorf("the server was started %d times", got)
	}
	if got := shared.glob("*.sock"); len(got) != 1 {
		t.Errorf("there are sockets %q", got)
	}
}

// connect passes everything on as it is: large messages, broken ones, any id.
func TestConnectPassesEverything(t *testing.T) {
	t.Parallel()
	shared := newSharing(t, fake(t, "alpha"))
	host := shared.greet(nil)
	large := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 5<<20))
	checkEcho(t, host, "alpha/echo", large)
	host.Send(`{"jsonrpc":"2.0","id":"broken",]`)
	host.WaitFor(func(m mcptest.Message) bool { return m.Error != nil && strings.Contains(m.Raw, "-32700") })
	if m := host.CallRaw(`"a string"`, "ping", nil); string(m.ID) != `"a string"` {
		t.Errorf("got %s", m.Raw)
	}
}

func TestConnectAnswersWhatWasSentBeforeTheEnd(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	for _, end := range []string{"EOF", "SIGTERM"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			host := newSharing(t, e).greet(nil)
			calls := make([]*mcptest.Pending, 10)
			for i := range calls {
				calls[i] = host.Go("tools/call", useParams("alpha/echo", fmt.Sprintf(`{"n":%d}`, i)))
			}
			if end == "EOF" {
				host.CloseStdin()
			} else {
				calls[len(calls)-1].Wait() // by then all were read
				host.Signal(syscall.SIGTERM)
			}
			for i, call := range calls {
				if got, want := call.Wait().Text(), fmt.Sprintf(`{"n":%d}`, i); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			leaves(t, host)
		})
	}
}

// The calls of a killed host are cancelled. Other hosts are not affected.
func TestHostThatIsKilledLeavesTheOthers(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	shared := newSharing(t, e)
	first, second := shared.greet(nil), shared.greet(nil)
	first.Go("tools/call", useParams("alpha/sleep", `{"ms":600000}`))
	e.WaitFor("call sleep", 1)
	first.Kill()
	e.WaitFor("cancelled", 1)
	checkEcho(t, second, "alpha/echo", `{"n":1}`)
	if got := e.Count("start"); got != 1 {
		t.Errorf("the server was started %d times", got)
	}
}

// Hosts share a run unless the config depends on something in which their environments
// differ.
func TestHostsThatShareARun(t *testing.T) {
	t.Parallel()
	shared := newSharing(t, fake(t, "alpha").with("env", map[string]string{"ACCOUNT": "${ACCOUNT:-nobody}"}))
	shared.greet([]string{"ACCOUNT=ann", "TERM_SESSION_ID=1"})
	shared.greet([]string{"ACCOUNT=ann", "TERM_SESSION_ID=2"})
	if got := shared.glob("*.sock"); len(got) != 1 {
		t.Errorf("two hosts with the same account have sockets %q", got)
	}
	bob := shared.greet([]string{"ACCOUNT=bob"})
	if got := shared.glob("*.sock"); len(got) != 2 {
		t.Errorf("two accounts have sockets %q", got)
	}
	if got := use(bob, "alpha/env", `{"name":"ACCOUNT"}`).Text(); !strings.Contains(got, "bob") {
		t.Errorf("bob's server has the account %q", got)
	}
	shared.greet([]string{"ACCOUNT=ann", "PATH=/nowhere:" + os.Getenv("PATH")})
	if got := shared.glob("*.sock"); len(got) != 2 {
		t.Errorf("another PATH with the same programs: sockets %q", got)
	}
	shared.greet([]string{"ACCOUNT=ann", "HTTPS_PROXY=http://127.0.0.1:9"})
	if got := shared.glob("*.sock"); len(got) != 3 {
		t.Errorf("another proxy: sockets %q", got)
	}
	named := socketPath(t)
	shared.greet([]string{"ACCOUNT=ann"}, "--socket", named)
	cy := shared.greet([]string{"ACCOUNT=cy"}, "--socket", named)
	if got := use(cy, "alpha/env", `{"name":"ACCOUNT"}`).Text(); !strings.Contains(got, "ann") {
		t.Errorf("a named socket has the first host's environment, got %q", got)
	}
}

// Hosts of different profiles have runs of their own, with the servers of their profile.
func TestHostsOfAProfileShareARun(t *testing.T) {
	t.Parallel()
	shared := newSharing(t)
	shared.config = mcptest.Config(t, document([]entry{fake(t, "alpha"), fake(t, "beta")}, `"profiles": {"a": ["alpha"], "b": ["beta"]}`))
	for _, profile := range []string{"a", "a", "b"} {
		host := shared.start(nil, "--profile", profile)
		host.Initialize(handshake, nil)
		for _, server := range []string{"alpha", "beta"} {
			answer := use(host, server+"/echo", `{"n":1}`)
			if got, want := answer.Text() == `{"n":1}`, server[:1] == profile; got != want {
				t.Errorf("profile %s: a call of %s was answered with %s", profile, server, answer.Raw)
			}
		}
	}
	if sockets := shared.glob("*.sock"); len(sockets) != 2 {
		t.Errorf("there are runs at %q, want two", sockets)
	}
}

// Codex puts a directory with a random name in front of PATH for each of its sessions, and
// keeps XDG_RUNTIME_DIR from the programs it starts.
func TestHostsWithDirectoriesOfTheirOwnShareARun(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "bin")
	if err := errors.Join(os.Mkdir(program, 0o755), os.Symlink(mcptest.Fake(t), filepath.Join(program, "server-by-name"))); err != nil {
		t.Fatal(err)
	}
	e := fake(t, "alpha").with("command", "server-by-name")
	shared := newSharing(t, e)
	var last *mcptest.Host
	for i := range 3 {
		own := filepath.Join(shared.home, ".codex", "tmp", "arg0", fmt.Sprintf("codex-arg0%d", i))
		if err := os.MkdirAll(own, 0o755); err != nil {
			t.Fatal(err)
		}
		variables := []string{"PATH=" + own + ":" + program + ":" + os.Getenv("PATH"), "XDG_RUNTIME_DIR="}
		if i == 1 {
			variables = variables[:1]
		}
		last = shared.greet(variables)
		if got := use(last, "alpha/echo", fmt.Sprintf(`{"n":%d}`, i)).Text(); got != fmt.Sprintf(`{"n":%d}`, i) {
			t.Errorf("got %s", got)
		}
	}
	if got := e.Count("start"); got != 1 {
		t.Errorf("the server was started %d times", got)
	}
	path := use(last, "alpha/env", `{"name":"PATH"}`).Text()
	contains(t, path, program)
	lacks(t, path, "codex-arg0")

	other := filepath.Join(t.TempDir(), "bin")
	if err := errors.Join(os.Mkdir(other, 0o755), os.Symlink(mcptest.Fake(t), filepath.Join(other, "server-by-name"))); err != nil {
		t.Fatal(err)
	}
	shared.greet([]string{"PATH=" + other + ":" + os.Getenv("PATH")}).Call("tools/list", nil)
	e.WaitFor("start", 2)
}

// A run in the directory that XDG_RUNTIME_DIR names is found by hosts without that variable.
func TestRunIsFoundWithoutItsDirectory(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	shared := newSharing(t, e)
	temporary := "TMPDIR=" + filepath.Dir(socketPath(t))
	first := shared.greet([]string{temporary})
	second := shared.greet([]string{temporary, "XDG_RUNTIME_DIR="})
	for _, host := range []*mcptest.Host{first, second} {
		checkEcho(t, host, "alpha/echo", `{"n":1}`)
	}
	if got := e.Count("start"); got != 1 {
		t.Errorf("the server was started %d times", got)
	}
}

// A run whose program was replaced ends with its last host, long before its idle timeout.
func TestRunEndsWhenItsProgramIsReplaced(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "dynmcp")
	install := func() {
		t.Helper()
		// Copied by another process: children that other tests start meanwhile would inherit
		// a file that this process writes, and a file that is open for writing cannot be
		// executed.
		err := exec.Command("cp", mcptest.Dynmcp(t), program+".new").Run()
		if err == nil {
			err = os.Rename(program+".new", program)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install()
	e := fake(t, "alpha")
	shared := newSharing(t, e)
	run := func() *mcptest.Host {
		t.Helper()
		host := mcptest.Start(t, mcptest.HostOptions{
			Args: []string{program, "connect", "-c", shared.config, "--idle", "20m"},
			Env:  []string{"XDG_RUNTIME_DIR=" + shared.dir, "TMPDIR=" + shared.dir, "HOME=" + shared.home}, Lingers: true,
		})
		host.Initialize(handshake, nil)
		return host
	}
	first := run()
	pid := shared.pid()
	install()
	second := run() // a run in use stays
	if got := shared.pid(); got != pid {
		t.Errorf("there is another run")
	}
	first.CloseStdin()
	first.Wait()
	second.CloseStdin()
	second.Wait()
	mcptest.WaitGone(t, pid)
	third := run()
	checkEcho(t, third, "alpha/echo", `{"n":1}`)
}

func TestConnectThatFails(t *testing.T) {
	t.Parallel()
	good, bad := newSharing(t, fake(t, "alpha")), newSharing(t)
	bad.config = mcptest.Config(t, `{"mcp": {}, "exposed": []}`)
	other := socketPath(t)
	listener, err := net.Listen("unix", other)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "{\"jsonrpc\":\"2.0\",\"method\":\"hello\"}\n")
			conn.Close()
		}
	}()
	open := filepath.Join(filepath.Dir(socketPath(t)), "open")
	if err := os.MkdirAll(filepath.Join(open, "dynmcp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(open, "dynmcp"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		sharing *sharing
		args    []string
		dir     string
		want    string
	}{
		{bad, nil, bad.dir, "exposed: unknown key"},
		{good, []string{"-c", "missing.json"}, good.dir, "Config file not found"},
		{good, []string{"--socket", other}, good.dir, "is served by another program"},
		{good, []string{"--socket", good.config}, good.dir, "exists and is no socket"},
		{good, nil, open, "is open to other users"},
		{good, nil, filepath.Join(good.dir, "none"), "name a socket with --socket"},
		{good, []string{"--socket", filepath.Join(good.dir, strings.Repeat("x", 100))}, good.dir, "may have 103 bytes"},
	} {
		args := append([]string{"connect", "-c", test.sharing.config}, test.args...)
		contains(t, fails(t, mcptest.HostOptions{Args: args, Env: []string{"XDG_RUNTIME_DIR=" + test.dir}}), test.want)
	}
}
