package schema

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

const minimal = `{"mcp": {"files": {"command": "x", "args": ["${WHO}"]}}}`

// write writes files to a new directory, which becomes the working directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	// The path may contain a link; errors and paths have the real name.
	real, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return real
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got error %q, want %q in it", err, part)
		}
	}
}

// An explicit path may be relative; the config knows the absolute one.
func TestLoadPath(t *testing.T) {
	dir := write(t, map[string]string{"some.json": minimal})
	cfg, err := load([]string{"some.json"}, LoadOptions{Environ: []string{"WHO=me"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "some.json"); cfg.Path != want {
		t.Errorf("got path %q, want %q", cfg.Path, want)
	}
	if cfg.SingleWrap {
		t.Error("a config from a file has SingleWrap set")
	}
}

// An explicit path that does not exist is an error, and so is a directory.
func TestLoadNoFile(t *testing.T) {
	dir := write(t, nil)
	_, err := load([]string{"missing.json"}, LoadOptions{})
	wantError(t, err, "Config file not found", filepath.Join(dir, "missing.json"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want it to be fs.ErrNotExist", err)
	}
	_, err = load([]string{dir}, LoadOptions{})
	wantError(t, err, dir, "is a directory")
}

// Without a known extension the first character decides.
func TestLanguage(t *testing.T) {
	for name, data := range map[string]string{
		"a.json":     minimal,
		"a.JSONC":    "// comment\n" + minimal,
		"config":     "/* comment */" + minimal,
		"a.conf":     "\n" + minimal,
		"a.yaml":     minimal,
		"A.YML":      "mcp: {files: {command: x}}",
		"mcp-config": "# comment\nmcp: {files: {command: x}}",
		"bom.json":   "\xef\xbb\xbf" + minimal,
		"crlf.yaml":  "mcp:\r\n  files:\r\n    command: x\r\n",
	} {
		cfg, err := parse(name, []byte(data), LoadOptions{Environ: []string{"WHO=me"}, Dir: t.TempDir()})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := cfg.Servers[0].Command; got != "x" {
			t.Errorf("%s: got command %q, want x", name, got)
		}
	}
}

// A file that is not a config gives an error of one line that says what it is.
func TestNotAConfig(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	for name, test := range map[string]struct{ data, want string }{
		"empty.json":    {"", "the file is empty"},
		"blank.yaml":    {" \n\n", "the file is empty"},
		"logo.png":      {png, "the file is not text"},
		"logo.json":     {png, "the file is not text"},
		"latin1.json":   {"{\"mcp\": \"\xe4\"}", "the file is not text"},
		"utf16.json":    {"\xff\xfe{\x00}\x00", "the file is UTF-16"},
		"huge.json":     {strings.Repeat(" ", syntax.MaxSize) + "{}", "larger than 1 MiB"},
		"deep.json":     {strings.Repeat("[", 1000), "nests too deeply"},
		"deep.yaml":     {strings.Repeat("[", 1000), "nests too deeply"},
		"bomb.yaml":     {aliasBomb(), "aliases make the document too large"},
		"mcp.lock.json": {`{"lockfileVersion": 3}`, "does not look like a config"},
		"list.json":     {`["mcp"]`, "the file holds a list"},
		"text.json":     {`"mcp"`, "the file holds text"},
	} {
		_, err := parse(name, []byte(test.data), LoadOptions{Dir: t.TempDir()})
		wantError(t, err, test.want)
		if err != nil && strings.Count(err.Error(), "\n") != 1 {
			t.Errorf("%s: got %q, want a heading and one line", name, err)
		}
	}
}

// aliasBomb returns a few lines that stand for 10^9 values.
func aliasBomb() string {
	var b strings.Builder
	b.WriteString("l0: &l0 [" + strings.Repeat("x,", 9) + "x]\n")
	for i := 1; i < 9; i++ {
		line := strings.ReplaceAll("lN: &lN [P,P,P,P,P,P,P,P,P,P]\n", "P", "*l"+string(rune('0'+i-1)))
		b.WriteString(strings.ReplaceAll(line, "N", string(rune('0'+i))))
	}
	return b.String()
}

// An error has fields for its position, its path and a hint. Missing variables are an error
// of another type beside it.
func TestErrorFields(t *testing.T) {
	_, err := parse("mcp.json", []byte(`{"mcp": {"git": {"command": "x", "args": [1, "${B}", "${A}"]}}}`), LoadOptions{Strict: true, Dir: t.TempDir(), Environ: []string{}})
	var all syntax.Errors
	if !errors.As(err, &all) || len(all) != 1 {
		t.Fatalf("got %v, want one of Errors", err)
	}
	got := *all[0]
	got.Err = nil
	want := syntax.Error{File: "mcp.json", Line: 1, Column: 43, Path: "mcp.git.args[0]", Hint: "want text in quotes"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	var first *syntax.Error
	if !errors.As(err, &first) || first != all[0] {
		t.Errorf("errors.As finds %v, want the first of Errors", first)
	}
	var missing *MissingVariablesError
	if !errors.As(err, &missing) {
		t.Fatalf("got %v, want a MissingVariablesError in it", err)
	}
	if diff := cmp.Diff([]string{"A", "B"}, missing.Names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if len(missing.Uses) != 2 || missing.Uses[0].Path != "mcp.git.args[1]" {
		t.Errorf("got uses %v, want B in args[1] and A in args[2]", missing.Uses)
	}
}

// A bare command is one eager server with every default.
func TestSingle(t *testing.T) {
	cfg := Single("/usr/bin/My Server.py", []string{"-y", "--", "a b"})
	if !cfg.SingleWrap || cfg.Path != "" {
		t.Errorf("got SingleWrap %v, Path %q, want true and none", cfg.SingleWrap, cfg.Path)
	}
	want := []Server{{
		Name: "my-server-py", Transport: Stdio, Command: "/usr/bin/My Server.py", Args: []string{"-y", "--", "a b"},
		Isolation: IsolateNone, LoadTimeout: time.Minute, LoadBudget: 3, MaxSessions: 32, MaxMessageBytes: 16 << 20,
	}}
	if diff := cmp.Diff(want, cfg.Servers); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	if cfg.Servers[0].Lazy() {
		t.Error("the only server is lazy")
	}
	if diff := cmp.Diff([]string{ExposeDiscover}, cfg.Expose); diff != "" {
		t.Errorf("expose (-want +got):\n%s", diff)
	}
	if cfg.Catalog.MaxChars != 2048 || cfg.Catalog.Dir != nil || cfg.StartupWait != 150*time.Millisecond {
		t.Errorf("got catalog %+v, startup wait %v, want the defaults", cfg.Catalog, cfg.StartupWait)
	}
	for _, command := range []string{"server.exe", "Server.CMD", "server"} {
		if got := Single(command, nil).Servers[0].Name; got != "server" {
			t.Errorf("%s: the name is %q", command, got)
		}
	}
	if got := Single("...", nil).Servers[0].Name; got != "server" {
		t.Errorf("got name %q for a command without letters, want server", got)
	}
}

// opencode's type of a server is implied by the command or the url.
func TestTypesOfOpencode(t *testing.T) {
	const doc = `{"mcp": {"a": {"type": "local", "command": ["x", "y"]}, "b": {"type": "remote", "url": "https://a.test/mcp"}}}`
	cfg, err := parse("opencode.json", []byte(doc), LoadOptions{Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := cfg.Servers[0], cfg.Servers[1]; a.Transport != Stdio || a.Command != "x" || b.Transport != StreamableHTTP {
		t.Errorf("got %+v and %+v", a, b)
	}
}
