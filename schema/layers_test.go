package schema

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// layered writes files to a directory and loads them, the nearest first.
func layered(t *testing.T, files map[string]string, environ []string, names ...string) (*Config, error) {
	t.Helper()
	dir := write(t, files)
	var paths []string
	for _, name := range names {
		paths = append(paths, filepath.Join(dir, name))
	}
	return load(paths, LoadOptions{Environ: environ, Sections: allSurfaces})
}

func serverNames(cfg *Config) string {
	var names []string
	for _, s := range cfg.Servers {
		name := s.Name
		if s.Disabled {
			name = "(" + name + ")"
		}
		names = append(names, name+"="+s.Command)
	}
	return strings.Join(names, " ")
}

// Servers are merged by name, the nearer entry as a whole, and every other key
// comes from the nearest file that has it.
func TestLayers(t *testing.T) {
	cfg, err := layered(t, map[string]string{
		"near.json": `{
			"mcp": {
				"own": {"command": "near"},
				"both": {"command": "near"},
				"off": {"disabled": true}
			},
			"defaults": {"timeout": 5},
			"catalog": {"max_chars": 10}
		}`,
		"far.yaml": "mcp:\n" +
			"  off: {command: far}\n" +
			"  both: {command: far, args: [x], description: far}\n" +
			"  inherited: {command: far}\n" +
			"defaults: {timeout: 1, load_budget: 9}\n" +
			"catalog: {max_chars: 99}\n" +
			"expose: [direct]\n",
	}, environ, "near.json", "far.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := serverNames(cfg), "own=near both=near (off)= inherited=far"; got != want {
		t.Errorf("got servers %s, want %s", got, want)
	}
	both := cfg.Servers[1]
	if both.Args != nil || both.Description != "" {
		t.Errorf("entries were mixed: %+v", both)
	}
	if both.Timeout != 5*time.Second || both.LoadBudget != 9 {
		t.Errorf("got timeout %v, load budget %d; want that of the near file and that of the far one", both.Timeout, both.LoadBudget)
	}
	if got := cfg.Servers[3].Timeout; got != time.Second {
		t.Errorf("got timeout %v of an inherited server, want its own file's", got)
	}
	if cfg.Catalog.MaxChars != 10 || cfg.Expose[0] != ExposeDirect || cfg.StartupWaitOr(time.Second) != time.Second {
		t.Errorf("got %+v, %v, %v", cfg.Catalog, cfg.Expose, cfg.StartupWait)
	}
	if len(cfg.Warnings) > 0 {
		t.Errorf("warnings %q", cfg.Warnings)
	}
	near, far := cfg.Sources[0], cfg.Sources[1]
	want := map[string]Origin{
		"own":       {File: near, Line: 3},
		"both":      {File: near, Line: 4, Hides: []string{far}},
		"off":       {File: near, Line: 5, Hides: []string{far}},
		"inherited": {File: far, Line: 4},
	}
	if diff := cmp.Diff(want, cfg.Origins); diff != "" || cfg.Path != near {
		t.Errorf("path %s, origins (-want +got):\n%s", cfg.Path, diff)
	}
}

// A file over another may have no servers, and its tree may show those of the other. One of
// the files must have a key for servers, which may be empty.
func TestLayersWithoutServers(t *testing.T) {
	files := map[string]string{
		"expose.json": `{"expose": ["direct"], "mcp": {}}`,
		"tree.json":   `{"tree": [{"path": "/a", "source": {"mcp": "files"}}]}`,
		"far.json":    minimal,
		"empty.json":  `{"env": "process"}`,
	}
	for _, near := range []string{"expose.json", "tree.json", "empty.json"} {
		if cfg, err := layered(t, files, environ, near, "far.json"); err != nil || serverNames(cfg) != "files=x" {
			t.Errorf("%s: got %v, %v", near, cfg, err)
		}
	}
	for _, names := range [][]string{{"expose.json"}, {"expose.json", "empty.json"}, {"empty.json", "expose.json"}} {
		cfg, err := layered(t, files, environ, names...)
		if err != nil || !cfg.Empty() || cfg.Expose[0] != ExposeDirect || !strings.Contains(strings.Join(cfg.Warnings, ""), NoServers) {
			t.Errorf("%q: got %v, %v", names, cfg, err)
		}
	}
	_, err := layered(t, files, environ, "empty.json", "empty.json")
	wantError(t, err, "empty.json:1:1: there are no servers, neither here nor in the files behind")
	cfg, err := layered(t, files, environ, "tree.json", "far.json")
	if err != nil || cfg.Expose[0] != ExposeDiscover {
		t.Errorf("got %v, %v, want discover: there are servers", cfg, err)
	}
}

// The mistakes of all files are reported together, each with its file.
func TestLayersErrors(t *testing.T) {
	dir := write(t, map[string]string{
		"near.json": `{"mcp": {"a": {"comand": "x"}}}`,
		"far.json":  `{"mcp": {"b": {"command": "${GONE}"}}}`,
	})
	_, err := load([]string{filepath.Join(dir, "near.json"), filepath.Join(dir, "far.json")}, LoadOptions{Environ: environ, Strict: true})
	wantError(t, err, "near.json:1:16: mcp.a.comand", "missing environment variable: GONE", "far.json:1:27")
}

// Disabling a server that does not exist gives a warning.
func TestDisabledServerThatDoesNotExist(t *testing.T) {
	cfg, err := layered(t, map[string]string{"mcp.json": `{"mcp": {"a": {"command": "x"}, "b": {"disabled": true}}}`}, environ, "mcp.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(cfg.Warnings, "\n"); !strings.Contains(got, "mcp.b: this disables a server that does not exist") {
		t.Errorf("got warnings %q", got)
	}
}

// EnvFile is for the nearest file. It is no error if a file behind reads no .env.
func TestLayersEnvFile(t *testing.T) {
	dir := write(t, map[string]string{
		"near.json": minimal,
		"far.json":  `{"env": "process", "mcp": {"b": {"command": "${WHO}"}}}`,
		"vars":      "WHO=file\n",
	})
	cfg, err := load([]string{filepath.Join(dir, "near.json"), filepath.Join(dir, "far.json")}, LoadOptions{EnvFile: "vars", Environ: []string{"WHO=process"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Servers[0].Args[0] + " " + cfg.Servers[1].Command; got != "file process" {
		t.Errorf("got %s", got)
	}
}
