//go:build unix

package schema

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// special creates files that would block a reader, or never end.
func special(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // the path of a socket must be short
	listener, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return map[string]string{"fifo": fifo, "link to a fifo": link, "socket": filepath.Join(dir, "socket"), "device": "/dev/zero"}
}

// Anything but a regular file or a pipe of the shell is refused without being opened.
func TestLoadSpecialFiles(t *testing.T) {
	for kind, path := range special(t) {
		t.Run(kind, func(t *testing.T) {
			_, err := load([]string{path}, LoadOptions{})
			wantError(t, err, "read the config file: "+path+" is not a regular file")
			dir := write(t, map[string]string{"mcp.json": minimal, "process.json": `{"env": "process", "mcp": {"a": {"command": "x"}}}`})
			_, err = load([]string{"mcp.json"}, LoadOptions{EnvFile: path})
			wantError(t, err, "read the .env file: "+path+" is not a regular file")
			if err := os.Symlink(path, ".env"); err != nil {
				t.Fatal(err)
			}
			_, err = load([]string{"mcp.json"}, LoadOptions{})
			wantError(t, err, "read the .env file: "+filepath.Join(dir, ".env")+" is not a regular file")
			if _, err := load([]string{"process.json"}, LoadOptions{}); err != nil {
				t.Errorf("a .env that is not needed: %v", err)
			}
		})
	}
}

// pipe returns a pipe under the name that a shell gives the one of <(…).
func pipe(t *testing.T) (path string, in *os.File) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close(); in.Close() })
	return fmt.Sprintf("/dev/fd/%d", out.Fd()), in
}

// A pipe of the shell is read once. Rereading changes nothing.
func TestLoadPipe(t *testing.T) {
	dir := write(t, map[string]string{".env": "WHO=me"})
	path, in := pipe(t)
	go func() {
		fmt.Fprint(in, minimal)
		in.Close()
	}()
	files := ReadFiles(t.Context(), []string{path}, LoadOptions{})
	for range 2 {
		cfg, err := files.Load()
		if err != nil || cfg.Servers[0].Args[0] != "me" {
			t.Fatalf("got %+v, %v", cfg, err)
		}
		var changed bool
		if files, changed = files.Reread(t.Context()); changed {
			t.Fatal("the files are unchanged, and Reread reports a change")
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("WHO=you"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, changed := files.Reread(t.Context())
	if !changed {
		t.Error("the .env has changed, and Reread reports no change")
	}
	if cfg, err := again.Load(); err != nil || cfg.Servers[0].Args[0] != "you" {
		t.Errorf("got %+v, %v", cfg, err)
	}
}

// Cancelling ends the wait for a pipe that nobody writes to.
func TestReadFilesCancelled(t *testing.T) {
	path, _ := pipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ReadFiles(ctx, []string{path}, LoadOptions{Dir: t.TempDir()}).Load()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
