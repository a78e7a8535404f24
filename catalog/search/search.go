// Package search finds tools by words: BM25 over fields (search.go) of an inverted index
// for each server (index.go), of terms that words.go and synonyms.go make of texts, and the
// order of what is found (ranking.go). It knows of a tool its names and the texts in its
// index.
package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
)

// The parameters of BM25F and of what is added to it, measured by TestRetrieval.
// Length discounts texts and arguments almost in full, names hardly.
const (
	saturation = 1.6 // k1
	fromServer = 0.6 // weight of a term in the server's name, for all its tools
	common     = 0.5 // weight of a stop word: it tells little, but breaks ties
	alike      = 0.4 // weight of a word that means about the same as one of the query
	company    = 0.3 // what each tool gets of the mean score of its server's best
	companions = 3   // how many of these that is the mean of
)

var (
	weight = [fields]float64{inName: 2.5, inText: 1, inArgs: 0.75}
	shrink = [fields]float64{inName: 0.2, inText: 0.85, inArgs: 0.85} // b
)

// A Tool is what searches know of a tool beside its index.
type Tool struct {
	Name     string // exposed: server/tool, or in single-wrap mode the last part alone
	Server   string
	Upstream string   // its name at the upstream
	Leaf     string   // Upstream or its alias: the last part of Name
	Terms    []string // of Leaf
}

// A Server is tools that are found together.
type Server struct {
	Name  string
	Terms []string      // of Name
	Index func() *Index // over Tools; nil: none of them can be found
	Tools []*Tool       // nil where one is hidden
}

// A Corpus is what can be searched. It is safe for concurrent use.
type Corpus struct {
	servers []Server
	named   func(name string) bool
	sizes   func() sizes // counted when first needed, which makes the index of each server
}

// NewCorpus returns the corpus of servers. named reports whether a tool has a name.
func NewCorpus(servers []Server, named func(string) bool) *Corpus {
	c := &Corpus{servers: servers, named: named}
	c.sizes = sync.OnceValue(c.countSizes)
	return c
}

// A Match is one result of a search.
type Match struct {
	Tool  *Tool
	Also  []*Tool // tools of other servers that have the same name, best first
	Score float64 // comparable within one search only
}

// Find returns up to limit results that fit the query, best first, and says how
// many tools fit besides, among the tools of one server unless that is "". What scores
// little beside the best does not fit. A tool whose name is the query comes before all;
// tools of several servers that have one name are one result. A query of which only stop words are known fits nothing. The order is the
// same for the same corpus.
func (c *Corpus) Find(query string, limit int, server string) (found []Match, more int) {
	q := queries.Get().(*searching)
	defer q.done()
	if !q.ask(c, query) {
		return nil, 0
	}
	for i, s := range c.servers {
		if s.Index != nil && (server == "" || s.Name == server) {
			q.score(s, q.spans[i*len(q.terms):][:len(q.terms)])
		}
	}
	q.fit.dropLow()
	return q.fit.best(limit)
}

// exactName is more than any sum of terms.
const exactName = 1e6

// longestQuery is how many bytes of a query count; what is longer is a document.
const longestQuery = 4096

// searching is one search under way. Its memory is used for the next one.
type searching struct {
	text    string
	asked   []string // the words of the query
	sides   sides
	terms   []term // a word of the query, then those that mean about the same, then the next
	spans   []span // of the terms: those of the first server, then those of the second
	average [fields]float64

	scores, others []float64 // by tool of the server at hand
	fit            ranking
}

var queries = sync.Pool{New: func() any { return &searching{} }}

func (q *searching) done() {
	clear(q.fit[:cap(q.fit)]) // which keeps no tools, those that were taken out neither
	queries.Put(q)
}

// term is one word that is looked for.
type term struct {
	word  string
	worth float64
	alike bool // it is not in the query
}

// ask reads the query, and reports whether some tool or server has a term of it that
// is no stop word, or its name.
func (q *searching) ask(c *Corpus, s string) (tells bool) {
	sizes := c.sizes()
	q.text = strings.TrimSpace(strings.ToValidUTF8(s[:min(len(s), longestQuery)], ""))
	q.average, q.terms, q.fit = sizes.average, q.terms[:0], q.fit[:0]
	asked := Terms(q.text)
	q.asked, q.sides = asked, takeSides(asked)
	for _, word := range asked {
		q.terms = append(q.terms, term{word: word})
		for _, w := range synonyms()[word] {
			if !slices.Contains(asked, w) {
				q.terms = append(q.terms, term{word: w, alike: true})
			}
		}
	}
	if len(asked) <= oneThing {
		for _, w := range compounds(q.text) {
			q.terms = append(q.terms, term{word: w})
		}
	}
	have := q.lookUp(c)

	tells = c.named(q.text) // a name need not have words
	onlyCommon := !slices.ContainsFunc(asked, func(w string) bool { return !stopWords()[w] })
	idfOfAsked, stop := 0.0, false
	for i := range q.terms {
		t := &q.terms[i]
		t.worth = idf(have[i], sizes.tools)
		if t.alike { // where more tools have it, it tells less
			t.worth = alike * min(idfOfAsked, math.Sqrt(idfOfAsked*t.worth))
		} else {
			if stop = stopWords()[t.word]; stop {
				t.worth *= common
			}
			idfOfAsked = t.worth
		}
		known := have[i] > 0 || !t.alike && slices.ContainsFunc(c.servers, func(s Server) bool { return s.Index != nil && slices.Contains(s.Terms, t.word) })
		tells = tells || known && (onlyCommon || !stop)
	}
	return tells
}

// lookUp sets where the tools of each server have the terms, and returns how many
// tools have each.
func (q *searching) lookUp(c *Corpus) (have []float64) {
	hashes := make([]uint64, len(q.terms))
	for i, t := range q.terms {
		hashes[i] = hashOf(t.word)
	}
	have = make([]float64, len(q.terms))
	q.spans = q.spans[:0]
	for _, s := range c.servers {
		for i, hash := range hashes {
			var at span
			if s.Index != nil {
				at = s.Index().find(hash)
			}
			q.spans = append(q.spans, at)
			have[i] += float64(at.end - at.start)
		}
	}
	return have
}

// idf is how much a word tells that n of so many tools have.
func idf(n, tools float64) float64 { return math.Log(1 + (tools-n+0.5)/(n+0.5)) }

// sizes are how many tools there are that can be searched, and how long they are on
// average.
type sizes struct {
	tools   float64
	average [fields]float64
}

func (c *Corpus) countSizes() (s sizes) {
	for _, server := range c.servers {
		if server.Index != nil {
			x := server.Index()
			s.tools += float64(len(x.length))
			for f, n := range x.total {
				s.average[f] += n
			}
		}
	}
	for f := range s.average {
		s.average[f] = max(s.average[f]/max(s.tools, 1), 1)
	}
	return s
}

// score adds the tools of one server that fit.
func (q *searching) score(s Server, spans []span) {
	base := q.rate(s, spans)
	first := len(q.fit)
	var best [companions]float64
	for doc, t := range s.Tools {
		if t == nil {
			continue
		}
		score := q.scores[doc] + base
		if q.sides.oppose(t) {
			score *= opposite
		}
		if score > 0 {
			for i, b := range best { // keep the best, in order
				if score > b {
					copy(best[i+1:], best[i:])
					best[i] = score
					break
				}
			}
		}
		if q.names(t) {
			score += exactName
		}
		if score > 0 {
			q.fit = append(q.fit, ranked{t, score})
		}
	}
	mean := 0.0
	for _, b := range best {
		mean += b / companions
	}
	for i := range q.fit[first:] {
		q.fit[first+i].score += company * mean
	}
}

// rate sets the scores of a server's tools by their words, and returns what its
// name is worth to all of them.
func (q *searching) rate(server Server, spans []span) (base float64) {
	x := server.Index()
	ofName := fromServer
	if q.namesServer(server) {
		ofName += named
	}
	q.scores, q.others = zeros(q.scores, len(server.Tools)), zeros(q.others, len(server.Tools))
	for i, t := range q.terms {
		if !t.alike {
			clear(q.others)
			if slices.Contains(server.Terms, t.word) {
				base += ofName * t.worth
			}
		}
		for _, hit := range x.list[spans[i].start:spans[i].end] {
			s := t.worth * q.saturate(hit, x.length[hit.doc])
			if t.alike { // of words that mean the same the best one counts
				s, q.others[hit.doc] = max(s-q.others[hit.doc], 0), max(s, q.others[hit.doc])
			}
			q.scores[hit.doc] += s
		}
	}
	return base
}

// zeros returns n zeros, in s if there is room.
func zeros(s []float64, n int) []float64 {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// saturate is the weighted count of a term in one tool, from 0 to 1.
func (q *searching) saturate(hit posting, length [fields]uint16) float64 {
	tf := 0.0
	for f, n := range hit.count {
		if n > 0 {
			tf += weight[f] * float64(n) / (1 - shrink[f] + shrink[f]*float64(length[f])/q.average[f])
		}
	}
	return tf / (saturation + tf)
}

// names tells whether the query is a tool's name.
func (q *searching) names(t *Tool) bool {
	is := func(name string) bool { return len(name) == len(q.text) && strings.EqualFold(name, q.text) }
	return is(t.Name) || is(t.Upstream) || is(t.Leaf)
}

// Rank returns those of some things whose texts have a word of the query, or one that
// means about the same, best first by BM25. says counts the terms of the text of one.
func Rank[T comparable](query string, all []T, says func(T) map[string]float64) []T {
	average, has := 0.0, map[string]float64{}
	for _, x := range all {
		for w := range says(x) {
			has[w]++
		}
		average += float64(len(says(x))) / float64(len(all))
	}
	scores := map[T]float64{}
	var fit []T
	for _, x := range all {
		counts := says(x)
		norm := 1.2 * (0.25 + 0.75*float64(len(counts))/max(average, 1))
		worth := func(w string) float64 {
			n := counts[w]
			return idf(has[w], float64(len(all))) * n / (norm + n)
		}
		for _, w := range Terms(query[:min(len(query), longestQuery)]) {
			if stopWords()[w] {
				continue
			}
			best := 0.0
			for _, other := range synonyms()[w] {
				best = max(best, alike*worth(other))
			}
			scores[x] += max(worth(w), best)
		}
		if scores[x] > 0 {
			fit = append(fit, x)
		}
	}
	slices.SortStableFunc(fit, func(a, b T) int { return cmp.Compare(scores[b], scores[a]) })
	return fit
}
