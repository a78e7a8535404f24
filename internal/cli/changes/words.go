package changes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// around is the number of unchanged words to show on each side of a change.
const around = 8

// compareWords returns the text now with [-removed-] and {+added+} words marked, and other words
// shortened.
func compareWords(before, now string) string {
	a, b := strings.Fields(before), strings.Fields(now)
	if slices.Equal(a, b) {
		return "[white space alone]"
	}
	var kinds []byte // as in a unified diff
	var runs [][]string
	add := func(kind byte, words ...string) {
		if n := len(kinds); n > 0 && kinds[n-1] == kind {
			runs[n-1] = append(runs[n-1], words...)
		} else if len(words) > 0 {
			kinds, runs = append(kinds, kind), append(runs, slices.Clone(words))
		}
	}
	asLines := func(words []string) []byte { return []byte(strings.Join(append(words, ""), "\n")) }
	_, hunks, _ := strings.Cut(string(diff.Diff("", asLines(a), "", asLines(b))), "+++ \n")
	at := 0 // in a
	for line := range strings.Lines(hunks) {
		if line[0] == '@' {
			var from int
			_, _ = fmt.Sscanf(line, "@@ -%d", &from) // every hunk has it
			add(' ', a[at:max(at, from-1)]...)
			at = max(at, from-1)
			continue
		}
		if add(line[0], strings.TrimSuffix(line[1:], "\n")); line[0] != '+' {
			at++
		}
	}
	add(' ', a[at:]...)
	out := make([]string, len(runs))
	for i, words := range runs {
		switch text := strings.Join(words, " "); kinds[i] {
		case '-':
			out[i] = "[-" + text + "-]"
		case '+':
			out[i] = "{+" + text + "+}"
		default:
			out[i] = nextToChange(words, i > 0, i < len(runs)-1)
		}
	}
	return strings.Join(out, " ")
}

// nextToChange shortens unchanged words. behind and before tell whether they follow and precede a
// change.
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
