package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestResolveKeepsWhatIsMissing(t *testing.T) {
	dir := Resolve(t.TempDir())
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"link": "real", "link/a": "real/a", "link/a/b": "real/a/b", "a/link": "a/link"} {
		if got := Resolve(filepath.Join(dir, path)); got != filepath.Join(dir, want) {
			t.Errorf("%s: got %s", path, got)
		}
	}
}

func TestCloseReleasesTheRuleset(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []*Restrictions{nil, {}, {Ruleset: file}} {
		if err := w.Close(); err != nil {
			t.Errorf("%+v: %v", w, err)
		}
	}
	if file.Close() == nil {
		t.Error("the ruleset is still open")
	}
}
