package trust

import (
	"slices"
	"strings"
)

// mostWords limits the texts that are compared word by word, because the time grows with their product.
const mostWords = 4000

// around is how many words are shown before and after a change.
const around = 8

// compareWords marks [-removed-] and {+added+} words in a text.
func compareWords(before, now string) string {
	a, b := strings.Fields(before), strings.Fields(now)
	if len(a)*len(b) > mostWords*mostWords {
		return "[-" + before + "-] {+" + now + "+}"
	}
	edits := align(a, b)
	if len(edits) == 1 && edits[0].kind == same {
		return "[white space alone]"
	}
	var out []string
	for i, e := range edits {
		switch e.kind {
		case removed:
			out = append(out, "[-"+strings.Join(e.words, " ")+"-]")
		case added:
			out = append(out, "{+"+strings.Join(e.words, " ")+"+}")
		case same:
			out = append(out, nextToChange(e.words, i > 0, i < len(edits)-1))
		}
	}
	return strings.Join(out, " ")
}

// nextToChange shortens unchanged words to those next to a change.
func nextToChange(words []string, behind, before bool) string {
	first, last := 0, 0
	if behind {
		first = around
	}
	if before {
		last = around
	}
	if len(words) > first+last+1 {
		words = slices.Concat(words[:first], []string{"…"}, words[len(words)-last:])
	}
	return strings.Join(words, " ")
}

const (
	same = iota
	removed
	added
)

// An edit is a run of words.
type edit struct {
	kind  int
	words []string
}

// align returns the runs that convert a to b, by the longest common subsequence.
func align(a, b []string) (edits []edit) {
	longest := make([][]uint16, len(a)+1)
	for i := range longest {
		longest[i] = make([]uint16, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	add := func(kind int, word string) {
		if n := len(edits); n == 0 || edits[n-1].kind != kind {
			edits = append(edits, edit{kind: kind})
		}
		last := &edits[len(edits)-1]
		last.words = append(last.words, word)
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			add(same, a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			add(removed, a[i])
			i++
		default:
			add(added, b[j])
			j++
		}
	}
	return edits
}
