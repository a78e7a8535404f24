//go:build e2e

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// moduleLine is a line of the table of modules.
var moduleLine = regexp.MustCompile(`(?m)^\t(\w+)\.Module,\n`)

// Each module goes when its line goes: the program builds, and its help has the verbs of all others.
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
			checkVerbs(t, buildWith(t, without), m.Name)
		})
	}
	t.Run("core", func(t *testing.T) {
		all := make([]string, len(modules))
		for i, m := range modules {
			all[i] = m.Name
		}
		checkVerbs(t, buildDynmcp(t, "-tags", "core"), all...)
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
	out, err := exec.Command(program, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	left := " " + strings.Join(without, " ") + " "
	for _, m := range modules {
		gone := strings.Contains(left, " "+m.Name+" ")
		for _, verb := range m.Verbs {
			name, _, _ := strings.Cut(verb.Use, " ")
			listed := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(name) + ` `).Match(out)
			if listed == gone {
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
