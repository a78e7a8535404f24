package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// What somebody else wrote since the file was read is not overwritten.
func TestEditedFileChangedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	for _, before := range []string{"", "old"} {
		if before != "" {
			writeText(t, path, before)
		}
		file, err := openEdited(path)
		if err != nil {
			t.Fatal(err)
		}
		writeText(t, path, "theirs")
		if err := file.write([]byte("ours")); err == nil || !strings.Contains(err.Error(), "has changed meanwhile") {
			t.Errorf("got %v", err)
		}
		if got, _ := os.ReadFile(path); string(got) != "theirs" {
			t.Errorf("the file holds %q", got)
		}
		onlyFiles(t, dir, "mcp.json")
	}
}

// Of several runs that write at once each either writes or says that it did
// not: nobody's change is lost silently.
func TestEditedFileConcurrently(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	writeText(t, path, "")
	const runs = 8
	wrote := make(chan bool, runs)
	for range runs {
		go func() {
			file, err := openEdited(path)
			if err == nil {
				err = file.write(append(file.old, 'x'))
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

// A write that fails leaves the old file and nothing else behind.
func TestReplaceFileFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "taken", "inside"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(filepath.Join(dir, "taken"), []byte("x"), 0); err == nil {
		t.Error("a directory was replaced")
	}
	onlyFiles(t, dir, "taken")
	if err := replaceFile(filepath.Join(dir, "none", "mcp.json"), []byte("x"), 0); err == nil {
		t.Error("a file was written where there is no directory")
	}
	if _, err := openEdited(os.DevNull); err == nil {
		t.Error("a device can be edited")
	}
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// A table is set and removed by its lines; all else keeps its bytes, and what
// cannot be done so is refused.
func TestSetTOML(t *testing.T) {
	path := []string{"mcp_servers", "dynmcp"}
	body := []string{`command = "new"`}
	const table = "[mcp_servers.dynmcp]\ncommand = \"new\"\n"
	for name, c := range map[string]struct{ in, want string }{
		"empty":              {"", table},
		"behind":             {"a = 1\n", "a = 1\n\n" + table},
		"no line end":        {"a = 1", "a = 1\n\n" + table},
		"replaced":           {"# a\n[mcp_servers.dynmcp] # b\ncommand = \"old\"\nargs = [\n  'x', # c\n]\n\n# d\n[z]\n", "# a\n" + table + "\n# d\n[z]\n"},
		"with tables inside": {"[mcp_servers.dynmcp]\ncommand = 'old'\n[mcp_servers.dynmcp.env]\nA = '''\n[no]\n'''\n[mcp_servers.other]\nenv = {A = 'b'}\n", table + "[mcp_servers.other]\nenv = {A = 'b'}\n"},
		"quoted":             {"[ mcp_servers . \"dynmcp\" ]\nx = 1\n", table},
		"inline":             {"mcp_servers = {dynmcp = {command = 'old'}}\n", ""},
		"dotted":             {"mcp_servers.dynmcp.command = 'old'\n", ""},
		"broken":             {"[x\n", ""},
	} {
		got, err := setTOML([]byte(c.in), path, body)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: was changed to %q", name, got)
			}
			continue
		}
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// Nothing secret of Codex's config is shown.
func TestMaskTOML(t *testing.T) {
	const text = `
[mcp_servers.a]
command = "shown"
args = ["--token", "hidden", "shown"]
env = { K = "hidden", "L.M" = 'hidden' }
url = "https://a.test/?k=hidden"
[mcp_servers.a.env]
N = """
hidden
hidden"""
[mcp_servers.b]
http_headers.X = "hidden"
bearer_token = "hidden"
`
	got := string(maskTOML([]byte(text)))
	if strings.Contains(got, "hidden") || strings.Count(got, "shown") != 2 || strings.Count(got, "\n") != strings.Count(text, "\n") {
		t.Errorf("shown as\n%s", got)
	}
	if got := maskTOML([]byte("x = \"s3cret")); got != nil {
		t.Errorf("a broken file is shown as %q", got)
	}
}
