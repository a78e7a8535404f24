package search

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	porterstemmer "github.com/blevesearch/go-porterstemmer"
)

// Words calls f with each search term of a text: its pieces in lower case, stemmed.
func Words(s string, f func(term string)) {
	pieces(s, func(piece string) { f(stem(strings.ToLower(piece))) })
}

// pieces calls f with each piece of a text that becomes a term, as it is written: words,
// parts of compound words (camelCase, snake_case, kebab-case) and, in scripts without spaces,
// every pair of neighbours.
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

// unspaced reports whether r is of a script without spaces between words.
func unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// pairs calls f with every two neighbouring characters, or the only one.
func pairs(s string, f func(piece string)) {
	first, second, n := 0, 0, 0 // where the last two begin, and how many have been seen
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

// stem returns the stem of a lower-case word by Porter's algorithm: "lists", "listed" and
// "listing" become "list". It is for English; words of other scripts stay as they are.
func stem(w string) string { return porterstemmer.StemString(w) }

// Terms returns the distinct search terms of a name.
func Terms(name string) []string {
	var list []string
	seen := map[string]bool{}
	Words(name, func(w string) {
		if !seen[w] {
			seen[w] = true
			list = append(list, w)
		}
	})
	return list
}

// compounds returns the terms of two neighbouring words as one, where one of the two is a
// stop word: "on call" may mean "oncall".
func compounds(s string) (terms []string) {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) || unspaced(r) })
	for i := range max(len(words)-1, 0) {
		if a, b := words[i], words[i+1]; stopWords()[stem(a)] != stopWords()[stem(b)] {
			terms = append(terms, stem(a+b))
		}
	}
	return terms
}

// IsStopWord reports whether a term is too common to be searched.
func IsStopWord(term string) bool { return stopWords()[term] }

// stopWords are terms too common to be searched: the function words of English, parts of its
// contractions, and polite phrases.
var stopWords = sync.OnceValue(func() map[string]bool {
	return SetOf(`a an the and but or nor if because as until while than so not no
		i me my myself we us our ours ourselves you your yours yourself he him his himself she her hers herself
		it its itself they them their theirs themselves this that these those such own same other
		what which who whom whose when where why how there here then once again further
		am is are was were be been being have has had having do does did doing
		can cannot could will would shall should may might must ought
		of at by for with about against between into through during before after above below to from up down in out on off over under
		all any both each few more most some only very too just also
		s t d m ll ve re don didn doesn isn aren wasn won couldn wouldn shouldn
		please help show use need want wish like love hope try tell give let know think suppose imagine wonder curious interested
		hi hey hello ok okay sure maybe actually really currently kindly thank thanks able something anything someone thing way`)
})

// SetOf returns the search terms of a text as a set.
func SetOf(text string) map[string]bool {
	set := map[string]bool{}
	Words(text, func(w string) { set[w] = true })
	return set
}

// related returns the synonyms of a term, and its other forms.
func related(term string) []string { return append(forms(term), synonyms()[term]...) }

// endings make nouns of verbs, after Porter's algorithm: fail and failur, creat and creation.
var endings = []string{"ur", "ion", "er", "or", "al", "ment", "anc"}

// shortestRoot is the least that an ending follows: "port" and "porter" are two words.
const shortestRoot = 4

// forms returns the terms that have the root of a term and another ending. Most of them are no words.
func forms(term string) (all []string) {
	if len(term) < shortestRoot || term[0] >= utf8.RuneSelf {
		return nil
	}
	roots := []string{term}
	for _, e := range endings {
		if root, ok := strings.CutSuffix(term, e); ok && len(root) >= shortestRoot {
			roots = append(roots, root)
		}
	}
	for _, root := range roots {
		for _, e := range append(endings, "") {
			if form := root + e; form != term && !slices.Contains(all, form) {
				all = append(all, form)
			}
		}
	}
	return all
}
