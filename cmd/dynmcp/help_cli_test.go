package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// helpOf returns the help of a verb.
func helpOf(t *testing.T, verb ...string) string {
	t.Helper()
	var out strings.Builder
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs(append(slices.Clone(verb), "--help"))
	if err := root.Execute(); err != nil {
		t.Fatalf("%v: %v", verb, err)
	}
	return out.String()
}

// Help is golden, so that a change shows what users will read.
func TestHelpOfVerbs(t *testing.T) {
	for _, verb := range []string{"ls", "test", "search", "outdated", "update", "warm", "diff", "approve", "call", "find", "describe", "read", "prompt", "run", "sandbox", "policy", "policy test", "log", "stats", "doctor", "tokens", "version", "serve", "connect",
		"cluster", "cluster key", "cluster push", "cluster pull"} {
		t.Run(verb, func(t *testing.T) {
			got := helpOf(t, strings.Fields(verb)...)
			golden := filepath.Join("testdata", "cli1", "help", strings.ReplaceAll(verb, " ", "-")+".hlp")
			if flag.Lookup("update").Value.String() == "true" { // verbs_cli_test.go
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v; go test -update writes it", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("help of %s (-want +got):\n%s", verb, diff)
			}
		})
	}
}

// All help fits 80 columns, and marks placeholders without angle brackets, which man pages
// lose.
func TestHelpFits(t *testing.T) {
	walked := 0
	var walk func(verb ...string)
	walk = func(verb ...string) {
		walked++
		below := false
		for _, line := range strings.Split(helpOf(t, verb...), "\n") {
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("%v: %d columns: %s", verb, n, line)
			}
			if strings.HasPrefix(line, "  dynmcp") && strings.Contains(line, "<") {
				t.Errorf("%v: %s", verb, line)
			}
			if line == "Available Commands:" || line == "" {
				below = line != ""
			} else if below {
				walk(append(slices.Clone(verb), strings.Fields(line)[0])...)
			}
		}
	}
	walk()
	if walked < len(verbs) {
		t.Errorf("%d verbs were found, of at least %d", walked, len(verbs))
	}
	t.Logf("%d verbs", walked)
}
