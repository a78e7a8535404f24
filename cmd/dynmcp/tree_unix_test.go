//go:build unix

package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A source that does not start is printed without the tools that it had in an earlier run, whatever is
// wrong with it.
func TestDumpTreeOfASourceThatDoesNotStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ fault, more, said string }{
		"aliases that collide": {"", `,"path_aliases":{"tool_001":"tool_002"}`, `s: listing: tool "tool_001" has the alias "tool_002"`},
		"it ends":              {"exit 3", "", "s: it exited with status 3"},
		"its list fails":       {"FAULT='-fault fail-list:tools'", "", "s: listing: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fault := filepath.Join(dir, "fault")
			writeProgram(t, dir, "server", fmt.Sprintf("#!/bin/sh\n[ ! -e '%s' ] || . '%[1]s'\nexec '%s' -tools 3 $FAULT\n", fault, mcptest.Fake(t)))
			config := func(more string) string {
				return fmt.Sprintf(`{"tree":[{"path":"/s","type":"node","source":{"backend":"stdio","command":%q%s}}]}`, filepath.Join(dir, "server"), more)
			}
			environ := mcptest.Environ(t)
			dump := func(config string) (string, string, int) {
				host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "--dump-tree", "-c", mcptest.Config(t, config)}, Env: environ})
				code := host.Wait()
				return strings.Join(host.Lines(), "\n"), host.Stderr(), code
			}
			if out, stderr, code := dump(config("")); code != 0 || !strings.Contains(out, "\ntool /s/tool_001") {
				t.Fatalf("exit status %d, got\n%s\n%s", code, out, stderr)
			}
			writeFile(t, dir, "fault", c.fault+"\n")
			out, stderr, code := dump(config(c.more))
			contains(t, out, "node /s: ", "(could not be started: ")
			lacks(t, out, "tool /s/")
			contains(t, stderr, "the tree is not whole:\n"+c.said)
			if code != 1 {
				t.Errorf("got exit status %d", code)
			}
		})
	}
}
