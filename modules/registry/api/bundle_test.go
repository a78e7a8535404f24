package api_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/modules/registry/api"
)

type packed struct {
	name, text string
	mode       fs.FileMode
}

func pack(t *testing.T, files ...packed) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		h.SetMode(f.mode | 0o644)
		to, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func manifestJSON(kind, command, args string, more ...string) packed {
	return packed{"manifest.json", fmt.Sprintf(`{"manifest_version":"0.3","name":"x","version":"1.0.0","server":{"type":%q,"entry_point":"server/index.js","mcp_config":{"command":%q,"args":%s}}%s}`,
		kind, command, args, strings.Join(append([]string{""}, more...), ",")), 0}
}

// bundled returns the option of a server whose only package is this bundle.
func bundled(t *testing.T, text []byte, sum string) *api.Option {
	t.Helper()
	r := mcptest.ServeRegistry(t)
	r.Handle("/x.mcpb", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) })
	if sum == "" {
		sum = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	r.Publish(serverJSON("io.example/thing", "1.2.0", "Does things.", pkg("mcpb", r.URL+"/x.mcpb", "1.2.0", `"fileSha256":"`+sum+`"`, `"environmentVariables":[{"name":"LEVEL","default":"info"}]`)), "active", "")
	o := optionsOf(t, r)[0]
	if o.Missing != "" {
		t.Fatal(o.Missing)
	}
	return o
}

func TestBundles(t *testing.T) {
	o := bundled(t, pack(t,
		manifestJSON("node", "node", `["${__dirname}/server/index.js","--key=${user_config.key}","${user_config.dirs}","$${x}"]`,
			`"user_config":{"key":{"type":"string","title":"The key","sensitive":true,"required":true},"dirs":{"type":"directory","title":"Directories","multiple":true,"required":true}}`),
		packed{"server/", "", fs.ModeDir}, packed{"server/index.js", "1", 0}, packed{"bin/run", "2", 0o755}), "")
	if _, err := o.Build("x", nil); err == nil {
		t.Error("a bundle that is not unpacked can be built")
	}
	dir := t.TempDir()
	if err := o.Unpack(t.Context(), dir, anyProgram); err != nil {
		t.Fatal(err)
	}
	s, err := o.Build("x", api.Answers{"key": {"${KEY}"}, "dirs": {"/a", "/b"}})
	if err != nil {
		t.Fatal(err)
	}
	want := "node " + filepath.Join(s.Cwd, "server", "index.js") + " --key=${KEY} /a /b $$${x} LEVEL=info"
	if got := words(s); got != want || filepath.Dir(s.Cwd) != dir {
		t.Errorf("got  %s in %s\nwant %s", got, s.Cwd, want)
	}
	if questions, _ := o.Questions(); len(questions) != 3 || !questions[1].Secret || questions[1].Description != "The key" {
		t.Errorf("got %+v", questions)
	}
	if info, err := os.Stat(filepath.Join(s.Cwd, "bin", "run")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o100 == 0 {
		t.Errorf("got %v, %v", info, err)
	}
}

// Without answers, settings have their defaults: every one of a list, with the directories of the
// user filled in.
func TestDefaultsOfBundles(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	o := bundled(t, pack(t,
		manifestJSON("node", "node", `["${__dirname}/server/index.js","--most=${user_config.most}","${user_config.dirs}"]`,
			`"user_config":{"most":{"type":"number","default":1000000,"required":true},
			  "dirs":{"type":"directory","multiple":true,"required":true,"default":["${HOME}/Desktop","${DOCUMENTS}"]}}`),
		packed{"server/index.js", "1", 0}), "")
	if err := o.Unpack(t.Context(), t.TempDir(), anyProgram); err != nil {
		t.Fatal(err)
	}
	s, err := o.Build("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"--most=1000000", home + "/Desktop", filepath.Join(home, "Documents")}
	if got := s.Args[1:]; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHostileBundles(t *testing.T) {
	index := packed{"server/index.js", "1", 0}
	good := manifestJSON("node", "node", `["${__dirname}/server/index.js"]`)
	platforms := `"compatibility":{"platforms":["plan9"]}`
	for name, c := range map[string]struct {
		text []byte
		sum  string
		want string
	}{
		"another checksum": {pack(t, good, index), strings.Repeat("ab", 32), "the registry says abab"},
		"no archive":       {[]byte("PK nothing"), "", "zip: not a valid zip file"},
		"a path out":       {pack(t, packed{"../evil", "1", 0}), "", "is not a path inside it"},
		"a full path":      {pack(t, packed{"/tmp/evil", "1", 0}), "", "is not a path inside it"},
		"a deep path out":  {pack(t, packed{"a/../../evil", "1", 0}), "", "is not a path inside it"},
		"a backslash":      {pack(t, packed{`a\..\..\evil`, "1", 0}), "", "is not a path inside it"},
		"a link":           {pack(t, packed{"link", "/etc", fs.ModeSymlink}), "", "is not a regular file"},
		"a device":         {pack(t, packed{"dev", "", fs.ModeDevice}), "", "is not a regular file"},
		"a file twice":     {pack(t, packed{"a", "1", 0}, packed{"a", "2", 0}), "", "file exists"},
		"no manifest":      {pack(t, index), "", "manifest.json"},
		"a broken one":     {pack(t, packed{"manifest.json", "{", 0}), "", "the manifest of"},
		"another system":   {pack(t, manifestJSON("node", "node", `["${__dirname}/server/index.js"]`, platforms), index), "", "it is for plan9"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			err := bundled(t, c.text, c.sum).Unpack(t.Context(), filepath.Join(dir, "bundles"), anyProgram)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if all, _ := filepath.Glob(filepath.Join(dir, "*")); len(all) > 1 {
				t.Errorf("there are %q", all)
			}
			if half, _ := filepath.Glob(filepath.Join(dir, "bundles", ".unpacking-*")); len(half) > 0 {
				t.Errorf("left over: %q", half)
			}
		})
	}
	o := bundled(t, pack(t, manifestJSON("node", "node", `["${__dirname}/server/index.js"]`), index), "")
	if err := o.Unpack(t.Context(), t.TempDir(), func(string) bool { return false }); err == nil || !strings.Contains(err.Error(), "node is not installed") {
		t.Errorf("got %v", err)
	}
}

// A manifest may not make its interpreter run anything else.
func TestManifestVariables(t *testing.T) {
	for env, want := range map[string]string{
		`{"NODE_OPTIONS":"--require=/tmp/x"}`:          "its manifest sets NODE_OPTIONS",
		`{"LD_PRELOAD":"/tmp/x"}`:                      "its manifest sets LD_PRELOAD",
		`{"A B":"x"}`:                                  "its manifest sets A B",
		`{"PYTHONPATH":"${__dirname}/lib","X":"${/}"}`: "",
	} {
		m := packed{"manifest.json", fmt.Sprintf(`{"server":{"type":"node","entry_point":"i.js","mcp_config":{"command":"node","args":["${__dirname}/i.js"],"env":%s}}}`, env), 0}
		o := bundled(t, pack(t, m, packed{"i.js", "", 0}), "")
		if err := o.Unpack(t.Context(), t.TempDir(), anyProgram); err != nil {
			t.Fatal(err)
		}
		s, err := o.Build("x", nil)
		if want == "" && (err != nil || s.Env["PYTHONPATH"] != filepath.Join(s.Cwd)+"/lib") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, %v", env, s.Env, err)
		}
	}
}
