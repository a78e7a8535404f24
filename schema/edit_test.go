package schema

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// TestEdits makes the edit that the name of each file in testdata/edit begins with: add adds
// the server called new, set replaces the one called git, box gives that one a sandbox,
// remove removes it.
func TestEdits(t *testing.T) {
	testFiles(t, "testdata/edit/*.txt", func(_ *testing.T, file, name, input string) string { return edit(file, name, input) })
}

// access is the value of a module's key.
type access struct {
	Read    []string `json:"read"`
	Network Network  `json:"network"`
}

func edit(file, name, input string) string {
	var out []byte
	var err error
	switch verb, _, _ := strings.Cut(file, "_"); verb {
	case "add":
		out, err = SetServer(name, []byte(input), Server{
			Name: "new", Transport: Stdio, Description: "Does: \"things\" & more", Command: "npx",
			Args: []string{"-y", "a b"}, Env: map[string]string{"TOKEN": "${TOKEN}", "PORT": "80", "B": "yes"},
		})
	case "set":
		out, err = SetServer(name, []byte(input), Server{
			Name: "git", Transport: StreamableHTTP, URL: "https://git.test/mcp", Headers: map[string]string{"X-Key": "#1"},
			Auth: &Auth{ClientID: "id"},
		})
	case "box":
		out, err = SetKey(name, []byte(input), "git", "sandbox", access{Read: []string{"~/notes"}, Network: Network{Hosts: []string{"api.test:443"}}})
	default:
		out, err = RemoveServer(name, []byte(input), "git")
	}
	if err != nil {
		return err.Error() + "\n"
	}
	return string(out)
}

// Any added server can be read again, and removing it restores the file.
func FuzzEdit(f *testing.F) {
	f.Add("npx", "-y", "KEY", "${TOKEN}", true)
	f.Add("a: b", "- #c", "yes", "1:30", true)
	f.Add("'\"\\", "\u2028\x7f", "~", "null", false)
	f.Fuzz(func(t *testing.T, command, arg, key, value string, yaml bool) {
		name, text := "mcp.json", "{\n  // mine\n  \"mcp\": {\n    \"git\": {\"command\": \"x\"}\n  }\n}\n"
		if yaml {
			name, text = "mcp.yaml", "# mine\nmcp:\n  git:\n    command: x # here\n# end\n"
		}
		s := Server{Name: "new", Command: command, Args: []string{arg}, Env: map[string]string{key: value}}
		if !validText(command, arg, key, value) {
			return
		}
		out, err := SetServer(name, []byte(text), s)
		if err != nil {
			t.Fatalf("%v for %+v", err, s)
		}
		root, failure := (&syntax.Source{Name: name, Data: out}).Parse()
		if failure != nil {
			t.Fatalf("%v in %s", failure, out)
		}
		got := root.Get("mcp").Get("new")
		if want := structNode(reflect.ValueOf(s)); !bytes.Equal(got.Compact(), want.Compact()) {
			t.Errorf("got %s, want %s", got.Compact(), want.Compact())
		}
		if back, err := RemoveServer(name, out, "new"); err != nil || string(back) != text {
			t.Errorf("removing the server gives %q, %v", back, err)
		}
	})
}

// validText reports whether a file in UTF-8 can hold the texts without nesting too deeply.
func validText(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(s string) bool {
		return !utf8.ValidString(s) || strings.Contains(s, "\x00") || strings.Count(s, "[")+strings.Count(s, "{") > 40
	})
}

// A key of an entry in YAML is set as one line: the comments of the entry stay.
func TestSetKeyKeepsComments(t *testing.T) {
	const before = "mcp:\n  # of git\n  git:\n    command: x # runs it\n    # more\n    description: Old. # that\n    args: [-y]\n\n  flow: {command: zed}\n"
	for _, test := range []struct {
		server, key string
		to          any
		want        string
	}{
		{"git", "description", "New: it is.", strings.Replace(before, "description: Old. # that", `description: "New: it is."`, 1)},
		{"git", "description", "", strings.Replace(before, "    description: Old. # that\n", "", 1)},
		{"git", "disabled", true, strings.Replace(before, "    command: x", "    disabled: true\n    command: x", 1)},
		{"git", "disabled", false, before},
		{"flow", "disabled", true, strings.Replace(before, "  flow: {command: zed}", "  flow:\n    command: zed\n    disabled: true", 1)},
	} {
		got, err := SetKey("c.yaml", []byte(before), test.server, test.key, test.to)
		if err != nil || string(got) != test.want {
			t.Errorf("%s of %s: %v\n%s\nwant\n%s", test.key, test.server, err, got, test.want)
		}
	}
}
