package atomicfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/regular"
)

// A reader gets one of the texts whole while the file is replaced, as processes that share a login
// do. Windows refuses to replace a file that is open.
func TestReplaceWhatIsRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	texts := [][]byte{bytes.Repeat([]byte("a"), 1<<14), bytes.Repeat([]byte("b"), 1<<15)}
	if err := atomicfile.Replace(path, texts[0], 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			got, err := regular.Read(t.Context(), path, regular.Small)
			if err != nil || !bytes.Equal(got, texts[0]) && !bytes.Equal(got, texts[1]) {
				t.Errorf("read %d bytes: %v", len(got), err)
				return
			}
		}
	})
	for i := range 100 {
		if err := atomicfile.Replace(path, texts[i%2], 0o600); err != nil {
			t.Error(err)
			break
		}
	}
	close(ended)
	reader.Wait()
}

// What killed writers left is removed later, and nothing else is.
func TestLeftoversAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	write := func(name string, age time.Duration) {
		t.Helper()
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(at, time.Now(), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	kept := []string{".mcp.json.NEWWRITE", ".mcp.json.lock", ".mcp.json.lowercas", ".mcp.json.ABCDEFG1", ".mcp.json.bak.ABCDEFGH", ".other.json.ABCDEFGH", "mcp.json.ABCDEFGH"}
	write(".mcp.json.ABCDEFGH", time.Hour)
	write(".mcp.json.ABCDEFG2", 24*time.Hour)
	for _, name := range kept {
		write(name, time.Hour)
	}
	write(kept[0], 0)
	if err := os.Mkdir(filepath.Join(dir, ".mcp.json.DIRECTOR"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(path, []byte("y"), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := append(kept, "mcp.json", ".mcp.json.DIRECTOR")
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
}
