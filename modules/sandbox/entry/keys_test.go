package entry

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/schema"
)

// sections are those of the module.
var sections = []schema.Section{schema.ServerSectionOf[Keys]("sandbox", "")}

var update = flag.Bool("update", false, "rewrite the results in testdata")

func load(text string, environ ...string) (*schema.Config, error) {
	return schema.LoadText("mcp.json", []byte(text), schema.LoadOptions{Environ: environ, Sections: sections})
}

// The sandboxes of each document in testdata, and its warnings, or its errors.
func TestDocuments(t *testing.T) {
	const dashes = "\n----------\n"
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		input, _, _ := strings.Cut(string(want), dashes)
		got := input + dashes + outcome(t, input)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		} else if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", file, diff)
		}
	}
}

func outcome(t *testing.T, input string) string {
	t.Helper()
	cfg, err := load(input)
	if err != nil {
		return err.Error() + "\n"
	}
	type server struct {
		Name    string
		Sandbox Sandbox
		Off     *schema.Off `json:",omitempty"`
	}
	result := struct {
		Defaults Sandbox
		Servers  []server
		Warnings []string `json:",omitempty"`
	}{Defaults: Of(cfg.Defaults), Warnings: cfg.Warnings}
	for _, s := range cfg.Servers {
		result.Servers = append(result.Servers, server{s.Name, Of(s), s.Off})
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(result); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A sandbox is read as it was written, and written as it was read.
func TestWritten(t *testing.T) {
	for _, text := range []string{
		`true`, `{"env": true}`, `{"env": true, "best_effort": true}`, `{"env": true, "network": "none"}`, `{"read": ["~/a"]}`, `{"read": ["~/a"], "env": true}`, `{"env": ["A"]}`, `{"network": ["a.test"], "best_effort": true}`,
	} {
		read := func(text string) Sandbox {
			cfg, err := load(`{"mcp": {"a": {"command": "x", "sandbox": ` + text + `}}}`)
			if err != nil {
				t.Fatal(err)
			}
			return Of(cfg.Servers[0])
		}
		access := read(text)
		if again := read(schema.ValueJSON(access)); !reflect.DeepEqual(again, access) {
			t.Errorf("%s became %s", text, schema.ValueJSON(access))
		}
	}
}

// An entry is written with its sandbox behind the keys of its program.
func TestPlaceInAnEntry(t *testing.T) {
	s := Within(schema.Server{Name: "a", Transport: schema.Stdio, Command: "x", Args: []string{"y"}, ToolFilter: []string{"z"}}, Usual)
	text, err := schema.SetServer("mcp.json", []byte("{}"), s)
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.Join(strings.Fields(string(text)), "")
	if !strings.Contains(flat, `"args":["y"],"sandbox":true,"tool_filter":["z"]`) {
		t.Errorf("got %s", text)
	}
}

// The defaults of all files hold for servers without the key, the nearest first; false switches a sandbox off.
func TestDefaultsOfFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	far := write("far.json", `{"mcp": {"a": {"command": "x"}}, "defaults": {"sandbox": {"read": ["/far"]}}}`)
	for defaults, want := range map[string]Sandbox{
		`{}`:                 {On: true, Env: schema.Inherit{None: true}, Read: []string{"/far"}},
		`{"sandbox": true}`:  Usual,
		`{"sandbox": false}`: {},
	} {
		near := write("near.json", `{"mcp": {"b": {"command": "x"}, "c": {"command": "x", "sandbox": false}}, "defaults": `+defaults+`}`)
		cfg, err := schema.ReadFiles(t.Context(), []string{near, far}, schema.LoadOptions{Environ: []string{}, Sections: sections}).Load()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]Sandbox{"defaults": Of(cfg.Defaults)}
		for _, s := range cfg.Servers {
			got[s.Name] = Of(s)
		}
		if !reflect.DeepEqual(got["b"], want) || !reflect.DeepEqual(got["defaults"], want) || got["c"].On || !reflect.DeepEqual(got["a"].Read, []string{"/far"}) {
			t.Errorf("%s: got %+v, want %+v", defaults, got, want)
		}
	}
}

// Without the module no server with a sandbox is used, whoever writes it.
func TestRefusedWithoutTheModule(t *testing.T) {
	const want = "sandbox: this key needs the module sandbox, which this build does not have"
	for _, text := range []string{
		`{"mcp": {"a": {"command": "x", "sandbox": true}}}`, `{"mcpServers": {"a": {"command": "x", "sandbox": {"read": []}}}}`,
		`{"mcp": {"a": {"command": "x"}}, "defaults": {"sandbox": true}}`,
	} {
		if _, err := schema.LoadText("mcp.json", []byte(text), schema.LoadOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		cfg, err := schema.LoadText("mcp.json", []byte(text), schema.LoadOptions{Lenient: true})
		if err == nil && !cfg.Servers[0].Disabled {
			t.Errorf("%s: the server is used", text)
		}
	}
}
