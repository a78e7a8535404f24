package hosts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A file of the working directory that import reads is found, whichever program's it is.
func TestFilesInDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, file := InDirectory(); file != "" {
		t.Errorf("got %s in an empty directory", file)
	}
	found := 0
	for _, h := range slices.Concat(all, programs) {
		for _, path := range h.Host.Project {
			if strings.Contains(path, "*") {
				continue
			}
			t.Chdir(t.TempDir())
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o666); err != nil {
				t.Fatal(err)
			}
			if _, file := InDirectory(); file != path {
				t.Errorf("%s: got %q, want %s", h.Name, file, path)
			}
			found++
		}
	}
	if found < 5 {
		t.Errorf("only %d files", found)
	}
}
