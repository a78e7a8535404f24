package catalog

import (
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

// Match is one result of a search.
type Match struct {
	Tool  *Tool
	Also  []*Tool // tools of other servers that have the same name, best first
	Score float64 // comparable within one search only
}

// Find returns up to limit results that fit the query, best first, and says how
// many tools fit besides. A tool whose name is the query comes before all; tools
// of several servers that have one name are one result. A query of which only
// stop words are known fits nothing. The order is the same for the same catalogue.
func (v *View) Find(query string, limit int) (found []Match, more int) {
	return v.all().find(query, limit, "")
}

// find is Find, among the tools of one server unless that is "".
func (m *merged) find(query string, limit int, server string) (found []Match, more int) {
	q := queries.Get().(*searching)
	defer q.done()
	if !q.ask(m, query) {
		return nil, 0
	}
	for i, p := range m.parts {
		if p.words != nil && (server == "" || p.server.Name == server) {
			q.score(p, q.spans[i*len(q.terms):][:len(q.terms)])
		}
	}
	return q.fit.best(limit)
}

// exactName is more than any sum of terms.
const exactName = 1e6

// longestQuery is how many bytes of a query count; what is longer is a document.
const longestQuery = 4096

// searching is one search under way. Its memory is used for the next one.
type searching struct {
	text    string
	terms   []term // a word of the query, then those that mean about the same, then the next
	spans   []span // of the terms: those of the first server, then those of the second
	average [fields]float64

	scores, others []float64 // by tool of the server at hand
	fit            ranking
}

var queries = sync.Pool{New: func() any { return &searching{} }}

func (q *searching) done() {
	clear(q.fit) // which keeps no tools
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
func (q *searching) ask(m *merged, s string) (tells bool) {
	sizes := m.sizes()
	q.text = strings.TrimSpace(strings.ToValidUTF8(s[:min(len(s), longestQuery)], ""))
	q.average, q.terms, q.fit = sizes.average, q.terms[:0], q.fit[:0]
	asked := nameWords(q.text)
	for _, word := range asked {
		q.terms = append(q.terms, term{word: word})
		for _, w := range synonyms()[word] {
			if !slices.Contains(asked, w) {
				q.terms = append(q.terms, term{word: w, alike: true})
			}
		}
	}
	have := q.lookUp(m)

	_, tells = m.byName[q.text] // a name need not have words
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
		known := have[i] > 0 || !t.alike && slices.ContainsFunc(m.parts, func(p *part) bool { return p.words != nil && slices.Contains(p.terms, t.word) })
		tells = tells || known && (onlyCommon || !stop)
	}
	return tells
}

// lookUp sets where the tools of each server have the terms, and returns how many
// tools have each.
func (q *searching) lookUp(m *merged) (have []float64) {
	hashes := make([]uint64, len(q.terms))
	for i, t := range q.terms {
		hashes[i] = hashOf(t.word)
	}
	have = make([]float64, len(q.terms))
	q.spans = q.spans[:0]
	for _, p := range m.parts {
		for i, hash := range hashes {
			var at span
			if p.words != nil {
				at = p.words().find(hash)
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

func (m *merged) countSizes() (s sizes) {
	for _, p := range m.parts {
		if p.words != nil {
			words := p.words()
			s.tools += float64(len(words.length))
			for f, n := range words.total {
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
func (q *searching) score(p *part, spans []span) {
	base := q.rate(p, spans)
	first := len(q.fit)
	var best [companions]float64
	for doc, t := range p.docs {
		if t == nil {
			continue
		}
		score := q.scores[doc] + base
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
func (q *searching) rate(p *part, spans []span) (base float64) {
	x := p.words()
	q.scores, q.others = zeros(q.scores, len(p.docs)), zeros(q.others, len(p.docs))
	for i, t := range q.terms {
		if !t.alike {
			clear(q.others)
			if slices.Contains(p.terms, t.word) {
				base += fromServer * t.worth
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
