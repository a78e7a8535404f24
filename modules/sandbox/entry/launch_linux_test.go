package entry

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/modules/sandbox/box"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// entry returns a fake with a sandbox, a home directory and a working directory.
func entry(t *testing.T, access Sandbox) (server schema.Server, home string) {
	t.Helper()
	home = t.TempDir()
	name, value := "SANDBOX_MARKER", rand.Text()
	t.Cleanup(func() {
		if left := mcptest.Processes(name + "=" + value); len(left) > 0 {
			t.Errorf("processes left behind: %v", left)
		}
	})
	server = schema.Server{Name: "up", Transport: schema.Stdio, Command: mcptest.Fake(t), Env: map[string]string{name: value}}
	server.Env["HOME"] = home
	server.Cwd = t.TempDir()
	access.On = true
	return Within(server, access), home
}

// patience is how long a test waits for an event that must come.
const patience = 2 * time.Minute

// dial opens a connection that is closed when the test ends.
func dial(t *testing.T, server schema.Server) *upstream.Conn {
	t.Helper()
	c, err := upstream.Open(server, upstream.ConnOptions{Info: upstream.Info{Name: "dynmcp", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Handshake(ctx, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// here serves "here" over HTTP on a loopback address.
func here(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	t.Cleanup(server.Close)
	return server
}

// does calls a tool that takes a name, and returns its text or its error.
func does(t *testing.T, c *upstream.Conn, what, name string) (text string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := c.Call(ctx, "tools/call", fmt.Appendf(nil, `{"name":%q,"arguments":{"name":%q}}`, what, name))
	return mcptest.Message{Result: result}.Text(), err
}

func TestSandbox(t *testing.T) {
	t.Setenv("SANDBOX_LEAK", "a key")
	server, home := entry(t, Sandbox{Write: []string{"~/notes"}, Env: schema.Inherit{None: true}})
	notes, key := filepath.Join(home, "notes"), filepath.Join(home, "id_rsa")
	if err := os.Mkdir(notes, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := dial(t, server)
	if text, err := does(t, c, "read_file", key); err == nil {
		t.Errorf("the server reads a key: %q", text)
	}
	if _, err := does(t, c, "write_file", filepath.Join(server.Cwd, "x")); err == nil {
		t.Error("the server writes to its working directory")
	}
	if _, err := does(t, c, "write_file", filepath.Join(notes, "x")); err != nil {
		t.Errorf("the server cannot write to a folder that it may write to: %v", err)
	}
	if text, _ := does(t, c, "env", "SANDBOX_LEAK"); text != "" {
		t.Errorf("the server has our variable SANDBOX_LEAK: %q", text)
	}
	temp, err := does(t, c, "env", "TMPDIR")
	if err != nil || temp == "" {
		t.Fatalf("got %q, %v", temp, err)
	}
	if _, err := does(t, c, "write_file", filepath.Join(temp, "x")); err != nil {
		t.Errorf("the server cannot write to its temporary directory: %v", err)
	}
	other := dial(t, server)
	if _, err := does(t, other, "read_file", filepath.Join(temp, "x")); err == nil {
		t.Error("another server reads the temporary files")
	}
	c.Close()
	if _, err := os.Stat(temp); !os.IsNotExist(err) {
		t.Errorf("the temporary directory is left: %v", err)
	}
}

func TestSandboxNetwork(t *testing.T) {
	t.Parallel()
	there := here(t)
	address := strings.TrimPrefix(there.URL, "http://")
	alone, _ := entry(t, Sandbox{Network: schema.Network{None: true}})
	if text, err := does(t, dial(t, alone), "get", there.URL); err == nil {
		t.Errorf("without a network: got %q", text)
	}
	named, _ := entry(t, Sandbox{Network: schema.Network{Hosts: []string{address, "api.example.com"}}})
	c := dial(t, named)
	// Go's client does not use the proxy for loopback addresses.
	if text, err := does(t, c, "get", there.URL); err == nil {
		t.Errorf("around the proxy: got %q", text)
	}
	if text, err := does(t, c, "get", "http://evil.example.com/"); err != nil || !strings.Contains(text, "403") || !strings.Contains(text, "does not name it") {
		t.Errorf("got %q, %v", text, err)
	}
	want := []string{
		"the sandbox does not allow a connection to " + address + " around the proxy that HTTPS_PROXY names",
		"the sandbox does not allow evil.example.com:80: its network does not name it",
	}
	if got := c.Process().Sandbox; got.Denied != 2 || !slices.Equal(got.LastDenied, want) {
		t.Errorf("got the status %+v", got)
	}
	for _, why := range want {
		if said := c.Stderr(); !strings.Contains(said, "dynmcp: "+why) {
			t.Errorf("stderr is %q, want %q in it", said, why)
		}
	}
}

func TestTrace(t *testing.T) {
	t.Parallel()
	there := here(t)
	for _, learn := range []bool{true, false} {
		t.Run(fmt.Sprintf("learn=%v", learn), func(t *testing.T) {
			server, home := entry(t, Sandbox{Network: schema.Network{Hosts: []string{"api.example.com"}}})
			home, err := filepath.EvalSymlinks(home)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(home, "key"), []byte("a key"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(home, "notes"), 0o700); err != nil {
				t.Fatal(err)
			}
			trace := &box.Trace{Learn: learn}
			c := dial(t, server.WithKeys(Keys{Of(server), trace}))
			text, readErr := does(t, c, "read_file", filepath.Join(home, "key"))
			_, writeErr := does(t, c, "write_file", filepath.Join(home, "notes", "x"))
			around, getErr := does(t, c, "get", there.URL)
			_, _ = does(t, c, "get", "http://localhost.example.com/")
			if learn && (text != "a key" || writeErr != nil || around != "200 OK here") {
				t.Errorf("the sandbox refused something: read %q, %v; write %v; get %q, %v", text, readErr, writeErr, around, getErr)
			}
			if !learn && (readErr == nil || writeErr == nil || getErr == nil) {
				t.Errorf("the sandbox allowed something: read %v, write %v, get %v", readErr, writeErr, getErr)
			}
			c.Close()
			if err := trace.Err(); err != nil {
				t.Fatal(err)
			}
			read, write := box.Paths(box.Beyond(Confined(server, Of(server)).Policy(), trace.Files()), home)
			if diff := cmp.Diff([]string{filepath.Join(home, "key")}, read); diff != "" {
				t.Errorf("paths read (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{filepath.Join(home, "notes")}, write); diff != "" {
				t.Errorf("paths written (-want +got):\n%s", diff)
			}
			if got := trace.Hosts(); !slices.Contains(got, "localhost.example.com:80") {
				t.Errorf("got hosts %v", got)
			}
			if got := trace.Denied(); !learn != slices.Equal(got, []string{"localhost.example.com:80"}) {
				t.Errorf("got refused hosts %v", got)
			}
			if got := trace.Addresses(); !slices.Equal(got, []string{strings.TrimPrefix(there.URL, "http://")}) {
				t.Errorf("got addresses %v, want %s", got, there.URL)
			}
		})
	}
}

// A trace records that a server without a network tried to open a socket, which is refused.
func TestTraceWithoutANetwork(t *testing.T) {
	t.Parallel()
	there := here(t)
	for name, wants := range map[string]bool{"get": true, "read_file": false} {
		server, _ := entry(t, Sandbox{Network: schema.Network{None: true}})
		trace := &box.Trace{}
		c := dial(t, server.WithKeys(Keys{Of(server), trace}))
		text, err := does(t, c, name, there.URL)
		c.Close()
		if err == nil || trace.Err() != nil || trace.Socket.Load() != wants {
			t.Errorf("%s: got %q, %v; a socket was refused: %v, %v", name, text, err, trace.Socket.Load(), trace.Err())
		}
	}
}
