package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/search"
)

// senses is how many senses of a word count, the most frequent first. Further ones are rare: they would
// make "run" a synonym of nearly any verb.
const senses = 3

// shortest is the length of a word from which it is no abbreviation.
const shortest = 3

// A wordnet says how words are related. Words are search terms, so that "deleted" is "delete".
type wordnet struct {
	related map[pair]string   // "same" or "kind"
	plain   map[string]string // term → the shortest word that has it
}

// pair is two terms, in order.
type pair struct{ a, b string }

func pairOf(a, b string) pair { return pair{min(a, b), max(a, b)} }

// readWordNet reads the verbs, nouns and adjectives of a WordNet. Two words are related if they are in one
// synset, or if one is a kind of the other ("multiply" of "calculate"), by their first senses.
func readWordNet(dir string) (*wordnet, error) {
	w := &wordnet{map[pair]string{}, map[string]string{}}
	for _, part := range []string{"verb", "noun", "adj"} {
		if err := w.read(dir, part); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *wordnet) read(dir, part string) error {
	lemmas := map[string][]string{} // by synset: words of which it is one of the first senses
	first := map[string]string{}    // by word: its first sense
	err := eachLine(filepath.Join(dir, "index."+part), func(f []string) {
		pointers, _ := strconv.Atoi(f[3])
		if strings.Contains(f[0], "_") || len(f) < 7+pointers {
			return
		}
		synsets := f[6+pointers:]
		first[f[0]] = synsets[0]
		for _, s := range synsets[:min(senses, len(synsets))] {
			lemmas[s] = append(lemmas[s], f[0])
		}
	})
	if err != nil {
		return err
	}
	return eachLine(filepath.Join(dir, "data."+part), func(f []string) {
		own := lemmas[f[0]]
		for i, a := range own {
			for _, b := range own[i+1:] {
				w.relate(a, b, "same")
			}
		}
		for i, kind := range f[:len(f)-1] {
			if kind != "@" || len(f[i+1]) != len(f[0]) {
				continue
			}
			for _, a := range own {
				for _, b := range lemmas[f[i+1]] {
					if first[a] == f[0] && first[b] == f[i+1] {
						w.relate(a, b, "kind")
					}
				}
			}
		}
	})
}

func (w *wordnet) relate(a, b, how string) {
	x, y := search.Terms(a), search.Terms(b)
	if min(len(a), len(b)) < shortest || len(x) != 1 || len(y) != 1 || x[0] == y[0] || search.IsStopWord(x[0]) || search.IsStopWord(y[0]) {
		return
	}
	if p := pairOf(x[0], y[0]); w.related[p] != "same" {
		w.related[p] = how
	}
	for word, term := range map[string]string{a: x[0], b: y[0]} {
		if was := w.plain[term]; was == "" || len(word) < len(was) || len(word) == len(was) && word < was {
			w.plain[term] = word
		}
	}
}

// eachLine calls f with the fields of each line of a file of WordNet but those of its licence.
func eachLine(file string, f func(fields []string)) error {
	open, err := os.Open(file)
	if err != nil {
		return err
	}
	defer open.Close()
	lines := bufio.NewScanner(open)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line := lines.Text(); !strings.HasPrefix(line, " ") {
			f(strings.Fields(line))
		}
	}
	return lines.Err()
}
