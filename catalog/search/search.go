// Package search finds tools by words: BM25 over fields (search.go) of an inverted index
// for each server (index.go), terms of texts (words.go, synonyms.go), and the order of the
// results (ranking.go). Of a tool it knows only the names and the index.
package search

import (
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// The parameters of BM25F and of what is added to it, measured by TestRetrieval.
// Length discounts texts and arguments almost in full, names hardly.
const (
	saturation = 1.6  // k1
	fromServer = 0.6  // weight of a term in the server's name, for all its tools
	fromAbout  = 0.5  // weight of a term in the server's description alone, for all its tools
	nameFirst  = 0.35 // added to the factor of a tool whose name has all words of the query
	common     = 0.5  // weight of a stop word, which breaks ties
	alike      = 0.4  // weight of a synonym
	company    = 0.3  // share of the mean score of its server's best tools that each tool gets
	companions = 3    // number of these best tools
	taken      = 0.5  // factor of arguments for a question: a tool takes them, and gives something else
	together   = 0.3  // share of the best score, for tools of a server that another query of the call names
)

var (
	weight = [fields]float64{inName: 2.5, inText: 1, inArgs: 0.75}
	shrink = [fields]float64{inName: 0.2, inText: 0.85, inArgs: 0.85} // b
)

// A Tool has the names of a tool.
type Tool struct {
	Name     string // exposed: server/tool, or in single-wrap mode the last part alone
	Server   string
	Upstream string   // its name at the upstream
	Leaf     string   // Upstream or its alias: the last part of Name
	Terms    []string // of Leaf
}

// A Server is a server with its tools.
type Server struct {
	Name  string
	Terms []string        // of Name
	Index func() *Index   // over Tools; nil if none can be found
	About func() []string // the terms of its description; nil if it has none
	Tools []*Tool         // nil where one is hidden
}

// has reports whether the server's name or description has a term.
func (s Server) has(term string) bool {
	return slices.Contains(s.Terms, term) || s.isAbout(term)
}

func (s Server) isAbout(term string) bool { return s.About != nil && slices.Contains(s.About(), term) }

// A Corpus is a set of servers to search. It is safe for concurrent use.
type Corpus struct {
	servers []Server
	named   func(name string) bool
	sizes   func() sizes // made when first needed, with the index of each server
}

// NewCorpus returns the corpus of servers. named reports whether some tool has a name.
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

// Find returns up to limit results for a query, best first, and how many more tools match. It
// searches one server unless server is "". Tools that score little beside the best do not
// match. A tool whose name is the query comes first. Tools of one name at several servers are
// one result. If no term of a query but stop words is known, nothing matches, unless the
// query has only stop words. The order is the same for the same corpus.
func (c *Corpus) Find(query string, limit int, server string) (found []Match, more int) {
	return c.FindBeside(nil, query, limit, server)
}

// FindBeside is Find for a query of a call whose queries name these servers, of which it may itself name none.
func (c *Corpus) FindBeside(named []string, query string, limit int, server string) (found []Match, more int) {
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
	if server == "" && !slices.ContainsFunc(c.servers, q.namesServer) {
		q.fit.favour(named)
	}
	q.fit.dropLow()
	return q.fit.best(limit)
}

// Named returns the servers that queries name.
func (c *Corpus) Named(queries []string) (names []string) {
	for _, query := range queries {
		q := searching{asked: Terms(query[:min(len(query), longestQuery)])}
		for _, s := range c.servers {
			if q.namesServer(s) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// Unknown returns the words of a query for one thing, as written, that neither a tool nor a
// server has, nor a synonym of them.
func (c *Corpus) Unknown(query string) (words []string) {
	query = query[:min(len(query), longestQuery)]
	if AsksForSeveral(query) {
		return nil
	}
	for _, word := range strings.FieldsFunc(query, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) }) {
		known := slices.ContainsFunc(Terms(word), func(term string) bool {
			return stopWords()[term] || slices.ContainsFunc(slices.Concat(synonyms()[term], []string{term}), c.has)
		})
		if !known && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// has reports whether a tool or a server has a term.
func (c *Corpus) has(term string) bool {
	hash := hashOf(term)
	return slices.ContainsFunc(c.servers, func(s Server) bool {
		return s.Index != nil && (s.has(term) || s.Index().find(hash) != span{})
	})
}

// exactName is more than any sum of terms.
const exactName = 1e6

// longestQuery is how many bytes of a query are read.
const longestQuery = 4096

// searching is the state of one search. Its memory is reused for the next one.
type searching struct {
	text    string
	asked   []string // the words of the query
	asks    bool     // it begins like a question
	sides   sides
	terms   []term // each word of the query, followed by its synonyms
	spans   []span // of the terms in the first server, then in the second, and so on
	average [fields]float64

	scores, others []float64 // by tool of the current server
	fit            ranking
}

var queries = sync.Pool{New: func() any { return &searching{} }}

func (q *searching) done() {
	clear(q.fit[:cap(q.fit)]) // keep no tools alive, including those that were popped
	queries.Put(q)
}

// term is one word to search.
type term struct {
	word  string
	worth float64
	alike bool // a synonym of a word in the query
}

// ask reads the query. It reports whether some tool or server has a term of it that is not a
// stop word, or its name.
func (q *searching) ask(c *Corpus, s string) (tells bool) {
	sizes := c.sizes()
	q.text = strings.TrimSpace(strings.ToValidUTF8(s[:min(len(s), longestQuery)], ""))
	q.average, q.terms, q.fit = sizes.average, q.terms[:0], q.fit[:0]
	asked := Terms(q.text)
	q.asked, q.sides, q.asks = asked, takeSides(asked), len(asked) > 0 && isAsking(asked[0])
	for _, word := range asked {
		q.terms = append(q.terms, term{word: word})
		also := related(word)
		if q.asks && isAsking(word) || word == "now" {
			also = append(also, "current")
		}
		for _, w := range also {
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

	tells = c.named(q.text) // a name may have no words
	onlyCommon := !slices.ContainsFunc(asked, func(w string) bool { return !stopWords()[w] })
	idfOfAsked, stop := 0.0, false
	for i := range q.terms {
		t := &q.terms[i]
		t.worth = idf(have[i], sizes.tools)
		if t.alike { // the more tools have it, the less it weighs
			t.worth = alike * min(idfOfAsked, math.Sqrt(idfOfAsked*t.worth))
		} else {
			if stop = stopWords()[t.word]; stop {
				t.worth *= common
			}
			idfOfAsked = t.worth
		}
		known := have[i] > 0 || !t.alike && slices.ContainsFunc(c.servers, func(s Server) bool { return s.Index != nil && s.has(t.word) })
		tells = tells || known && (onlyCommon || !stop)
	}
	return tells
}

// lookUp finds the terms in the index of each server, and returns how many tools have each.
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

// idf is the inverse document frequency of a term that n tools have.
func idf(n, tools float64) float64 { return math.Log(1 + (tools-n+0.5)/(n+0.5)) }

// sizes are the number of tools that can be searched, and their average lengths.
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

// score adds the matching tools of one server.
func (q *searching) score(s Server, spans []span) {
	base := q.rate(s, spans)
	first := len(q.fit)
	var best [companions]float64
	for doc, t := range s.Tools {
		if t == nil {
			continue
		}
		score := q.scores[doc] + base
		score *= 1 + nameFirst*q.nameShare(s, t)
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

// rate scores a server's tools by their terms. It returns the score of the server's name
// and description, which is for all of them.
func (q *searching) rate(server Server, spans []span) (base float64) {
	x := server.Index()
	ofName, isNamed := fromServer, q.namesServer(server)
	if isNamed {
		ofName += named
	}
	q.scores, q.others = zeros(q.scores, len(server.Tools)), zeros(q.others, len(server.Tools))
	for i, t := range q.terms {
		if !t.alike {
			clear(q.others)
			switch {
			case slices.Contains(server.Terms, t.word):
				base += ofName * t.worth
			case server.isAbout(t.word):
				base += fromAbout * t.worth
			}
		}
		if isNamed && slices.Contains(server.Terms, t.word) {
			continue // it is for all of them, not for those that say it
		}
		for _, hit := range x.list[spans[i].start:spans[i].end] {
			s := t.worth * q.saturate(hit, x.length[hit.doc])
			if t.alike { // of the synonyms of a word the best counts
				s, q.others[hit.doc] = max(s-q.others[hit.doc], 0), max(s, q.others[hit.doc])
			}
			q.scores[hit.doc] += s
		}
	}
	return base
}

// nameShare returns the share of the words of a query for one thing that a tool's name has, by
// their worth. Stop words and words of the server's name do not count. By it the tool itself
// comes before those whose texts mention it.
func (q *searching) nameShare(s Server, t *Tool) float64 {
	if len(q.asked) > oneThing {
		return 0
	}
	has, all := 0.0, 0.0
	for _, w := range q.terms {
		if w.alike || stopWords()[w.word] || slices.Contains(s.Terms, w.word) {
			continue
		}
		all += w.worth
		if slices.Contains(t.Terms, w.word) {
			has += w.worth
		}
	}
	return has / max(all, 1e-9)
}

// zeros returns n zeros, in s if it has room.
func zeros(s []float64, n int) []float64 {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// saturate is the weighted count of a term in one tool, from 0 to 1.
func (q *searching) saturate(hit posting, length [fields]uint16) float64 {
	tf := 0.0
	for f, n := range hit.count {
		if n == 0 {
			continue
		}
		w := weight[f]
		if q.asks && field(f) == inArgs {
			w *= taken
		}
		tf += w * float64(n) / (1 - shrink[f] + shrink[f]*float64(length[f])/q.average[f])
	}
	return tf / (saturation + tf)
}

// names reports whether the query is a tool's name.
func (q *searching) names(t *Tool) bool {
	is := func(name string) bool { return len(name) == len(q.text) && strings.EqualFold(name, q.text) }
	return is(t.Name) || is(t.Upstream) || is(t.Leaf)
}
