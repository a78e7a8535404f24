//go:build unix

package upstream

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
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
