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
	if sentence != "" && (len(s.Tools) <= fewTools || strings.ContainsFunc(sentence, unspaced)) {
		text, sentence = sentence, text
	}
	return joined(whole(text), sentence)
}

// whole returns a text, without what follows its last whole part if it is too long.
func whole(text string) string {
	if display.Units(text) <= longest {
		return text
	}
	text = strings.TrimSuffix(display.Cut(text, longest), "…")
	if end := strings.LastIndexAny(text, ".,;:—–。，；"); end > len(text)/2 {
		text = strings.TrimRight(text[:end], " ,;:—–")
	}
	for {
		space := strings.LastIndexByte(text, ' ')
		if space < 0 || !search.IsStopWord(strings.ToLower(text[space+1:])) {
			return text
		}
		text = text[:space]
	}
}

// unspaced reports whether r is of a script without spaces between words, whose sentences end with 。
func unspaced(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }

// startsUnspaced reports whether the first word of a text is in such a script, at least in part.
func startsUnspaced(text string) bool {
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	return strings.ContainsFunc(text[:max(end, 0)], unspaced) || end < 0 && strings.ContainsFunc(text, unspaced)
}

// fewTools is the most tools whose descriptions say more than their names.
const fewTools = 3

// joined puts one sentence after another, if it says more in the same script and fits.
func joined(first, second string) string {
	switch {
	case first == "":
		return second
	case strings.ContainsFunc(first, unspaced) && !startsUnspaced(second):
		return first
	}
	end := ". "
	if strings.ContainsFunc(first, unspaced) {
		end = "。"
	}
	said, more := search.SetOf(first), 0
	for w := range search.SetOf(second) {
		if !said[w] && !search.IsStopWord(w) {
			more++
		}
	}
	both := strings.TrimRight(first, ".。") + end + second
	if more < 2 || display.Units(both) > longest {
		return first
	}
	return both
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
