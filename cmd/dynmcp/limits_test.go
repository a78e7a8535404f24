//go:build linux

package main_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Limits of the system, under which dynmcp is started here, and of dynmcp itself.

// limited runs dynmcp under a ulimit of the shell.
func limited(t *testing.T, ulimit string, args ...string) *mcptest.Host {
	t.Helper()
	sh := []string{"sh", "-c", "ulimit " + ulimit + ` && exec "$0" "$@"`, mcptest.Dynmcp(t)}
	return mcptest.Start(t, mcptest.HostOptions{Args: append(sh, args...)})
}

// status returns the rest of the line that begins with name in a file of /proc/PID.
func status(t *testing.T, pid int, file, name string) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("no %q in %s", name, data)
	return ""
}

// Neither dynmcp nor a server leaves a core file: it would hold every secret.
func TestNoCoreFiles(t *testing.T) {
	t.Parallel()
	host := limited(t, `-S -c "$(ulimit -H -c)"`, "-c", mcptest.Config(t, document([]entry{fake(t, "alpha")})))
	greet(host)
	server, err := strconv.Atoi(use(host, "alpha/pid", nil).Text())
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{host.Pid(), server} {
		if soft, _, _ := strings.Cut(status(t, pid, "limits", "Max core file size"), " "); soft != "0" {
			t.Errorf("process %d may write a core file of %s bytes", pid, soft)
		}
	}
}

// Where a file cannot be written whole, the old one stays as it was, nothing is
// left beside it, and the error says why. RLIMIT_FSIZE is a disk that is full.
func TestVerbsOnAFullDisk(t *testing.T) {
	t.Parallel()
	large := func(key string) string {
		var servers []string
		for n := range 100 {
			servers = append(servers, fmt.Sprintf(`"s%d": {"command": "x", "args": [%q]}`, n, strings.Repeat("x", 50)))
		}
		return `{` + quote(key) + `: {` + strings.Join(servers, ",\n") + "}}\n"
	}
	for verb, args := range map[string][]string{
		"add":     {"new", "--", "x"},
		"remove":  {"s1"},
		"import":  {"cursor", "--write", "--force"},
		"install": {"claude-code", "--yes"},
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			files := map[string]string{
				"mcp.json":         large("mcp"),
				".claude.json":     large("mcpServers"),
				".cursor/mcp.json": `{"mcpServers": {"theirs": {"command": "y"}}}`,
			}
			for name, text := range files {
				writeFile(t, home, name, text)
			}
			run := func(ulimit string) (string, error) {
				cmd := exec.Command("sh", append([]string{"-c", ulimit + ` exec "$0" "$@"`, mcptest.Dynmcp(t), verb}, args...)...)
				cmd.Dir, cmd.Env = home, append(mcptest.Environ(t), "HOME="+home)
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			out, err := run("ulimit -f 1 &&")
			if err == nil || !strings.Contains(out, "dynmcp: ") || !strings.Contains(out, "file too large") {
				t.Errorf("got %v, %s", err, out)
			}
			left := 0
			_ = filepath.WalkDir(home, func(path string, d fs.DirEntry, _ error) error {
				if d.IsDir() {
					return nil
				}
				left++
				name, _ := filepath.Rel(home, path)
				if text, err := os.ReadFile(path); err != nil || string(text) != files[name] {
					t.Errorf("%s: got %d bytes, %v", name, len(text), err)
				}
				return nil
			})
			if left != len(files) {
				t.Errorf("%d files are there, %d were", left, len(files))
			}
			if out, err := run(""); err != nil { // with room it works
				t.Errorf("got %v, %s", err, out)
			}
		})
	}
}
