package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each page for users begins with a question and a command that answers it. Commands of dynmcp are in the
// table of verbs, with flags that they have; the other tests of docs run those in blocks.
func TestPagesBeginWithAQuestion(t *testing.T) {
	first := regexp.MustCompile("^# .+\n\n\\*\\*[^*\n]+\\?\\*\\* `([^`\n]+)`\n")
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 30 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		if filepath.Base(page) == "packages.md" { // made by a program, for readers of the code
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		m := first.FindSubmatch(text)
		if m == nil {
			t.Errorf("%s does not begin with **a question?** and `a command`", page)
			continue
		}
		words := strings.Fields(string(m[1]))
		if words[0] != "dynmcp" {
			continue
		}
		cmd, rest, err := rootCommand().Find(words[1:])
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil && len(words) > 1 && !strings.HasPrefix(words[1], "-") && cmd.Name() == "dynmcp" {
			t.Errorf("%s: there is no verb %s", page, words[1])
		}
		if err == nil && cmd.Args != nil && cmd.Name() != "dynmcp" {
			err = cmd.Args(cmd, cmd.Flags().Args())
		}
		if err != nil && !strings.Contains(err.Error(), "help requested") {
			t.Errorf("%s: %s: %v", page, m[1], err)
		}
	}
}
