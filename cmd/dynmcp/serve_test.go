//go:build unix

package main_test

import (
	"bufio"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/cli/localhttp"
	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// socketPath returns a path for a socket in a directory that only we may enter. Paths of
// t.TempDir are too long for some systems.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dynmcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// serveOn runs dynmcp serve on a socket, with further arguments, and returns when hosts
// may connect.
func serveOn(t *testing.T, socket, config string, args ...string) *mcptest.Process {
	t.Helper()
	args = append([]string{mcptest.Dynmcp(t), "serve", "--socket", socket, "-c", config}, args...)
	p := mcptest.Run(t, mcptest.HostOptions{Args: args, Lingers: true})
	p.WaitStderr("msg=serving")
	return p
}

// dial connects a host to a socket.
func dial(t *testing.T, socket string) *mcptest.Conn {
	t.Helper()
	return mcptest.Talk(t, connection(t, socket), nil)
}

// connection returns the connection of a host to a socket.
func connection(t *testing.T, socket string) net.Conn {
	t.Helper()
	conn, _, err := localhttp.Connect(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestManyHostsShareOneProcessPerServer(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	socket := socketPath(t)
	p := serveOn(t, socket, mcptest.Config(t, document([]entry{e})))
	hosts := make([]*mcptest.Conn, 5)
	for i := range hosts {
		hosts[i] = dial(t, socket)
		hosts[i].Initialize(handshake, nil)
	}
	pending := make([]*mcptest.Pending, len(hosts))
	for i, host := range hosts { // the ids are the same in all
		pending[i] = host.Go("tools/call", useParams("alpha/echo", fmt.Sprintf(`{"host":%d}`, i)))
	}
	for i, call := range pending {
		if got, want := call.Wait().Text(), fmt.Sprintf(`{"host":%d}`, i); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := e.Count("start"); got != 1 {
		t.Errorf("the server was started %d times", got)
	}
	p.Signal(syscall.SIGTERM)
	for _, host := range hosts {
		host.WaitEnd()
	}
	p.Wait()
	if _, err := os.Lstat(socket); err == nil {
		t.Error("the socket is still there")
	}
}

func TestSocketIsForItsUserOnly(t *testing.T) {
	t.Parallel()
	socket := socketPath(t)
	serveOn(t, socket, mcptest.Config(t, document([]entry{deferred(t, "idle", "Never used.")})))
	info, err := os.Lstat(socket)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != fs.ModeSocket|0o600 {
		t.Errorf("the mode of the socket is %v", got)
	}
}

func TestSocketOfARunThatWasKilledIsReplaced(t *testing.T) {
	t.Parallel()
	socket, config := socketPath(t), mcptest.Config(t, document([]entry{deferred(t, "idle", "Never used.")}))
	serveOn(t, socket, config).Kill()
	if _, err := os.Lstat(socket); err != nil {
		t.Fatal("the test needs a socket that was left behind: ", err)
	}
	serveOn(t, socket, config)
	dial(t, socket).Initialize(handshake, nil)
}

func TestSocketThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	config := mcptest.Config(t, document([]entry{deferred(t, "idle", "Never used.")}))
	served, taken, long := socketPath(t), socketPath(t), filepath.Join(filepath.Dir(socketPath(t)), strings.Repeat("x", 100))
	serveOn(t, served, config)
	writeFile(t, filepath.Dir(taken), filepath.Base(taken), "mine")
	for _, test := range []struct{ path, want string }{
		{served, "is served by a dynmcp that runs"},
		{taken, "exists and is no socket"},
		{long, "the path of a socket may have 103 bytes"},
		{filepath.Join(served, "none"), "not a directory"},
		{"", "serve needs to be told where it is reached"},
	} {
		contains(t, fails(t, mcptest.HostOptions{Args: []string{"serve", "--socket", test.path, "-c", config}}), test.want)
	}
	if text, err := os.ReadFile(taken); err != nil || string(text) != "mine" {
		t.Errorf("the file is %q now, %v", text, err)
	}
}

// Calls in flight are answered when the run ends, and sessions end.
func TestCallsOverASocketAreAnsweredAtTheEnd(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	socket := socketPath(t)
	p := serveOn(t, socket, mcptest.Config(t, document([]entry{e})))
	host := dial(t, socket)
	host.Initialize(handshake, nil)
	call := host.Go("tools/call", useParams("alpha/sleep", `{"ms":600000}`))
	e.WaitFor("call sleep", 1)
	p.Signal(syscall.SIGTERM)
	contains(t, call.Wait().Raw, "dynmcp is shutting down", "unknown")
	host.WaitEnd()
	p.Wait()
	mcptest.WaitVanished(t, p.Marker())
}

// A run ends by itself only while no host is connected.
func TestSocketThatNobodyUsesEnds(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	socket := socketPath(t)
	config := mcptest.Config(t, document([]entry{e}))
	var p *mcptest.Process
	var conn net.Conn
	idle := time.Second
	for ; ; idle *= 2 { // a slow machine may take longer than that to get here
		p = serveOn(t, socket, config, "--idle", idle.String())
		var err error
		if conn, _, err = localhttp.Connect(t.Context(), socket); err == nil {
			fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":0,"method":"ping"}`)
			if _, err = bufio.NewReader(conn).ReadString('\n'); err == nil {
				break
			}
			conn.Close()
		}
		p.Wait()
	}
	host := mcptest.Talk(t, conn, nil)
	host.Initialize(handshake, nil)
	if m := host.Call("tools/call", useParams("alpha/sleep", fmt.Sprintf(`{"ms":%d}`, (idle+time.Second).Milliseconds()))); m.IsError() {
		t.Errorf("got %s", m.Raw)
	}
	conn.Close()
	leaves(t, p)
	mcptest.WaitVanished(t, p.Marker())
	if _, err := os.Lstat(socket); err == nil {
		t.Error("the socket is still there")
	}
}

// Programs that clear directories of what looks old remove sockets as well.
func TestSocketThatWasRemovedIsMadeAgain(t *testing.T) {
	t.Parallel()
	socket := socketPath(t)
	serveOn(t, socket, mcptest.Config(t, document([]entry{deferred(t, "idle", "Never used.")})), "--idle", "20m")
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	mcptest.Eventually(t, "the socket is there again", func() bool { _, err := os.Lstat(socket); return err == nil })
	dial(t, socket).Initialize(handshake, nil)
}

// Two runs never share a path. A run whose path was taken serves the hosts it has, and ends
// when they leave.
func TestSocketThatAnotherRunTookIsLeftToIt(t *testing.T) {
	t.Parallel()
	socket, config := socketPath(t), mcptest.Config(t, document([]entry{deferred(t, "idle", "Never used.")}))
	first := serveOn(t, socket, config)
	host := dial(t, socket)
	host.Initialize(handshake, nil)
	if err := os.Remove(socket + ".lock"); err != nil {
		t.Fatal(err)
	}
	serveOn(t, socket, config)
	first.WaitStderr("the socket is another's now")
	host.Call("ping", nil) // a connected host stays
	dial(t, socket).Initialize(handshake, nil)
}

// In a shared run each session lists what was known when it began: a server that was starting
// in one session is listed in the next.
func TestListThatStaysIsOneOfTheSession(t *testing.T) {
	t.Parallel()
	gate := mcptest.NewGate(t)
	late := fake(t, "late", "-bare", "-tool", `{"name":"toast","inputSchema":{"type":"object"}}`, "-fault", "gate-init:"+gate.Path)
	socket := socketPath(t)
	run := serveOn(t, socket, mcptest.Config(t, document([]entry{fake(t, "alpha"), late}, `"startup_wait": 0`)))
	listed := func(host *mcptest.Conn) string {
		host.Call("initialize", helloOf("codex-mcp-client"))
		host.Notify("notifications/initialized", nil)
		host.Call("prompts/list", nil)
		return string(host.Call("tools/list", nil).Raw)
	}
	first := dial(t, socket)
	lacks(t, listed(first), "toast")
	gate.Open()
	run.WaitStderr("msg=ready upstream=late")
	second := dial(t, socket)
	contains(t, listed(second), "toast")
	lacks(t, string(first.Call("tools/list", nil).Raw), "toast")
	second.Call("tools/call", useParams("alpha/add_prompt", `{"name":"settle"}`)) // its announcement comes behind any other
	for _, host := range []*mcptest.Conn{first, second} {
		host.WaitMethod(promptsChanged, 1)
	}
	if n := first.Count(toolsChanged) + second.Count(toolsChanged); n != 0 {
		t.Errorf("%d announcements", n)
	}
}
