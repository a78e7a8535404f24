package catalog

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	porterstemmer "github.com/blevesearch/go-porterstemmer"
)

// words calls f with each search term of a text: its pieces in lower case, stemmed.
func words(s string, f func(term string)) {
	pieces(s, func(piece string) { f(stem(strings.ToLower(piece))) })
}

// pieces calls f with each piece of a text that a search term is made of, as it is
// written: its words, the parts of compound words (camelCase, snake_case, kebab-case),
// and of scripts without spaces every pair of neighbours.
func pieces(s string, f func(piece string)) {
	start := -1
	for i, r := range s {
		switch in := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r); {
		case in && start < 0:
			start = i
		case !in && start >= 0:
			word(s[start:i], f)
			start = -1
		}
	}
	if start >= 0 {
		word(s[start:], f)
	}
}

// word calls f with the pieces of one run of letters and digits.
func word(s string, f func(piece string)) {
	const longest = 64 // bytes; longer runs are encoded data, not words
	switch {
	case strings.ContainsFunc(s, unspaced):
		pairs(s, f)
	case len(s) > longest:
	default:
		f(s)
		camel(s, f)
	}
}

// unspaced tells letters of scripts that put no spaces between words.
func unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// pairs calls f with every two neighbouring characters, or the only one.
func pairs(s string, f func(piece string)) {
	first, second, n := 0, 0, 0 // where the last two begin, and how many there were
	for i := range s {
		if n > 1 {
			f(s[first:i])
		}
		first, second, n = second, i, n+1
	}
	f(s[first:])
}

// camel calls f with the parts of a word that changes case, if there are
// several: getURLFor2 has get, URL and For2.
func camel(s string, f func(piece string)) {
	start := 0
	before, _ := utf8.DecodeRuneInString(s)
	for i, r := range s {
		if i > 0 && unicode.IsUpper(r) {
			next, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
			if !unicode.IsUpper(before) || unicode.IsLower(next) {
				f(s[start:i])
				start = i
			}
		}
		before = r
	}
	if start > 0 {
		f(s[start:])
	}
}

// stem cuts a word in lower case to its stem by Porter's algorithm, so that
// "lists", "listed" and "listing" meet "list". It knows English only; words of
// other scripts stay as they are.
func stem(w string) string { return porterstemmer.StemString(w) }

// nameWords are the distinct words of a tool name.
func nameWords(name string) []string {
	var list []string
	seen := map[string]bool{}
	words(name, func(w string) {
		if !seen[w] {
			seen[w] = true
			list = append(list, w)
		}
	})
	return list
}

// stopWords are terms too common to say what someone looks for.
var stopWords = sync.OnceValue(func() map[string]bool {
	return setOfWords(`a an and are as at be by can do for from have how i in is it me my of on or our please
		show that the this to use want we what when where which with you your`)
})

// setOfWords returns the terms of a text.
func setOfWords(text string) map[string]bool {
	set := map[string]bool{}
	words(text, func(w string) { set[w] = true })
	return set
}
