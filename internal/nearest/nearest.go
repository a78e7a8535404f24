// Package nearest finds the probable meaning of a misspelt word.
package nearest

import (
	"slices"
	"strings"
)

// Word returns the candidate most like s, or "". One letter in three may differ, or the beginning
// may be missing, as in http for streamable-http.
func Word(s string, candidates []string) string {
	if slices.Contains(candidates, s) {
		return s // most words are spelt well
	}
	s = fold(s)
	word := []rune(s)
	best, least := "", max(1, len(s)/3)+1
	for _, candidate := range candidates {
		folded := fold(candidate)
		d := least
		if other := []rune(folded); max(len(word)-len(other), len(other)-len(word)) < least { // each is an edit
			d = Distance(word, other)
		}
		if len(s) > 2 && strings.HasSuffix(folded, s) {
			d = min(d, least-1)
		}
		if d < least {
			best, least = candidate, d
		}
	}
	return best
}

// Hint is the hint for a value that is not allowed.
func Hint(value string, allowed []string) string {
	if near := Word(value, allowed); near != "" {
		return `did you mean "` + near + `"?`
	}
	return "want " + OneOf(allowed)
}

// OneOf lists the allowed values of a key.
func OneOf(values []string) string {
	last := len(values) - 1
	if last == 0 {
		return values[0]
	}
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// fold removes differences in case and separators.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// Distance returns the least number of runes to insert, remove, replace or swap with their
// neighbour to turn a into b, editing no rune twice (optimal string alignment).
func Distance(a, b []rune) int {
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := 1
			if a[i-1] == b[j-1] {
				replace = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}

// Closeness is 1 for equal names, less for each edit, and 0 for names of very different
// length.
func Closeness(a []rune, name string) float64 {
	if len(name) < len(a)/2 {
		return 0
	}
	b := []rune(strings.ToLower(name))
	longest := max(len(a), len(b))
	if longest == 0 || min(len(a), len(b))*2 < longest {
		return 0
	}
	return 1 - float64(Distance(a, b))/float64(longest)
}
