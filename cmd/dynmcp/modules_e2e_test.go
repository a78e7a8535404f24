//go:build e2e

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/cli"
)

// moduleLine is a line of the table of modules.
var moduleLine = regexp.MustCompile(`(?m)^\t(\w+)\.Module,\n`)

// Each module goes when its line goes: the program builds, its help has the verbs and its JSON
// Schema the keys of all others, and a config that uses one of its keys or surfaces is refused.
func TestModulesGoWithTheirLine(t *testing.T) {
	table, err := os.ReadFile("modules.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := moduleLine.FindAllStringSubmatch(string(table), -1)
	if len(lines) != len(modules) {
		t.Fatalf("modules.go has %d lines of %d modules", len(lines), len(modules))
	}
	for i, m := range modules {
		t.Run(m.Name, func(t *testing.T) {
			name := lines[i][1]
			if name != m.Name {
				t.Fatalf("the module of %s is called %s", name, m.Name)
			}
			without := strings.Replace(string(table), lines[i][0], "", 1)
			without = regexp.MustCompile(`\t".*/modules/`+name+`"\n`).ReplaceAllString(without, "")
			program := buildWith(t, without)
			checkVerbs(t, program, m.Name)
			checkKeys(t, program, m.Name)
			checkSurfaces(t, program, m.Name)
			checkSchemes(t, program, m.Name)
		})
	}
	t.Run("core", func(t *testing.T) {
		all := make([]string, len(modules))
		for i, m := range modules {
			all[i] = m.Name
		}
		program := buildDynmcp(t, "-tags", "core")
		checkVerbs(t, program, all...)
		checkKeys(t, program, all...)
		checkSurfaces(t, program, all...)
		checkSchemes(t, program, all...)
	})
}

// buildWith builds dynmcp with another table of modules.
func buildWith(t *testing.T, table string) (program string) {
	t.Helper()
	dir := t.TempDir()
	path, err := filepath.Abs("modules.go")
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(dir, "modules.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{changed: table, filepath.Join(dir, "overlay.json"): string(overlay)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return buildDynmcp(t, "-overlay", filepath.Join(dir, "overlay.json"))
}

func buildDynmcp(t *testing.T, flags ...string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "dynmcp.exe")
	out, err := exec.Command("go", append(append([]string{"build", "-o", program}, flags...), ".")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// checkVerbs checks that the help of a program lists the verbs of all modules but those without.
func checkVerbs(t *testing.T, program string, without ...string) {
	t.Helper()
	left := " " + strings.Join(without, " ") + " "
	for _, m := range modules {
		gone := strings.Contains(left, " "+m.Name+" ")
		for _, verb := range m.Verbs {
			name, _, _ := strings.Cut(verb.Use, " ")
			list := []string{"--help"}
			if verb.Group == cli.Develop {
				list = []string{"dev", "--help"}
			}
			out, err := exec.Command(program, list...).Output()
			if err != nil {
				t.Fatal(err)
			}
			listed := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(name) + ` `).Match(out)
			if listed != (!gone && !verb.Hidden) {
				t.Errorf("help lists %s of %s: %t", name, m.Name, listed)
			}
			if !gone {
				continue
			}
			said, err := exec.Command(program, name).CombinedOutput()
			if err == nil || !strings.Contains(string(said), "unknown command") {
				t.Errorf("dynmcp %s without its module: %v, %s", name, err, said)
			}
		}
	}
}

// checkKeys checks that the JSON Schema of a program has the keys of all modules but those without,
// and that a config with a key of those is refused.
func checkKeys(t *testing.T, program string, without ...string) {
	t.Helper()
	whole := keysOf(t, buildDynmcp(t))
	for key := range keysOf(t, program) {
		delete(whole, key)
	}
	for _, m := range modules {
		for _, section := range m.Keys {
			under, config := "", `{"mcp": {"a": {"command": "true"}}, %q: %s}`
			if section.Server {
				under, config = "mcp.a.", `{"mcp": {"a": {%q: %s, "command": "true"}}}`
			}
			for f := range section.Type.Fields() {
				name := f.Tag.Get("json")
				if name == "" {
					continue // no key
				}
				key := under + name
				if group := f.Tag.Get("group"); section.Server && slices.Contains([]string{"limit", "sandbox", "tls"}, group) {
					checkDefaults(t, program, m.Name, name, whole)
				}
				p, gone := whole[key]
				if gone != slices.Contains(without, m.Name) {
					t.Errorf("the schema lacks %s of %s: %t", key, m.Name, gone)
				}
				delete(whole, key)
				if !gone || len(p.Examples) == 0 {
					continue
				}
				path := filepath.Join(t.TempDir(), "mcp.json")
				if err := os.WriteFile(path, fmt.Appendf(nil, config, name, p.Examples[0]), 0o600); err != nil {
					t.Fatal(err)
				}
				want := key + ": this key needs the module " + m.Name + ", which this build does not have"
				if said, err := exec.Command(program, "ls", "-c", path).CombinedOutput(); (err == nil) != section.Server || !strings.Contains(string(said), want) {
					t.Errorf("ls with %s: %v, %s, want %s", key, err, said, want)
				}
			}
		}
	}
	for key := range whole {
		t.Errorf("the schema lacks %s, which is of no module", key)
	}
}

// checkSurfaces checks that a program has the surfaces of all modules but those without: in the JSON Schema,
// in help, and in a config or on the command line that names one.
func checkSurfaces(t *testing.T, program string, without ...string) {
	t.Helper()
	var root struct {
		Properties struct {
			Expose struct{ Items struct{ Enum []string } }
		}
	}
	out, err := exec.Command(program, "schema").Output()
	if err := errors.Join(err, json.Unmarshal(out, &root)); err != nil {
		t.Fatal(err)
	}
	help, err := exec.Command(program, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile(`--expose[^(]*\(([^)]*)\)`).FindSubmatch(help)
	if listed == nil {
		t.Fatalf("help does not list the surfaces: %s", help)
	}
	for _, m := range modules {
		gone := slices.Contains(without, m.Name)
		for _, kind := range m.Surfaces {
			if slices.Contains(root.Properties.Expose.Items.Enum, kind.Name) == gone {
				t.Errorf("the schema has the surface %s: %t", kind.Name, !gone)
			}
			if slices.Contains(regexp.MustCompile(`\w+`).FindAllString(string(listed[1]), -1), kind.Name) == gone {
				t.Errorf("help has the surface %s: %t", kind.Name, !gone)
			}
			path := filepath.Join(t.TempDir(), "mcp.json")
			if err := os.WriteFile(path, fmt.Appendf(nil, `{"mcp": {"a": {"command": "true"}}, "expose": [%q]}`, kind.Name), 0o600); err != nil {
				t.Fatal(err)
			}
			want := "this surface needs the module " + m.Name + ", which this build does not have"
			for _, args := range [][]string{{"ls", "-c", path}, {"--expose", kind.Name, "--", "true"}} {
				said, err := exec.Command(program, args...).CombinedOutput()
				if said := string(said); strings.Contains(said, want) != gone || gone && err == nil {
					t.Errorf("dynmcp %q: %v, %s; its module is gone: %t", args, err, said, gone)
				}
			}
		}
	}
}

// checkDefaults checks a key of a module that is also one of the defaults: whole has what the schema lacks.
func checkDefaults(t *testing.T, program, module, name string, whole map[string]schemaKey) {
	t.Helper()
	key := "defaults." + name
	p, gone := whole[key]
	delete(whole, key)
	if _, lacks := whole["mcp.a."+name]; lacks != gone {
		t.Errorf("the schema lacks %s of %s: %t", key, module, gone)
	}
	if !gone {
		return
	}
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, fmt.Appendf(nil, `{"mcp": {"a": {"command": "true"}}, "defaults": {%q: %s}}`, name, p.Examples[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	want := key + ": this key needs the module " + module + ", which this build does not have"
	if said, err := exec.Command(program, "ls", "-c", path).CombinedOutput(); err == nil || !strings.Contains(string(said), want) {
		t.Errorf("ls with %s: %v, %s, want %s", key, err, said, want)
	}
}

// checkSchemes checks that a program takes the references to secrets of all modules but those without,
// and refuses servers with a reference of those.
func checkSchemes(t *testing.T, program string, without ...string) {
	t.Helper()
	for _, m := range modules {
		for _, s := range m.Secrets {
			path := filepath.Join(t.TempDir(), "mcp.json")
			config := fmt.Appendf(nil, `{"mcp": {"a": {"command": "true", "env": {"A": "${%s:x}"}}}}`, s.Scheme())
			if err := os.WriteFile(path, config, 0o600); err != nil {
				t.Fatal(err)
			}
			refusal := "${" + s.Scheme() + ":…} needs the module " + m.Name + ", which this build does not have"
			gone := slices.Contains(without, m.Name)
			if said, err := exec.Command(program, "ls", "-c", path).CombinedOutput(); err != nil || strings.Contains(string(said), refusal) != gone {
				t.Errorf("ls with %s: %v, %s, want %q: %t", s.Scheme(), err, said, refusal, gone)
			}
			if said, err := exec.Command(program, "test", "-c", path).CombinedOutput(); gone && (err == nil || !strings.Contains(string(said), refusal)) {
				t.Errorf("test with %s: %v, %s, want %q", s.Scheme(), err, said, refusal)
			}
		}
	}
}

type schemaKey struct{ Examples []json.RawMessage }

// keysOf returns the keys in the JSON Schema of a program: those of the document, and those of an entry
// of any kind below mcp.a.
func keysOf(t *testing.T, program string) map[string]schemaKey {
	t.Helper()
	out, err := exec.Command(program, "schema").Output()
	if err != nil {
		t.Fatal(err)
	}
	type object struct{ Properties map[string]schemaKey }
	var root object
	var servers struct {
		Properties struct {
			MCP      struct{ AdditionalProperties struct{ OneOf []object } }
			Defaults object
		}
	}
	if err := errors.Join(json.Unmarshal(out, &root), json.Unmarshal(out, &servers)); err != nil {
		t.Fatal(err)
	}
	for _, kind := range servers.Properties.MCP.AdditionalProperties.OneOf {
		for key, p := range kind.Properties {
			root.Properties["mcp.a."+key] = p
		}
	}
	for key, p := range servers.Properties.Defaults.Properties {
		root.Properties["defaults."+key] = p
	}
	return root.Properties
}
