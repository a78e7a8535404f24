package main

import (
	"archive/zip"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
)

// The manifest of an extension has the platform of the binary alone.
func TestManifestIsOfOnePlatform(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.mcpb")
	if err := run(out, "windows", "manifest.json", "main.go", nil); err != nil {
		t.Fatal(err)
	}
	packed, err := zip.OpenReader(out)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	file, err := packed.Open("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var manifest struct {
		Compatibility struct{ Platforms []string }
	}
	if err := json.NewDecoder(file).Decode(&manifest); err != nil {
		t.Fatal(err)
	}
	if got := manifest.Compatibility.Platforms; !slices.Equal(got, []string{"win32"}) {
		t.Errorf("got %q", got)
	}
	if err := run(out, "plan9", "manifest.json", "main.go", nil); err == nil {
		t.Error("packed for a platform that the manifest does not name")
	}
}
