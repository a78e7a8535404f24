package describe

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/display"
)

// prepositions end the object of a verb.
const prepositions = `by for from to in of on with using via`

// A topic is what tools of a server are about.
type topic struct {
	key   []string // its terms
	words string   // as written, in the plural if a tool has it
	score float64
	first int // the index of the first tool about it
}

// worth returns the score of a topic in relation to its length, less for vague words.
func (t *topic) worth() float64 {
	worth := t.score / math.Sqrt(float64(len(t.words)+2))
	if slices.ContainsFunc(strings.Fields(t.words), func(w string) bool { return has(vague, w) || has(vague, strings.TrimSuffix(w, "s")) }) {
		worth /= 1.5
	}
	return worth
}

// vague are words that tools of any server may be about.
const vague = `resource operation command object property properties entity entities element entry entries content description source target top latest usage
	environment request response error reference path url context config configuration option parameter field file text group user class process action`

// A summary is what the tools of a server are about, and what they do.
type summary struct {
	area   string   // a word that all names begin with
	topics []topic  // the best first
	verbs  []string // the most frequent first
}

// verbs are general words for what a tool does. Other verbs may be topics.
const verbs = `get list create add update delete remove set search find read write edit fetch query retrieve run execute
	make new show view describe check manage send post put patch move copy upload download import export open close start stop enable disable
	lookup resolve generate take trigger toggle assign mark perform do verify apply insert upsert modify change save load cancel batch bulk`

// fillers are words in names that say nothing about a server.
const fillers = `tool tools mcp server api service services self all and or the a an my me is it at as
	info information data details detail item items id ids name names type types status state list result results current
	reader updater manager handler definition definitions multiple many available default new old v1 v2 v3 value values`

// inText is the weight of a word in a tool's description; in its name a word weighs 1. A word
// that is in no name needs the weight of a tenth of the tools, and of two.
const inText = 0.4

// topics finds what tools are about. own are the terms of the server's name, which say
// nothing.
func topics(tools []Tool, own map[string]bool) summary {
	names := make([][]string, len(tools))
	for i, t := range tools {
		names[i] = split(t.Name)
	}
	s := summary{area: area(names, own)}
	counts := map[string]*topic{}
	done := map[string]int{}
	for i, words := range names {
		verb, phrase := s.parts(words, own)
		if verb != "" {
			done[verb]++
		}
		count(counts, phrase, i, 1)
	}
	inNames := maps.Clone(counts)
	for i, t := range tools {
		for _, phrase := range s.phrases(t.Description, own) {
			count(counts, phrase, i, inText)
		}
	}
	least := inText * max(2, float64(len(tools))/10)
	maps.DeleteFunc(counts, func(name string, t *topic) bool { return inNames[name] == nil && t.score < least })
	s.topics, s.verbs = chosen(counts), mostFrequent(done)
	return s
}

// parts returns the verb in the name of a tool, and its object.
func (s *summary) parts(name []string, own map[string]bool) (verb string, phrase []string) {
	for _, w := range name {
		switch {
		case w == s.area || own[termOf(w)] || len(w) < 2 || !strings.ContainsFunc(w, unicode.IsLetter):
		case has(verbs, w) && verb == "":
			verb = w
		case has(prepositions, w) && phrase != nil:
			return verb, phrase
		case !has(fillers, w) && !has(prepositions, w) && !search.IsStopWord(termOf(w)):
			phrase = append(phrase, w)
		}
	}
	return verb, phrase
}

// count adds a phrase to the counts: each word, and each pair of neighbours.
func count(counts map[string]*topic, phrase []string, tool int, weight float64) {
	for i := range phrase {
		for n := 1; n <= 2 && i+n <= len(phrase); n++ {
			words := phrase[i : i+n]
			var key []string
			for _, w := range words {
				key = append(key, termOf(w))
			}
			name := strings.Join(key, " ")
			t := counts[name]
			if t == nil {
				t = &topic{key: key, words: strings.Join(words, " "), first: tool}
				counts[name] = t
			}
			if said := strings.Join(words, " "); len(said) > len(t.words) && strings.HasSuffix(said, "s") {
				t.words = said
			}
			t.score += weight
		}
	}
}

// phrases returns the runs of words in the first sentence of a description that may be
// topics. It skips the first word, the verb.
func (s *summary) phrases(description string, own map[string]bool) (all [][]string) {
	var phrase []string
	end := func() {
		if phrase != nil {
			all = append(all, phrase)
		}
		phrase = nil
	}
	fields := strings.Fields(display.Summary(description, longest))
	for _, field := range fields[min(1, len(fields)):] {
		words := split(field)
		if len(words) == 2 && !strings.ContainsAny(field, "-_/") { // a name like GitHub
			words = []string{words[0] + words[1]}
		}
		for _, w := range words {
			if w == s.area || own[termOf(w)] || !mayBeTopic(w) {
				end()
				continue
			}
			phrase = append(phrase, w)
		}
		if strings.ContainsAny(field[len(field)-1:], ",.;:)") {
			end()
		}
	}
	end()
	return all
}

// mayBeTopic reports whether a word of a description may be a topic.
func mayBeTopic(w string) bool {
	for _, ending := range []string{"ly", "ed", "ing"} {
		if strings.HasSuffix(w, ending) {
			return false
		}
	}
	for _, list := range []string{verbs, fillers, prepositions, general} {
		if has(list, w) || has(list, strings.TrimSuffix(w, "s")) {
			return false
		}
	}
	return len(w) >= 3 && strings.ContainsFunc(w, unicode.IsLetter) && !search.IsStopWord(termOf(w))
}

// general are words in descriptions that say nothing about a server. Those on the line before
// the last are in the descriptions of at least five of 108 servers, and in few of their
// names.
const general = `use used uses returns return specific specified given based including includes optional optionally existing provided provide within number one
	two first last also only any each per into over between across without whether more most least single several various full complete
	supports support allows can may must should will when where whose currently like such time times e g i retrieves performs perform lists
	detailed comprehensive structured purpose warning following always containing accessible 400 ready clean
	gets creates updates deletes format input output json text string content contents via related
	different structure configuration active recent operations calls etc step steps level exist exists non relevant best core part
	bad error errors response responses`

// chosen returns the topics worth naming, the best first. A pair of words replaces a word if
// at least half of the uses of the word are in the pair.
func chosen(counts map[string]*topic) (all []topic) {
	covered := map[string]bool{}
	for _, t := range counts {
		if len(t.key) != 2 {
			continue
		}
		a, b := counts[t.key[0]].score, counts[t.key[1]].score
		if t.score*5 < min(a, b)*3 || t.score < 1 {
			continue
		}
		for _, w := range t.key {
			covered[w] = covered[w] || t.score*2 >= counts[w].score
		}
		all = append(all, *t)
	}
	for _, t := range counts {
		if len(t.key) == 1 && !covered[t.key[0]] {
			all = append(all, *t)
		}
	}
	slices.SortFunc(all, func(a, b topic) int {
		return cmp.Or(cmp.Compare(b.worth(), a.worth()), cmp.Compare(len(b.key), len(a.key)), cmp.Compare(a.first, b.first), strings.Compare(a.words, b.words))
	})
	said := map[string]bool{}
	kept := all[:0]
	for _, t := range all {
		written := strings.Fields(t.words)
		t.words = ""
		for i, w := range t.key {
			if !said[w] {
				t.words = strings.TrimSpace(t.words + " " + written[i])
			}
			said[w] = true
		}
		if t.words != "" {
			kept = append(kept, t)
		}
	}
	return kept
}

// mostFrequent returns the three most frequent verbs, in that order.
func mostFrequent(done map[string]int) []string {
	words := slices.SortedFunc(maps.Keys(done), func(a, b string) int { return cmp.Or(cmp.Compare(done[b], done[a]), strings.Compare(a, b)) })
	return words[:min(len(words), 3)]
}

// text names the topics and the verbs, in at most so many units.
func (s summary) text(most int) string {
	text := capital(s.area)
	foreign := s.foreign()
	most = min(most, longest-display.Units(": "+listed(s.verbs)))
	for _, t := range s.topics {
		if strings.ContainsFunc(t.words, unspaced) == foreign {
			continue
		}
		next := t.words
		if text != "" {
			next = text + ", " + next
		}
		if display.Units(next) > most {
			break
		}
		text = next
	}
	if text = capital(text); text != "" && len(s.verbs) > 0 {
		text += ": " + listed(s.verbs)
	} else if text == "" {
		text = capital(listed(s.verbs))
	}
	return text
}

// foreign reports in which script topics are left out: the one with fewer of the ten best.
func (s summary) foreign() (unspacedOnes bool) {
	n := 0
	best := s.topics[:min(len(s.topics), 10)]
	for _, t := range best {
		if strings.ContainsFunc(t.words, unspaced) {
			n++
		}
	}
	return 2*n < len(best)
}

// area returns the word that nearly all names begin with, "" if there is none, there are few
// names, or it is no topic.
func area(names [][]string, own map[string]bool) string {
	first := map[string]int{}
	for _, words := range names {
		if len(words) > 1 {
			first[words[0]]++
		}
	}
	for w, n := range first {
		if n >= 4 && n*5 >= len(names)*4 && !own[termOf(w)] && !has(verbs, w) && !has(fillers, w) {
			return w
		}
	}
	return ""
}

// split returns the words of a name in lower case.
func split(name string) (words []string) {
	var b strings.Builder
	end := func() {
		if b.Len() > 0 {
			words = append(words, strings.ToLower(b.String()))
			b.Reset()
		}
	}
	lower := false
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			continue
		}
		if unicode.IsUpper(r) && lower {
			end()
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
		b.WriteRune(r)
	}
	end()
	return words
}

// termOf returns the search term of a word.
func termOf(word string) string {
	if terms := search.Terms(word); len(terms) == 1 {
		return terms[0]
	}
	return word
}
