package editfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/cli"
)

func onlyFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the directory holds %q, want %q", got, want)
	}
}

// A file that was changed since it was read is not overwritten.
func TestEditedFileChangedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	for _, before := range []string{"", "old"} {
		if before != "" {
			writeText(t, path, before)
		}
		file, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		writeText(t, path, "theirs")
		if err := file.Write([]byte("ours")); err == nil || !strings.Contains(err.Error(), "has changed meanwhile") {
			t.Errorf("got %v", err)
		}
		if got, _ := os.ReadFile(path); string(got) != "theirs" {
			t.Errorf("the file holds %q", got)
		}
		onlyFiles(t, dir, "mcp.json")
	}
}

// Of several concurrent runs each either writes or returns an error: no change is lost silently.
func TestEditedFileConcurrently(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	writeText(t, path, "")
	const runs = 8
	wrote := make(chan bool, runs)
	for range runs {
		go func() {
			file, err := Open(path)
			if err == nil {
				err = file.Write(append(file.Old, 'x'))
			}
			wrote <- err == nil
		}()
	}
	want := 0
	for range runs {
		if <-wrote {
			want++
		}
	}
	if got, err := os.ReadFile(path); err != nil || len(got) != want || want == 0 {
		t.Errorf("%d runs wrote, the file has %d of them, %v", want, len(got), err)
	}
	onlyFiles(t, dir, "mcp.json", "mcp.json.bak")
}

// A failed write keeps the old file, and leaves no other file behind.
func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "taken", "inside"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(filepath.Join(dir, "taken"), []byte("x"), 0); err == nil {
		t.Error("a directory was replaced")
	}
	onlyFiles(t, dir, "taken")
	if err := atomicfile.Replace(filepath.Join(dir, "none", "mcp.json"), []byte("x"), 0); err == nil {
		t.Error("a file was written where there is no directory")
	}
	if _, err := Open(os.DevNull); err == nil {
		t.Error("a device can be edited")
	}
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// A new config of a release names the schema of the release's tag, another one a file that is written
// beside it.
func TestSchemaOfNewConfigs(t *testing.T) {
	if address := SchemaAddress(true); !strings.HasSuffix(address, "/v"+cli.Version+"/schema/dynmcp.schema.json") {
		t.Errorf("a release names %s", address)
	}
	if cli.Released() {
		t.Error("a test is no build of a release")
	}
	dir := t.TempDir()
	for _, address := range []string{SchemaAddress(true), "https://example.com/schema.json", ""} {
		if path, err := WriteSchema(t.Context(), filepath.Join(dir, "mcp.json"), address, false); err != nil || path != "" {
			t.Errorf("%s: got %s, %v", address, path, err)
		}
	}
	onlyFiles(t, dir)
	config := filepath.Join(dir, "mcp.json")
	path, err := WriteSchema(t.Context(), config, SchemaAddress(false), false)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, SchemaAddress(false)); path != want {
		t.Errorf("got %s, want %s", path, want)
	}
	old := bytes.Replace(JSONSchema(t.Context()), []byte("draft"), []byte("old"), 1)
	writeText(t, path, string(old))
	if _, err := WriteSchema(t.Context(), config, SchemaAddress(false), false); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(path); !bytes.Equal(text, JSONSchema(t.Context())) {
		t.Error("the schema of another version stays")
	}
	onlyFiles(t, dir, filepath.Base(path))
}
