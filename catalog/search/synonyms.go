package search

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// synonyms maps a term to its synonyms. The first query makes it.
var synonyms = sync.OnceValue(func() map[string][]string {
	m := map[string][]string{}
	for line := range strings.Lines(meanTheSame + found) {
		words, _, _ := strings.Cut(line, "|")
		group := Terms(words)
		if strings.HasPrefix(line, "#") {
			group = nil
		}
		for _, w := range group {
			for _, other := range group {
				if other != w && !slices.Contains(m[w], other) {
					m[w] = append(m[w], other)
				}
			}
		}
	}
	return m
})

// meanTheSame are groups of synonyms, one a line. They are general English and common words
// of software, and come from no set of queries.
//
//go:embed synonyms.txt
var meanTheSame string

// found are pairs that bench/words found, with their evidence.
//
//go:embed synonyms_found.txt
var found string
