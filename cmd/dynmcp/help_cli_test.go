package main

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli/run"
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
	for _, verb := range []string{
		"ls", "test", "warm", "diff", "approve", "call", "find", "describe", "read", "prompt", "run", "sandbox", "policy", "policy test", "log", "stats", "doctor", "tokens", "version",
		"init", "add", "remove", "search", "outdated", "update", "schema", "import", "install", "login", "logout", "serve", "connect",
		"cluster", "cluster key", "cluster push", "cluster pull",
	} {
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
			if diff := gocmp.Diff(string(want), got); diff != "" {
				t.Errorf("help of %s (-want +got):\n%s", verb, diff)
			}
		})
	}
}

// allHelp returns the help of all verbs, by verb.
func allHelp(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	var walk func(cmd *cobra.Command, verb ...string)
	walk = func(cmd *cobra.Command, verb ...string) {
		all[strings.Join(verb, " ")] = helpOf(t, verb...)
		for _, below := range cmd.Commands() {
			walk(below, append(slices.Clone(verb), below.Name())...)
		}
	}
	walk(rootCommand())
	if len(all) < len(verbs) {
		t.Errorf("%d verbs were found, of at least %d", len(all), len(verbs))
	}
	return all
}

// Help lists the verbs in groups, and no more than a reader takes in; the others work without being listed.
func TestVerbsAreGrouped(t *testing.T) {
	shown := 0
	for _, verb := range rootCommand().Commands() {
		if verb.Hidden {
			continue
		}
		if shown++; verb.GroupID == "" {
			t.Errorf("%s is in no group", verb.Name())
		}
	}
	if shown > 37 {
		t.Errorf("help lists %d verbs", shown)
	}
	for _, spelling := range []string{"list", "status", "warm", "logout", "outdated", "describe-servers", "answer", "inspect", "dev inspect"} {
		if cmd, _, err := rootCommand().Find(strings.Fields(spelling)); err != nil || cmd.RunE == nil {
			t.Errorf("dynmcp %s does not work: %v", spelling, err)
		}
	}
}

// All help fits 80 columns, and marks placeholders without angle brackets, which man pages
// lose.
func TestHelpFits(t *testing.T) {
	for verb, help := range allHelp(t) {
		for line := range strings.Lines(help) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("%s: %d columns: %s", verb, n, line)
			}
			if strings.HasPrefix(line, "  dynmcp") && strings.Contains(line, "<") {
				t.Errorf("%s: %s", verb, line)
			}
		}
	}
}

var listedFlag = regexp.MustCompile(`(?m)^ +(?:-[a-z], )?(--[a-z-]+)`)

// The documentation has every flag that help lists.
func TestFlagsAreDocumented(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented strings.Builder
	for _, path := range append(pages, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		documented.Write(text)
	}
	seen := 0
	for verb, help := range allHelp(t) {
		if first, _, _ := strings.Cut(verb, " "); first == "completion" {
			continue // cobra's own
		}
		_, flags, _ := strings.Cut(help, "Flags:")
		for _, m := range listedFlag.FindAllStringSubmatch(flags, -1) {
			seen++
			if !regexp.MustCompile(m[1] + `\b`).MatchString(documented.String()) {
				t.Errorf("dynmcp %s: the documentation does not have %s", verb, m[1])
			}
		}
	}
	if seen < 150 {
		t.Errorf("only %d flags looked at", seen)
	}
}

// An error about a command line does not begin with dynmcp: report puts that before it.
func TestErrorsDoNotNameTheProgram(t *testing.T) {
	checked := 0
	check := func(verb *cobra.Command, err error) {
		if err == nil {
			return
		}
		checked++
		if strings.HasPrefix(err.Error(), "dynmcp") {
			t.Errorf("%s: %v", verb.CommandPath(), err)
		}
	}
	var walk func(verb *cobra.Command)
	walk = func(verb *cobra.Command) {
		for _, args := range [][]string{{}, {"a"}, {"127.0.0.1:1", "config.json"}, {"a", "b", "c", "d", "e"}} {
			check(verb, cmp.Or(run.PyMCPBrokerArguments(verb, args), verb.ValidateArgs(args)))
		}
		check(verb, verb.ParseFlags([]string{"--no-such-flag"}))
		for _, sub := range verb.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand())
	if checked < 50 {
		t.Errorf("only %d errors", checked)
	}
	goldens, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(goldens) == 0 {
		t.Fatal(err, len(goldens))
	}
	for _, golden := range goldens {
		text, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "dynmcp: dynmcp") {
			t.Errorf("%s has an error that names dynmcp twice", golden)
		}
	}
}
