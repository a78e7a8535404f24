package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(t.Context(), path, 4); err != nil || string(got) != "text" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := Read(t.Context(), path, 3); err == nil || !strings.Contains(err.Error(), path+" is larger than") {
		t.Errorf("a byte more than the limit: got %v", err)
	}
	if _, err := Read(t.Context(), dir, 4); !errors.Is(err, ErrDirectory) {
		t.Errorf("a directory: got %v", err)
	}
	if _, err := Read(t.Context(), path+"s", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	if got, err := Head(t.Context(), path, 3); err != nil || string(got) != "tex" {
		t.Errorf("got %q, %v", got, err)
	}
	refused := errors.New("refused")
	if got, err := ReadNoFollow(t.Context(), path, 4, func(fs.FileInfo) error { return refused }); got != nil || !errors.Is(err, refused) {
		t.Errorf("refused: got %q, %v", got, err)
	}
}
