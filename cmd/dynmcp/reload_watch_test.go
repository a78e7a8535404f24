package main_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The watch follows the path of the config, wherever it leads.

// follow runs dynmcp on the existing config at path, and changes that to these entries. When
// it returns they are in force, and dynmcp has finished starting.
func follow(t *testing.T, path string, entries ...entry) *live {
	t.Helper()
	l := &live{mcptest.StartDynmcp(t, "-c", path), t, path}
	greet(l.Host)
	l.edit(entries...)
	return l
}

func TestReloadFollowsAReplacedDirectory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a directory that is watched cannot be moved")
	}
	for name, replace := range map[string]func(dir string) error{
		"moved":   func(dir string) error { return os.Rename(dir, dir+".old") },
		"removed": os.RemoveAll,
		// No event reports that a parent of the directory was moved.
		"parent moved": func(dir string) error {
			parent := filepath.Dir(dir)
			return errors.Join(os.Rename(parent, parent+".old"), os.Mkdir(parent, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "parent", "config")
			if err := os.Mkdir(filepath.Dir(dir), 0o700); err != nil {
				t.Fatal(err)
			}
			alpha, beta, gamma := fake(t, "alpha"), fake(t, "beta"), fake(t, "gamma")
			writeFile(t, dir, "mcp.json", document([]entry{alpha, beta}))
			l := follow(t, filepath.Join(dir, "mcp.json"), alpha)
			if err := replace(dir); err != nil {
				t.Fatal(err)
			}
			writeFile(t, dir, "mcp.json", document([]entry{alpha, beta}))
			l.await(2)
			l.pid("beta")
			l.edit(alpha, gamma)
			l.pid("gamma")
		})
	}
}

func TestReloadFollowsALinkThatIsAimedElsewhere(t *testing.T) {
	t.Parallel()
	for name, aim := range map[string]struct{ link, config string }{
		"to the file":      {"mcp.json", "mcp.json"},
		"to its directory": {"current", filepath.Join("current", "mcp.json")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			alpha, beta, gamma := fake(t, "alpha"), fake(t, "beta"), fake(t, "gamma")
			writeFile(t, filepath.Join(dir, "one"), "mcp.json", document([]entry{alpha, beta}))
			writeFile(t, filepath.Join(dir, "two"), "mcp.json", document([]entry{alpha, beta}))
			path := filepath.Join(dir, aim.config)
			target := func(version string) string {
				if aim.link == "current" {
					return filepath.Join(dir, version)
				}
				return filepath.Join(dir, version, "mcp.json")
			}
			link := filepath.Join(dir, aim.link)
			if err := os.Symlink(target("one"), link); err != nil {
				t.Skip(err)
			}
			l := follow(t, path, alpha)
			if err := errors.Join(os.Remove(link), os.Symlink(target("two"), link)); err != nil {
				t.Fatal(err)
			}
			l.await(2)
			l.pid("beta")
			writeFile(t, filepath.Join(dir, "two"), "mcp.json", document([]entry{alpha, gamma}))
			l.await(3)
			l.pid("gamma")
		})
	}
}

// Continuous edits do not postpone a reload for ever.
func TestReloadDuringContinuousEdits(t *testing.T) {
	t.Parallel()
	alpha, beta := fake(t, "alpha"), fake(t, "beta")
	l := run(t, nil, alpha)
	with := document([]entry{alpha, beta})
	for end := time.Now().Add(time.Minute); l.loads() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the config is not reloaded while it is edited")
		}
		with += "\n"
		l.write(with, true)
	}
	l.pid("beta")
}
