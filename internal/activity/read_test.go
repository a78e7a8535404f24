package activity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One bad, oversized or incomplete line hides no other, in a file of any size that is read at once
// or while it grows.
func TestOneLineHidesNoOther(t *testing.T) {
	good := func(tool string) string {
		return `{"time":"2026-01-02T03:04:05Z","server":"a","tool":"` + tool + `","kind":"ok"}` + "\n"
	}
	huge := func(size int) string { return `{"host":"` + strings.Repeat("x", size) + "\"}\n" }
	for name, bad := range map[string]string{
		"not JSON": "{\n", "blank": " \n", "NUL": "\x00\x00\n", "largest": `{"tool":"c","host":"` + strings.Repeat("x", lineSize-100) + "\"}\n",
		"too long": huge(lineSize), "a part": huge(partSize - 11), "parts": huge(2*partSize + 5), "over 32 MiB": huge(34 << 20),
	} {
		text := good("first") + bad + good("second") + good("third")
		for _, pieces := range [][]string{{text}, {text[:100], text[100 : len(text)-90], text[len(text)-90:]}, {good("first") + bad[:len(bad)/2], bad[len(bad)/2:] + good("second"), good("third")}} {
			dir := t.TempDir()
			r, path, got := &Reader{Dir: dir}, filepath.Join(dir, "a"+suffix), ""
			for _, piece := range pieces {
				f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.WriteString(piece); err != nil {
					t.Fatal(err)
				}
				f.Close()
				lines, err := r.Next(t.Context(), &Filter{Server: "a"})
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range lines {
					got += " " + l.Tool
				}
			}
			broken := 1
			if name == "blank" || name == "largest" {
				broken = 0
			}
			if got != " first second third" || r.Broken != broken {
				t.Errorf("%s in %d pieces: got%s and %d broken lines, want %d", name, len(pieces), got, r.Broken, broken)
			}
		}
	}
}

// A tick reads nothing of files that have not changed.
func TestUnchangedFilesAreNotReadAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a"+suffix)
	if err := os.WriteFile(path, []byte(`{"server":"a"}`+"\n"+`{"server":`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &Reader{Dir: dir}
	if lines, err := r.Next(t.Context(), &Filter{}); err != nil || len(lines) != 1 {
		t.Fatal(lines, err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"server":"a"}`+"\n"+`{}     `+"\n  "), 0o600); err != nil { // as many bytes
		t.Fatal(err)
	}
	if after, _ := os.Stat(path); after.Size() != before.Size() {
		t.Fatal(after.Size())
	}
	if lines, err := r.Next(t.Context(), &Filter{}); err != nil || len(lines) != 0 || r.Broken != 0 {
		t.Errorf("got %d lines of an unchanged file", len(lines))
	}
}
