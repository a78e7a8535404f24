package profile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/schema"
)

func selects(name string) func(*schema.Config) (*schema.Config, error) {
	return func(cfg *schema.Config) (*schema.Config, error) { return Select(cfg, name) }
}

func load(paths []string, opts schema.LoadOptions) (*schema.Config, error) {
	opts.Sections = []schema.Section{{Surfaces: schema.Surfaces}}
	return schema.ReadFiles(context.Background(), paths, opts).Load()
}

func serverNames(cfg *schema.Config) string {
	var names []string
	for _, s := range cfg.Servers {
		names = append(names, s.Name+"="+s.Command)
	}
	return strings.Join(names, " ")
}

func TestSelect(t *testing.T) {
	const doc = `{"mcp": {
  "github": {"command": "x", "description": "Issues.", "tool_filter": ["a*"]},
  "jira": {"command": "x"},
  "jira-prod": {"command": "x"},
  "diary": {"command": "x"}
}, "pin": ["github/a", "diary/b"], "tree": [
  {"path": "/mine", "type": "node", "source": {"mcp": "diary"}},
  {"path": "/code", "type": "node", "children": [{"path": "/code/own", "type": "node", "source": {"command": "x"}}, {"path": "/code/hub", "type": "node", "source": {"mcp": "github"}}]}
], "profiles": {
  "work": ["github", "jira*", "!*-prod"],
  "others": ["!jira*"],
  "direct": {"servers": ["github"], "expose": ["direct", "script"], "overrides": {"github": {"description": "Mine.", "tool_filter": ["b*"]}}}
}}`
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(profile string, opts schema.LoadOptions) *schema.Config {
		t.Helper()
		opts.Select, opts.Environ = selects(profile), []string{}
		cfg, err := load([]string{path}, opts)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	for profile, want := range map[string]string{
		"":       "github=x jira=x jira-prod=x diary=x code-own=/bin/sh",
		All:      "github=x jira=x jira-prod=x diary=x code-own=/bin/sh",
		"work":   "github=x jira=x",
		"others": "github=x diary=x code-own=/bin/sh",
		"direct": "github=x",
	} {
		if got := serverNames(of(profile, schema.LoadOptions{})); got != want {
			t.Errorf("%q: got %s, want %s", profile, got, want)
		}
	}
	work := of("work", schema.LoadOptions{})
	if diff := cmp.Diff([]string{"github/a"}, work.Pin); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
	var paths []string
	var visit func(n *schema.Node)
	visit = func(n *schema.Node) {
		paths = append(paths, n.Path)
		for i := range n.Children {
			visit(&n.Children[i])
		}
	}
	visit(work.Tree)
	if diff := cmp.Diff([]string{"/", "/code", "/code/hub"}, paths); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	direct := of("direct", schema.LoadOptions{})
	s := direct.Servers[0]
	if s.Description != "Mine." || !slices.Equal(s.ToolFilter, []string{"b*"}) || !slices.Equal(direct.Expose, []string{schema.ExposeDirect, schema.ExposeScript}) || direct.StartupWaitOr(time.Second) != time.Second {
		t.Errorf("got %+v, %v, %v", s, direct.Expose, direct.StartupWait)
	}
	if cfg := of("direct", schema.LoadOptions{Expose: []string{schema.ExposeProxy}}); !slices.Equal(cfg.Expose, []string{schema.ExposeProxy}) {
		t.Errorf("the option does not override the profile: %v", cfg.Expose)
	}
	_, err := load([]string{path}, schema.LoadOptions{Select: selects("wrok")})
	if unknown, ok := errors.AsType[*UnknownError](err); !ok || unknown.Hint() != "did you mean work?" {
		t.Errorf("got %v", err)
	}
}

// Unselected parts are not resolved: their secrets are not looked up, and their missing
// variables are no error.
func TestUnselectedPartsAreNotResolved(t *testing.T) {
	files := map[string]string{"far.json": `{"mcp": {"far": {"command": "x", "env": {"A": "${keyring:FAR}"}}, "none": {"command": "x", "args": ["${NOWHERE}"]}}}`,
		"near.json": `{"mcpServers": {"One two": {"command": "x", "env": {"A": "${keyring:ONE}"}}, "b": {"command": "x", "env": {"A": "${keyring:B}"}}},
  "tree": [{"path": "/own", "type": "node", "source": {"command": "${keyring:TREE}"}}], "gateway": {"token": "${keyring:GATE}"},
  "profiles": {"one": ["one-two"], "far": ["far"], "tree": ["own"]}}`}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		profile string
		only    []string
		want    string
	}{
		{"", nil, "keyring:B keyring:FAR keyring:GATE keyring:ONE keyring:TREE"},
		{"one", nil, "keyring:GATE keyring:ONE"},
		{"far", nil, "keyring:FAR keyring:GATE"},
		{"tree", nil, "keyring:GATE keyring:TREE"},
		{"", []string{"b"}, "keyring:B"},
		{"one", []string{"b"}, ""},
	} {
		var mu sync.Mutex
		var asked []string
		secret := func(reference string) (value, problem, hint string) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, reference)
			return "value", "", ""
		}
		strict := test.profile != ""
		_, err := load([]string{filepath.Join(dir, "near.json"), filepath.Join(dir, "far.json")}, schema.LoadOptions{Environ: []string{}, Strict: strict, Select: selects(test.profile), Only: test.only, Schemes: []string{"keyring"}, Secret: secret})
		slices.Sort(asked)
		if got := strings.Join(asked, " "); err != nil || got != test.want {
			t.Errorf("%+v: asked for %q, %v", test, got, err)
		}
	}
}
