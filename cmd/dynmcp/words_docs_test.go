package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// words are those that readers stumbled over, or that named a thing that has another name: one word has
// one meaning, and one thing one word.
var words = []struct {
	found *regexp.Regexp
	write string
}{
	// Names of things.
	{regexp.MustCompile(`(?i)\bupstreams?\b`), "server"},
	{regexp.MustCompile(`\bMCPs\b|(?i:\bunknown MCP\b)|\bMCP "|\b(?:an|the|this|each|every|one|which) MCP(?:[.,;:]| (?:is|has|that|which|starts|ends|with)\b)`), "server"},
	{regexp.MustCompile(`(?i)\bMCP clients?\b`), "host"},
	{regexp.MustCompile(`(?i)\bstored lists?\b|\blists of servers\b`), "stored listings"},
	{regexp.MustCompile(`(?i)\bnever listed\b`), "not listed yet"},
	{regexp.MustCompile(`(?i)\b(?:MCP|tool) catalogs?\b`), "catalogue"},
	{regexp.MustCompile(`(?i)\bdaemons?\b|\bdynmcp process(?:es)?\b|\binstances? of dynmcp\b|\ba dynmcp run\b`), "run"},
	{regexp.MustCompile(`(?i)\bMCP programs?\b|\bbackends?\b`), "server"},
	{regexp.MustCompile(`(?i)\bconfiguration files?\b`), "config"},
	// Ways to say it.
	{regexp.MustCompile(`(?i)\banew\b`), "again"},
	{regexp.MustCompile(`(?i)\bwhoever\b|\bposed\b|\bwitness|\bparked\b|\bslips?\b|\bofferee|\bdoomed\b|\bmenus\b`), "the plain word"},
	{regexp.MustCompile(`(?i)\bprecedence\b`), "override"},
	{regexp.MustCompile(`(?i)\badd up\b|\bcount what\b|\bjudge the\b`), "summarize, compare, check"},
	{regexp.MustCompile(`(?i)\bis shown what\b|\bsays? what a server may do\b`), "show"},
	{regexp.MustCompile(`(?i)\bis not whole\b|\bdo without it\b|\bis not there\b|\bwaits since\b`), "incomplete, change it, cannot find, has been waiting for"},
	{regexp.MustCompile(`(?i)\bcosts what it costs\b|\buntil the host has the tools\b`), "costs what it always did, startup"},
	{regexp.MustCompile(`(?i)\bserve another profile\b|\bkeep what they have\b`), "switch a run to another profile, store their tools"},
}

// spoken are texts with such a word that stay, by page or verb, with the reason.
var spoken = map[string]string{
	"docs/security.md: daemons": "programs that a server leaves behind, not dynmcp",
}

var (
	blocks = regexp.MustCompile("(?ms)^```.*?^```$")
	spans  = regexp.MustCompile("`[^`\n]*`|\\]\\([^)]*\\)")
)

// TestOneMeaningPerWord reads the help of all verbs, README and docs. What stands in code, and links, is
// what programs write or read; package names are those of the house, so that docs/packages.md is left out.
func TestOneMeaningPerWord(t *testing.T) {
	texts := map[string]string{}
	for verb, help := range allHelp(t) {
		texts["dynmcp "+verb+" --help"] = strings.Join(strings.Fields(help), " ")
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(pages, "../../README.md") {
		if name := strings.TrimPrefix(filepath.ToSlash(path), "../../"); name != "docs/packages.md" {
			text := spans.ReplaceAllString(blocks.ReplaceAllString(read(t, path), ""), "`")
			texts[name] = strings.Join(strings.Fields(text), " ")
		}
	}
	if len(texts) < 80 {
		t.Errorf("only %d texts", len(texts))
	}
	used := map[string]bool{}
	for name, text := range texts {
		for _, w := range words {
			for _, at := range w.found.FindAllStringIndex(text, -1) {
				exception := name + ": " + strings.ToLower(text[at[0]:at[1]])
				if used[exception] = true; spoken[exception] == "" {
					t.Errorf("%s: %q in …%s…: write %s", name, text[at[0]:at[1]], text[max(0, at[0]-40):min(len(text), at[1]+40)], w.write)
				}
			}
		}
	}
	for exception := range spoken {
		if !used[exception] {
			t.Errorf("%s: the word is gone; so can its exception", exception)
		}
	}
}
