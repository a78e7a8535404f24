// Package describe generates the description of a server that has none: from the texts of
// the server and its package, and from the verbs and nouns of its tools. The most distinctive
// words come first, because with many servers a model is shown little more
// (docs/descriptions.md).
//
// topics.go makes topics of the names of tools; sentence.go shortens sentences.
package describe

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/display"
)

// A Subject is a server to be described.
type Subject struct {
	Name  string   // shown beside the description
	Says  []string // the server's instructions, description and title, and its package's description
	Tools []Tool
}

// A Tool is one of a server's.
type Tool struct{ Name, Description string }

// longest is the most UTF-16 units of a description.
const longest = 160

// Text returns a description in at most 160 UTF-16 units, "" if nothing is known.
func Text(s Subject) string {
	own := map[string]bool{}
	for _, w := range search.Terms(s.Name) {
		own[w] = true
	}
	about := topics(s.Tools, own)
	sentence := firstSentence(s.Says, own)
	if sentence == "" && len(s.Tools) <= fewTools {
		for _, t := range s.Tools {
			sentence = joined(sentence, object(firstSentence([]string{t.Description}, own)))
		}
	}
	text := about.text(longest - 24)
	if len(s.Tools) <= fewTools && sentence != "" {
		text, sentence = sentence, text
	}
	return display.Cut(joined(text, sentence), longest)
}

// fewTools is the most tools whose descriptions say more than their names.
const fewTools = 3

// joined puts one sentence after another.
func joined(first, second string) string {
	switch {
	case second == "":
		return first
	case first == "":
		return second
	}
	return strings.TrimRight(first, ".") + ". " + second
}

// capital returns a text with its first letter in upper case.
func capital(text string) string {
	first, n := utf8.DecodeRuneInString(text)
	if n == 0 || !unicode.IsLower(first) {
		return text
	}
	return string(unicode.ToUpper(first)) + text[n:]
}

// listed joins words: "a, b and c".
func listed(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// has reports whether a list of words, in one text, has a word.
func has(list string, word string) bool { return slices.Contains(strings.Fields(list), word) }
