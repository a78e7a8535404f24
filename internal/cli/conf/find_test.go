package conf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte("{}"), 0o666)); err != nil {
		t.Fatal(err)
	}
}

// Without a path the file is found by name, mcp.json first.
func TestFind(t *testing.T) {
	for want, names := range map[string][]string{
		"mcp.json":  {"mcp.json", ".mcp.json", "mcp.yaml"},
		".mcp.json": {".mcp.json", "mcp.jsonc", "mcp.yml"},
		"mcp.jsonc": {"mcp.jsonc", "mcp.yaml"},
		"mcp.yaml":  {"mcp.yaml", "mcp.yml"},
		"mcp.yml":   {"mcp.yml", "other.json"},
	} {
		t.Run(want, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			for _, name := range names {
				write(t, filepath.Join(dir, name))
			}
			for _, arg := range []string{"", dir} {
				if got, err := Find(arg); err != nil || got != filepath.Join(dir, want) {
					t.Errorf("Find(%q): got %q, %v, want %q", arg, got, err, want)
				}
			}
		})
	}
}

// The error for a missing config says what was tried and what to do. A directory is no config
// file.
func TestFindNothing(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("mcp.json", 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := Find("")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want it to be fs.ErrNotExist", err)
	}
	for _, word := range append([]string{"No config file found", dir, "dynmcp init", "-c"}, fileNames...) {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want %q in it", err, word)
		}
	}
}

// The user's file is below XDG_CONFIG_HOME, JSON first.
func TestFindUser(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	if got := FindUser(); got != "" {
		t.Errorf("got %s, want none", got)
	}
	for _, name := range []string{"config.yaml", "config.json"} {
		path := filepath.Join(home, "dynmcp", name)
		write(t, path)
		if got := FindUser(); got != path {
			t.Errorf("got %s, want %s", got, path)
		}
	}
}
