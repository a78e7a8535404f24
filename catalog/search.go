package catalog

import (
	"math"
	"slices"
	"strings"
)

// The parameters of BM25F and of what is added to it, measured by TestRetrieval.
// Length discounts texts and arguments almost in full, names hardly.
const (
	saturation = 1.6 // k1
	fromServer = 0.6 // weight of a term in the server's name, for all its tools
	common     = 0.7 // weight of a stop word: it tells little, but breaks ties
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
	q := m.newQuery(query)
	if !q.tells {
		return nil, 0
	}
	fit := make(ranking, 0, len(m.tools))
	for i, p := range m.parts {
		if p.words != nil && (server == "" || p.server.Name == server) {
			fit = q.score(p, i, fit)
		}
	}
	return fit.best(limit)
}

// exactName is more than any sum of terms.
const exactName = 1e6

// longestQuery is how many bytes of a query count; what is longer is a document.
const longestQuery = 4096

// query is what a search knows before it looks at single tools.
type query struct {
	text    string
	terms   []term
	average [fields]float64
	tells   bool // some tool or server has a term of it that is no stop word

	scores, others []float64 // by tool of the server at hand; others is all zero between terms
}

// term is one word of a query.
type term struct {
	word  string
	idf   float64
	hits  [][]posting // by server
	alike []term      // words that mean about the same; where more tools have one it tells less
}

func (m *merged) newQuery(s string) *query {
	s = strings.TrimSpace(strings.ToValidUTF8(s[:min(len(s), longestQuery)], ""))
	q := &query{text: s}
	_, q.tells = m.byName[s] // a name need not have words
	docs := q.averages(m)
	asked := nameWords(s)
	onlyCommon := !slices.ContainsFunc(asked, func(w string) bool { return !stopWords()[w] })
	for _, word := range asked {
		hits, n, known := m.lookUp(word)
		t := term{word: word, idf: idf(n, docs), hits: hits}
		if stopWords()[word] {
			t.idf *= common
		}
		for _, w := range synonyms()[word] {
			if slices.Contains(asked, w) {
				continue
			}
			if hits, n, _ := m.lookUp(w); n > 0 {
				t.alike = append(t.alike, term{word: w, idf: min(t.idf, math.Sqrt(t.idf*idf(n, docs))), hits: hits})
				known = true
			}
		}
		q.terms = append(q.terms, t)
		q.tells = q.tells || known && (onlyCommon || !stopWords()[word])
	}
	return q
}

// idf is how much a word tells that n of so many tools have.
func idf(n, docs float64) float64 { return math.Log(1 + (docs-n+0.5)/(n+0.5)) }

// averages sets the average lengths over all servers and counts their tools.
func (q *query) averages(m *merged) (docs float64) {
	for _, p := range m.parts {
		if p.words != nil {
			words := p.words()
			docs += float64(len(words.length))
			for f, n := range words.total {
				q.average[f] += n
			}
		}
	}
	for f := range q.average {
		q.average[f] = max(q.average[f]/max(docs, 1), 1)
	}
	return docs
}

// lookUp returns where the tools of each server have a word and how many do, and
// tells whether any does or a server's name.
func (m *merged) lookUp(word string) (hits [][]posting, tools float64, known bool) {
	hits = make([][]posting, len(m.parts))
	for i, p := range m.parts {
		if p.words != nil {
			hits[i] = p.words().terms[word]
			tools += float64(len(hits[i]))
			known = known || slices.Contains(p.terms, word)
		}
	}
	return hits, tools, known || tools > 0
}

// score appends the tools of one server, which has this number, that fit.
func (q *query) score(p *part, number int, fit ranking) ranking {
	base := q.rate(p, number)
	first := len(fit)
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
			fit = append(fit, ranked{t, score})
		}
	}
	mean := 0.0
	for _, b := range best {
		mean += b / companions
	}
	for i := range fit[first:] {
		fit[first+i].score += company * mean
	}
	return fit
}

// rate sets the scores of a server's tools by their words, and returns what its
// name is worth to all of them.
func (q *query) rate(p *part, number int) (base float64) {
	length := p.words().length
	q.scores, q.others = zeros(q.scores, len(p.docs)), zeros(q.others, len(p.docs))
	for _, t := range q.terms {
		if slices.Contains(p.terms, t.word) {
			base += fromServer * t.idf
		}
		for _, hit := range t.hits[number] {
			q.scores[hit.doc] += t.idf * q.saturate(hit, length[hit.doc])
		}
		// Of words that mean the same the best one counts.
		for _, w := range t.alike {
			for _, hit := range w.hits[number] {
				s := alike * w.idf * q.saturate(hit, length[hit.doc])
				if more := s - q.others[hit.doc]; more > 0 {
					q.others[hit.doc] = s
					q.scores[hit.doc] += more
				}
			}
		}
		for _, w := range t.alike {
			for _, hit := range w.hits[number] {
				q.others[hit.doc] = 0
			}
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
func (q *query) saturate(hit posting, length [fields]float64) float64 {
	tf := 0.0
	for f, n := range hit.count {
		if n > 0 {
			tf += weight[f] * float64(n) / (1 - shrink[f] + shrink[f]*length[f]/q.average[f])
		}
	}
	return tf / (saturation + tf)
}

// names tells whether the query is a tool's name.
func (q *query) names(t *Tool) bool {
	is := func(name string) bool { return len(name) == len(q.text) && strings.EqualFold(name, q.text) }
	return is(t.Name) || is(t.Upstream) || is(t.Leaf)
}
