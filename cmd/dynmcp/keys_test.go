package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/tailscale/hujson"

	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/packaging/keys"
	"github.com/dynmcp/dynmcp/schema"
)

// TestCheckedIn checks that the files that are made of the keys are up to date.
func TestCheckedIn(t *testing.T) {
	t.Chdir("../..")
	want, err := keys.Files(modules)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		if diff := cmp.Diff(string(text), read(t, name)); diff != "" {
			t.Errorf("%s is not what the types give, run go generate ./cmd/dynmcp (-want +got):\n%s", name, diff)
		}
	}
	again, err := keys.Files(modules)
	if err != nil || !reflect.DeepEqual(want, again) {
		t.Errorf("generating twice gives different files, err %v", err)
	}
}

// TestShape checks what editors and other readers of the schema rely on: its title, draft and
// address, that a file may name it, the names of servers, and exactly three kinds of server.
func TestShape(t *testing.T) {
	root := decode(t)
	for path, want := range map[string]any{
		"$schema":                              "https://json-schema.org/draft/2020-12/schema",
		"type":                                 "object",
		"title":                                "dynmcp config",
		"properties.$schema.type":              "string",
		"$id":                                  schema.Address,
		"properties.mcp.propertyNames.pattern": "^[a-z0-9][a-z0-9-]*$",
	} {
		if got := dig(root, path); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
	if d, _ := root["description"].(string); !strings.Contains(d, "dynmcp") {
		t.Errorf("the description %q does not name dynmcp", d)
	}
	kinds, _ := dig(root, "properties.mcp.additionalProperties.oneOf").([]any)
	var got [][2]any
	for _, kind := range kinds {
		kind := kind.(map[string]any)
		required := kind["required"]
		if choice, ok := kind["anyOf"].([]any); ok {
			required = dig(choice[0], "required")
		}
		got = append(got, [2]any{dig(kind, "properties.transport.const"), required})
	}
	want := [][2]any{
		{"stdio", []any{"command"}},
		{"streamable-http", []any{"url"}},
		{"sse", []any{"transport", "url"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds of server (-want +got):\n%s", diff)
	}
}

// noDefault are the keys that have no default.
var noDefault = strings.Fields(`$schema instructions inputs context_servers openapi host profile mcp mcpServers servers tree defaults catalog gateway
	transport type description registry load place command cwd url auth client_id client_secret public_url exchange token_url grant_url grant_client_id grant_client_secret resource private_key assertion_file idp idp_client_id idp_client_secret scope callback issuer code_challenge ca cert key
	summary max_output_chars timeout example_args path source dir secret listen debug_listen token audience match do principal surface arguments activity scripts`)

// TestEveryProperty checks that every key has a description, an example and a default.
func TestEveryProperty(t *testing.T) {
	count := 0
	var walk func(path string, v any)
	walk = func(path string, v any) {
		object, _ := v.(map[string]any)
		properties, _ := object["properties"].(map[string]any)
		for key, p := range properties {
			count++
			checkProperty(t, path+"."+key, key, p.(map[string]any))
		}
		for key, inner := range object {
			if key != "examples" { // values of a document, and no schemas
				walk(path+"/"+key, inner)
			}
		}
		items, _ := v.([]any)
		for _, inner := range items {
			walk(path+"/*", inner)
		}
	}
	walk("", decode(t))
	if count < 100 {
		t.Errorf("only %d properties looked at", count)
	}
}

func checkProperty(t *testing.T, path, key string, p map[string]any) {
	if p["description"] == "A key of hosts." {
		return // docs/hosts.md has them
	}
	if d, _ := p["description"].(string); len(d) < 10 || !strings.HasSuffix(d, ".") {
		t.Errorf("%s: description %q is not a sentence", path, d)
	}
	if examples, _ := p["examples"].([]any); len(examples) == 0 || examples[0] == nil {
		t.Errorf("%s has no example", path)
	}
	if _, ok := p["default"]; !ok && !strings.Contains(" "+strings.Join(noDefault, " ")+" ", " "+key+" ") {
		t.Errorf("%s has no default", path)
	}
}

// TestExamplesAreGood loads a config with each example.
func TestExamplesAreGood(t *testing.T) {
	root := decode(t)
	base := map[string]map[string]any{
		"stdio":           {"command": "x"},
		"streamable-http": {"url": "https://example.test"},
		"sse":             {"transport": "sse", "url": "https://example.test"},
	}
	for _, kind := range dig(root, "properties.mcp.additionalProperties.oneOf").([]any) {
		title := kind.(map[string]any)["title"].(string)
		for key, p := range kind.(map[string]any)["properties"].(map[string]any) {
			server := map[string]any{}
			for k, v := range base[title] {
				server[k] = v
			}
			server[key] = p.(map[string]any)["examples"].([]any)[0]
			accept(t, title+" "+key, map[string]any{"mcp": map[string]any{"files": server}})
		}
	}
	for key, p := range root["properties"].(map[string]any) {
		if key == "inputs" || key == "context_servers" {
			continue // of hosts' files, which have no mcp
		}
		doc := map[string]any{"mcp": map[string]any{"files": base["stdio"]}}
		if key == "mcpServers" || key == "servers" {
			doc = map[string]any{}
		}
		doc[key] = p.(map[string]any)["examples"].([]any)[0]
		accept(t, key, doc)
	}
}

// accept checks that both the schema and package schema accept a document.
func accept(t *testing.T, what string, doc map[string]any) {
	t.Helper()
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolved(t).Validate(doc); err != nil {
		t.Errorf("%s: the schema refuses %s: %v", what, data, err)
	}
	environ := []string{"TOKEN=x", "GITHUB_TOKEN=x", "CLIENT_SECRET=x", "DYNMCP_TOKEN=x"}
	if _, err := load(t, "mcp.json", data, environ); err != nil {
		t.Errorf("%s: Load refuses %s: %v", what, data, err)
	}
}

// TestDocuments validates the documents of package schema's own tests: an editor must not
// underline what Load accepts, unless Load warns that it is not read.
func TestDocuments(t *testing.T) {
	files, err := filepath.Glob("../../schema/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		input, outcome, _ := strings.Cut(string(data), "\n----------\n")
		if !strings.HasPrefix(outcome, "{") || strings.Contains(outcome, "this is not read;") {
			continue
		}
		if err := resolved(t).Validate(document(t, file, input)); err != nil {
			t.Errorf("%s: the schema refuses a config that is read: %v", filepath.Base(file), err)
		}
	}
}

// TestSchemaRefuses lists what an editor should underline.
func TestSchemaRefuses(t *testing.T) {
	for name, doc := range map[string]string{
		"no servers":                 `{}`,
		"an unknown key":             `{"mcp": {"a": {"command": "x"}}, "mpc": {}}`,
		"an upper-case name":         `{"mcp": {"A": {"command": "x"}}}`,
		"an underscore in a name":    `{"mcp": {"a_b": {"command": "x"}}}`,
		"a server with nothing":      `{"mcp": {"a": {}}}`,
		"stdio without command":      `{"mcp": {"a": {"transport": "stdio"}}}`,
		"http without url":           `{"mcp": {"a": {"transport": "streamable-http"}}}`,
		"sse without url":            `{"mcp": {"a": {"transport": "sse"}}}`,
		"a server not switched off":  `{"mcp": {"a": {"disabled": false}}}`,
		"a url on stdio":             `{"mcp": {"a": {"transport": "stdio", "command": "x", "url": "https://a.test"}}}`,
		"command and url":            `{"mcp": {"a": {"command": "x", "url": "https://a.test"}}}`,
		"a command on http":          `{"mcp": {"a": {"transport": "sse", "url": "https://a.test", "command": "x"}}}`,
		"auth on stdio":              `{"mcp": {"a": {"command": "x", "auth": {"client_id": "x"}}}}`,
		"no url":                     `{"mcp": {"a": {"url": "nowhere"}}}`,
		"an empty client id":         `{"mcp": {"a": {"url": "https://a.test", "auth": {"client_id": ""}}}}`,
		"a blank client id":          `{"mcp": {"a": {"url": "https://a.test", "auth": {"client_id": "  "}}}}`,
		"an unknown key of auth":     `{"mcp": {"a": {"url": "https://a.test", "auth": {"client_id": "x", "redirect_uri": "x"}}}}`,
		"an unknown transport":       `{"mcp": {"a": {"transport": "http", "url": "https://a.test"}}}`,
		"type under mcp":             `{"mcp": {"a": {"type": "stdio", "command": "x"}}}`,
		"a command list under mcp":   `{"mcp": {"a": {"command": ["x"]}}}`,
		"an empty description":       `{"mcp": {"a": {"command": "x", "description": " "}}}`,
		"an unknown surface":         `{"mcp": {"a": {"command": "x"}}, "expose": ["all"]}`,
		"an unknown env mode":        `{"mcp": {"a": {"command": "x"}}, "env": "all"}`,
		"a bad duration":             `{"mcp": {"a": {"command": "x", "timeout": "soon"}}}`,
		"a negative duration":        `{"mcp": {"a": {"command": "x", "timeout": -1}}}`,
		"a negative limit":           `{"mcp": {"a": {"command": "x", "load_budget": -1}}}`,
		"a number for a variable":    `{"mcp": {"a": {"command": "x", "env": {"PORT": 8080}}}}`,
		"a default that is no limit": `{"mcp": {"a": {"command": "x"}}, "defaults": {"command": "x"}}`,
		"an unknown type of a host":  `{"mcpServers": {"a": {"type": "tcp", "url": "https://a.test"}}}`,
		"an empty command of a host": `{"servers": {"a": {"command": []}}}`,
		"a tree that is a text":      `{"tree": "x"}`,
		"a node without path":        `{"tree": [{"type": "node"}]}`,
		"an unknown backend":         `{"tree": [{"path": "/a", "source": {"backend": "http", "command": "x"}}]}`,
		"an unknown way to show":     `{"mcp": {"a": {"command": "x", "tool_overrides": {"t": {"render_mode": "xml"}}}}}`,
	} {
		if err := resolved(t).Validate(document(t, "mcp.json", doc)); err == nil {
			t.Errorf("%s: the schema accepts %s", name, doc)
		}
		if _, err := load(t, "mcp.json", []byte(doc), nil); err == nil {
			t.Errorf("%s: Load accepts %s", name, doc)
		}
	}
}

// load loads a config from a file with the extension of name.
func load(t *testing.T, name string, data []byte, environ []string) (*schema.Config, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp"+filepath.Ext(name))
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	options := module.Load(module.With(t.Context(), modules))
	options.Dir, options.Environ = dir, environ
	return schema.ReadFiles(t.Context(), []string{path}, options).Load()
}

func document(t *testing.T, name, input string) any {
	t.Helper()
	var doc any
	if strings.Contains(filepath.Base(name), ".y") {
		if err := yaml.Unmarshal([]byte(input), &doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return doc
	}
	standard, err := hujson.Standardize([]byte(input))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := json.Unmarshal(standard, &doc); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return doc
}

func resolved(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	r, err := resolve()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var resolve = sync.OnceValues(func() (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema.JSONSchema, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
})

func decode(t *testing.T) map[string]any {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(schema.JSONSchema, &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// dig follows a path of keys with dots between them.
func dig(v any, path string) any {
	for _, key := range strings.Split(path, ".") {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

// TestHovers checks the texts in VS Code: the default and an example, and for objects the
// text of the key and not that of the Go type.
func TestHovers(t *testing.T) {
	root := decode(t)
	for path, want := range map[string]string{
		"$defs.Catalog.description":                                  dig(root, "properties.catalog.description").(string),
		"properties.startup_wait.markdownDescription":                "\n\nDefault: `150ms`",
		"properties.defaults.properties.timeout.markdownDescription": "\n\nExample: `5m`",
	} {
		if got, _ := dig(root, path).(string); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", path, got, want)
		}
	}
	if snippets, _ := dig(root, "properties.mcp.additionalProperties.defaultSnippets").([]any); len(snippets) != 2 {
		t.Errorf("got %d snippets for a server, want 2", len(snippets))
	}
}
