//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A FIFO without a writer in place of the config or its .env is refused. dynmcp still serves,
// reloads and ends.
func TestReloadMeetsAFIFO(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mcp.json", ".env"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			alpha, beta := fake(t, "alpha"), fake(t, "beta")
			l := &live{t: t, path: filepath.Join(dir, "mcp.json")}
			l.write(document([]entry{alpha}), false)
			l.Host = mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t)}, Dir: dir})
			greet(l.Host)
			l.pid("alpha")

			fifo := filepath.Join(dir, name)
			mkfifo := func() {
				_ = os.Remove(fifo) // it need not be there
				if err := syscall.Mkfifo(fifo, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			mkfifo()
			l.WaitStderr(fifo + " is not a regular file")
			l.pid("alpha")
			if err := os.Remove(fifo); err != nil {
				t.Fatal(err)
			}
			l.write(document([]entry{alpha, beta}), false)
			l.await(1)
			l.pid("beta")
			mkfifo()
			end(t, l.Host)
		})
	}
}
