package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// shareVariable names the variable with a share that .ci/windows makes. On Windows itself the
// share of the first drive is used, which is open to administrators.
const shareVariable = "MCPTEST_SHARE"

// share returns a directory in a share, \\server\share\….
func share(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(shareVariable)
	if dir == "" {
		own := t.TempDir()
		dir = `\\localhost\` + own[:1] + "$" + own[2:]
	}
	dir, err := os.MkdirTemp(dir, "test")
	if err != nil {
		t.Skipf("there is no share: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// All that dynmcp reads, starts, writes and watches is in a share, or in a directory whose path
// has the prefix of long ones: the config, programs, the catalogue, the lock of the tools. Wine
// starts no program in a share, as Windows does; there batch files are refused.
func TestDirectoriesOfWindows(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(mcptest.Fake(t))
	if err != nil {
		t.Fatal(err)
	}
	shared := share(t)
	for name, dir := range map[string]string{"share": shared, "long-share": `\\?\UNC` + shared[1:], "long": `\\?\` + t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, options := filepath.Join(dir, name), mcptest.HostOptions{}
			servers := map[string]map[string]string{
				"exe":    {"command": filepath.Join(dir, "a server.exe")},
				"batch":  {"command": filepath.Join(dir, "run it.cmd")},
				"inside": {"command": filepath.Join(dir, "run it.cmd"), "cwd": dir},
			}
			works := []string{"exe", "batch"}
			if name == "long" {
				works = append(works, "inside", "relative")
				options.Dir = dir
				servers["relative"] = map[string]string{"command": `.\a server.exe`, "cwd": dir}
			}
			config := func() string {
				return fmt.Sprintf(`{"startup_wait": "60s", "defaults": {"pins": "warn"}, "catalog": {"dir": "kept"}, "mcp": %s}`, mcptest.Raw(servers))
			}
			writeFile(t, dir, "mcp.json", config())
			writeProgram(t, dir, "a server.exe", string(program))
			writeProgram(t, dir, "run it.cmd", "@\""+mcptest.Fake(t)+"\" %*\r\n")
			options.Args = []string{mcptest.Dynmcp(t), "-c", filepath.Join(dir, "mcp.json")}
			host := mcptest.Start(t, options)
			greet(host)
			for _, server := range works {
				contains(t, use(host, server+"/echo", `{"text":"grün"}`).Text(), "grün")
			}
			if name == "long" {
				for _, server := range works {
					if got := use(host, server+"/cwd", nil).Text(); strings.TrimPrefix(filepath.Clean(got), `\\?\`) != dir[len(`\\?\`):] {
						t.Errorf("%s runs in %q, want %q", server, got, dir)
					}
				}
			} else {
				host.WaitStderr("cmd.exe has no shares as working directories")
			}
			delete(servers, "batch")
			writeFile(t, dir, "mcp.json", config())
			host.WaitStderr("config reloaded")
			end(t, host)
			for _, pattern := range []string{"kept/*.listing", "dynmcp.lock"} {
				if found, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(found) == 0 {
					t.Errorf("%s: %v, %v", pattern, found, err)
				}
			}
		})
	}
}
