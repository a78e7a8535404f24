package syntax

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

const (
	added = `{"transport": "stdio", "description": "Does: \"things\" & more", "command": "npx", "args": ["-y", "a b"],
		"env": {"B": "yes", "PORT": "80", "TOKEN": "${TOKEN}"}}`
	replaced = `{"transport": "streamable-http", "url": "https://git.test/mcp", "headers": {"X-Key": "#1"}, "auth": {"client_id": "id"}}`
)

// TestEdits makes the edit that the name of each file in testdata/edit begins with. Above the
// dashes is a file; below is the result or the error. add adds the member mcp.new, set
// replaces mcp.git, remove removes it.
func TestEdits(t *testing.T) {
	files, err := filepath.Glob("testdata/edit/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no edits in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			const dashes = "\n----------\n"
			input, want, _ := strings.Cut(string(data), dashes)
			got := editByName(t, filepath.Base(file), input)
			if *update {
				if err := os.WriteFile(file, []byte(input+dashes+got), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("edit (-want +got):\n%s", diff)
			}
		})
	}
}

func editByName(t *testing.T, file, input string) string {
	t.Helper()
	name := "mcp" + filepath.Ext(strings.TrimSuffix(file, ".txt"))
	var out []byte
	var err error
	switch verb, _, _ := strings.Cut(file, "_"); verb {
	case "add":
		out, err = edited(t, name, input, "new", parsed(t, "value", added))
	case "set":
		out, err = edited(t, name, input, "git", parsed(t, "value", replaced))
	default:
		out, err = edited(t, name, input, "git", nil)
	}
	if err != nil {
		return err.Error() + "\n"
	}
	return string(out)
}

func edited(t *testing.T, name, text, key string, value *Node) ([]byte, error) {
	t.Helper()
	return Edit(name, []byte(text), parsed(t, name, text), []string{"mcp", key}, value)
}

func parsed(t *testing.T, name, text string) *Node {
	t.Helper()
	root, err := (&Source{Name: name, Data: []byte(text)}).Parse()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// The line ends of Windows and a byte order mark stay, and removing an added member restores
// the file.
func TestEditKeepsLineEnds(t *testing.T) {
	for name, text := range map[string]string{
		"mcp.json": "\xef\xbb\xbf{\r\n\t// mine\r\n\t\"mcp\": {\r\n\t\t\"git\": {}\r\n\t}\r\n}\r\n",
		"mcp.yaml": "\xef\xbb\xbf# mine\r\nmcp:\r\n  git:\r\n    command: x\r\n",
		"mcp":      "\xef\xbb\xbf{\r\n  \"mcp\": {\r\n    \"git\": {}\r\n  }\r\n}\r\n",
	} {
		out, err := edited(t, name, text, "new", parsed(t, "value", added))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !bytes.HasPrefix(out, []byte("\xef\xbb\xbf")) {
			t.Errorf("%s: the byte order mark is gone: %q", name, out)
		}
		if bytes.Count(out, []byte("\n")) != bytes.Count(out, []byte("\r\n")) {
			t.Errorf("%s: two kinds of line ends: %q", name, out)
		}
		if back, err := edited(t, name, string(out), "new", nil); err != nil || string(back) != text {
			t.Errorf("%s: removing what was added gives %q, %v", name, back, err)
		}
	}
}

// A carriage return stays if only some lines end with one.
func TestEditKeepsMixedLineEnds(t *testing.T) {
	const text = "{\r\n  \"mcp\": {\n    \"git\": {}\n  }\n}\n"
	out, err := edited(t, "mcp.json", text, "git", parsed(t, "value", `{"command":"x"}`))
	if want := "{\r\n  \"mcp\": {\n    \"git\": {\n      \"command\": \"x\"\n    }\n  }\n}\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}

// A member of any path is set, read and removed by its keys.
func TestSetJSON(t *testing.T) {
	for name, c := range map[string]struct{ text, set, removed string }{
		"nothing":       {"", `{"a/b": {"c~": [1]}}`, `{"a/b": {}}`},
		"no parent":     {`{"x": 1}`, `{"x": 1, "a/b": {"c~": [1]}}`, `{"x": 1, "a/b": {}}`},
		"another":       {`{"a/b": {"d": 2}}`, `{"a/b": {"d": 2, "c~": [1]}}`, `{"a/b": {"d": 2}}`},
		"a value":       {`{"a/b": {"c~": true}}`, `{"a/b": {"c~": [1]}}`, `{"a/b": {}}`},
		"not an object": {`{"a/b": 1}`, "", ""},
	} {
		path := []string{"a/b", "c~"}
		set, err := SetJSON("f", []byte(c.text), path, []byte("[1]"))
		if c.set == "" {
			if err == nil || !strings.Contains(err.Error(), "f: \"c~\" cannot be written: its parent is not an object") {
				t.Errorf("%s: set gives %s, %v", name, set, err)
			}
			continue
		}
		if err != nil || !bytes.Equal(parsed(t, "f", string(set)).Compact(), parsed(t, "f", c.set).Compact()) {
			t.Errorf("%s: set gives %s, %v, want %s", name, set, err, c.set)
		}
		if got, err := GetJSON("f", set, path); err != nil || string(got) != "[1]" {
			t.Errorf("%s: get gives %s, %v", name, got, err)
		}
		removed, err := RemoveJSON("f", set, path)
		if err != nil || !bytes.Equal(parsed(t, "f", string(removed)).Compact(), parsed(t, "f", c.removed).Compact()) {
			t.Errorf("%s: remove gives %s, %v, want %s", name, removed, err, c.removed)
		}
		if again, err := RemoveJSON("f", removed, path); err != nil || !bytes.Equal(again, removed) {
			t.Errorf("%s: remove again gives %s, %v", name, again, err)
		}
		if got, err := GetJSON("f", removed, path); err != nil || got != nil {
			t.Errorf("%s: get gives %s, %v", name, got, err)
		}
	}
	const broken = "{\n  \"a\" 1}"
	_, set := SetJSON("f", []byte(broken), []string{"a"}, []byte("1"))
	_, removed := RemoveJSON("f", []byte(broken), []string{"a"})
	_, got := GetJSON("f", []byte(broken), []string{"a"})
	for _, err := range []error{set, removed, got} {
		if err == nil || !strings.Contains(err.Error(), "f:2:7: malformed JSON") {
			t.Errorf("a broken file: %v", err)
		}
	}
}
