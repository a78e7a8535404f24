package schema

import (
	"reflect"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Every key of an entry can be set to its example, read again as that, and be taken out again.
func TestEveryKeyOfAnEntryIsSet(t *testing.T) {
	const stdio, http = "mcp:\n  a:\n    command: x # mine\n", "mcp:\n  a:\n    url: https://a.test\n"
	entry := reflect.TypeFor[Server]()
	for _, f := range serverFields {
		example := entry.Field(f.index).Tag.Get("example")
		text := stdio
		if f.group == groupHTTP || f.group == groupTLS {
			text = http
		}
		switch f.key {
		case "command", "url", "transport": // they are there, or say which keys go with them
			continue
		}
		p, err := PlaceOf("mcp.yaml", []byte(text), "a", f.key, nil)
		if err != nil {
			t.Errorf("%s: %v", f.key, err)
			continue
		}
		set, err := p.Set(yamlAsTyped(t, example), func(s string) ([]string, error) { return strings.Fields(s), nil })
		if err != nil {
			t.Errorf("%s=%s: %v", f.key, example, err)
			continue
		}
		if !strings.HasPrefix(string(set), strings.TrimSuffix(text, "\n")) {
			t.Errorf("%s=%s changed other lines:\n%s", f.key, example, set)
		}
		if _, err := LoadText("mcp.yaml", set, LoadOptions{}); err != nil {
			t.Errorf("%s=%s: %v", f.key, example, err)
		}
		if p, err = PlaceOf("mcp.yaml", set, "a", f.key, nil); err != nil {
			t.Fatal(err)
		}
		if back, err := p.Unset(); err != nil || string(back) != text {
			t.Errorf("%s taken out: %v\n%s", f.key, err, back)
		}
	}
}

// yamlAsTyped returns an example as a person types it: a text without quotes, all else as JSON.
func yamlAsTyped(t *testing.T, example string) string {
	t.Helper()
	n, err := (&syntax.Source{Name: "example.yaml", Data: []byte("v: " + example + "\n")}).Parse()
	if err != nil || n.Get("v") == nil || n.Get("v").Kind == syntax.Text {
		return example
	}
	return string(n.Get("v").Compact())
}

// A key of a tool with dots is written in quotes; variables may have dots anyway.
func TestPathsOfOddNames(t *testing.T) {
	const text = `{"mcp": {"a": {"command": "x"}}}`
	for path, want := range map[string]string{
		`env.A.B`:                             `{"mcp": {"a": {"command": "x", "env": {"A.B": "1s"}}}}`,
		`tool_overrides["get.file"].timeout`:  `{"mcp": {"a": {"command": "x", "tool_overrides": {"get.file": {"timeout": "1s"}}}}}`,
		`tool_overrides.get-file.description`: `{"mcp": {"a": {"command": "x", "tool_overrides": {"get-file": {"description": "1s"}}}}}`,
	} {
		p, err := PlaceOf("mcp.json", []byte(text), "a", path, nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, err := p.Set("1s", oneWord); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s", path, err, got)
		}
	}
	for _, path := range []string{"", "env.", "args[", "args[x]", `env["A`, "timeout.s"} {
		if _, err := PlaceOf("mcp.json", []byte(text), "a", path, nil); err == nil {
			t.Errorf("%q is taken", path)
		}
	}
}

func oneWord(s string) ([]string, error) { return []string{s}, nil }
