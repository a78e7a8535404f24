//go:build unix

package upstream

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/transports"
)

// A container ends with its connection, however its server and its client behave.
func TestContainersEndWithTheirConnection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault string
		end   func(t *testing.T, c *Conn)
	}{
		"good":              {"", func(_ *testing.T, c *Conn) { c.Close() }},
		"deaf":              {"ignore-eof,ignore-term", func(_ *testing.T, c *Conn) { c.Close() }},
		"its client killed": {"", func(_ *testing.T, c *Conn) { c.Kill() }},
		"crash": {"crash-call", func(t *testing.T, c *Conn) {
			_, err := tool(t, c, "echo", `{"text":"a"}`)
			wantFailure(t, err, transports.CodeExited, transports.Unknown)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, containers := mcptest.Engine(t)
			server := fake(t, "-fault", c.fault)
			server.Name = rand.Text()[:8]
			server.Command, server.Args = engine, slices.Concat([]string{"run", "-i", "--rm", server.Command}, server.Args)
			conn := dial(t, server, ConnOptions{})
			if len(containers()) != 1 {
				t.Fatalf("%d containers run", len(containers()))
			}
			c.end(t, conn)
			waitFor(t, "the end", conn.Done())
			conn.Close()
			if left := containers(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "dynmcp-"+server.Name+"-*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A server behind a client that passes its stdin on, and no signals, ends by the end of its stdin: also if the
// client is killed.
func TestFarSidesEndByTheirStdin(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Conn){"closed": (*Conn).Close, "killed": (*Conn).Kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fake(t, "-fault", "ignore-term")
			dir := t.TempDir()
			in, out, ssh := filepath.Join(dir, "in"), filepath.Join(dir, "out"), filepath.Join(dir, "ssh")
			script := "#!/bin/sh\ncat <'" + out + "' &\nexec cat >'" + in + "'\n"
			if err := errors.Join(syscall.Mkfifo(in, 0o600), syscall.Mkfifo(out, 0o600), os.WriteFile(ssh, []byte(script), 0o700)); err != nil {
				t.Fatal(err)
			}
			far := exec.Command("sh", slices.Concat([]string{"-c", `exec "$@" <"$0/in" >"$0/out"`, dir, server.Command}, server.Args)...)
			if err := far.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { far.Process.Kill() })
			ended := make(chan struct{})
			go func() { far.Wait(); close(ended) }()
			server.Command, server.Args = ssh, []string{"host", "mcp"}
			conn := dial(t, server, ConnOptions{})
			end(conn)
			waitFor(t, "the end of the client", conn.Done())
			conn.Close()
			waitFor(t, "the end of the server", ended)
		})
	}
}
