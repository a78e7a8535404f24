package trust

import (
	"slices"
	"strings"
)

// mostWords limits the texts that are compared word by word, because the time grows with their product.
const mostWords = 4000

// around is how many words are shown before and after a change.
const around = 8

// compareWords marks [-removed-] and {+added+} words in a text, by the longest common subsequence.
func compareWords(before, now string) string {
	a, b := strings.Fields(before), strings.Fields(now)
	switch {
	case len(a)*len(b) > mostWords*mostWords:
		return "[-" + before + "-] {+" + now + "+}"
	case slices.Equal(a, b):
		return "[white space alone]"
	}
	longest := commonWords(a, b)
	var out []string
	for i, j := 0, 0; i < len(a) || j < len(b); {
		from, begin := i, j
		for i < len(a) && j < len(b) && a[i] == b[j] {
			i, j = i+1, j+1
		}
		if i > from {
			out = append(out, nextToChange(a[from:i], from > 0 || begin > 0, i < len(a) || j < len(b)))
			continue
		}
		for i < len(a) && (j == len(b) || a[i] != b[j] && longest[i+1][j] >= longest[i][j+1]) {
			i++
		}
		if i > from {
			out = append(out, "[-"+strings.Join(a[from:i], " ")+"-]")
		}
		for j < len(b) && (i == len(a) || a[i] != b[j] && longest[i+1][j] < longest[i][j+1]) {
			j++
		}
		if j > begin {
			out = append(out, "{+"+strings.Join(b[begin:j], " ")+"+}")
		}
	}
	return strings.Join(out, " ")
}

// commonWords returns the length of the longest common subsequence of a[i:] and b[j:], by i and j.
func commonWords(a, b []string) [][]uint16 {
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
	return longest
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
