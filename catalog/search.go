package catalog

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"dynmcp/internal/wire"
)

// field is a part of a tool that search weighs on its own.
type field int

const (
	inName field = iota
	inText       // title and description
	inArgs       // argument names, their descriptions and values
	fields
)

// The parameters of BM25F, measured by TestRetrieval. Length discounts texts
// and arguments almost in full, names hardly.
const (
	saturation = 1.6 // k1
	fromServer = 0.6 // weight of a term in the server's name, for all its tools
	common     = 0.7 // weight of a stop word: it tells little, but breaks ties
)

var (
	weight = [fields]float64{inName: 2.5, inText: 1, inArgs: 0.75}
	shrink = [fields]float64{inName: 0.2, inText: 0.85, inArgs: 0.85} // b
)

// postings are the inverted index over the tools of one server. Frequencies
// are raw, so that a query can weigh them by the averages of all servers.
type postings struct {
	terms  map[string][]posting
	length [][fields]float64 // by tool
	total  [fields]float64
}

// posting counts a term in one tool.
type posting struct {
	doc   int32
	count [fields]uint16
}

func newPostings(tools []*entry) *postings {
	x := &postings{terms: map[string][]posting{}, length: make([][fields]float64, len(tools))}
	var b breath
	for i, e := range tools {
		b.take()
		x.addText(i, inName, e.name)
		x.addText(i, inText, e.title)
		x.addText(i, inText, e.description)
		x.addSchema(i, e.input, 0)
		for f, n := range x.length[i] {
			x.total[f] += n
		}
	}
	return x
}

func (x *postings) addText(doc int, f field, s string) {
	const enough = 64 << 10 // bytes; ten times the longest text met in real servers
	words(s[:min(len(s), enough)], func(term string) {
		ps := x.terms[term]
		if len(ps) == 0 || ps[len(ps)-1].doc != int32(doc) {
			ps = append(ps, posting{doc: int32(doc)})
			x.terms[strings.Clone(term)] = ps
		}
		if c := &ps[len(ps)-1].count[f]; *c < math.MaxUint16 {
			*c++
		}
		x.length[doc][f]++
	})
}

// addSchema adds the properties of a schema, those of nested objects too, as
// deep as people write them by hand.
func (x *postings) addSchema(doc int, schema json.RawMessage, depth int) {
	if depth > 4 {
		return
	}
	for key, value := range wire.Members(schema) {
		switch name, _ := wire.Text(key); name {
		case "properties":
			for key, property := range wire.Members(value) {
				argument, _ := wire.Text(key)
				x.addText(doc, inArgs, argument)
				x.addArgument(doc, property, depth)
			}
		case "items":
			x.addSchema(doc, value, depth+1)
		}
	}
}

// addArgument adds what one property says, and the values it names: queries
// often hold one of them.
func (x *postings) addArgument(doc int, property json.RawMessage, depth int) {
	for key, value := range wire.Members(property) {
		switch name, _ := wire.Text(key); name {
		case "description":
			s, _ := wire.Text(value)
			x.addText(doc, inArgs, s)
		case "enum", "default":
			x.addText(doc, inArgs, string(value))
		}
	}
	x.addSchema(doc, property, depth+1)
}

// Match is one result of a search.
type Match struct {
	Tool  *Tool
	Score float64 // comparable within one search only
}

// Find returns up to limit tools that fit the query, best first; a tool whose
// name is the query comes before all. A query of which only stop words are
// known fits nothing. The order is the same for the same catalogue.
func (v *View) Find(query string, limit int) []Match {
	q := v.newQuery(query)
	if !q.tells {
		return nil
	}
	var found []Match
	for _, p := range v.all().parts {
		found = q.score(p, found)
	}
	slices.SortFunc(found, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Tool.Name, b.Tool.Name))
	})
	return found[:min(max(limit, 0), len(found))]
}

// exactName is more than any sum of terms.
const exactName = 1e6

// query is what a search knows before it looks at single tools.
type query struct {
	text    string
	terms   []string
	idf     []float64
	average [fields]float64
	tells   bool // some tool or server has a term of it that is no stop word
}

func (v *View) newQuery(s string) *query {
	const longest = 4096 // bytes; what is longer is a document, not a query
	s = strings.TrimSpace(strings.ToValidUTF8(s[:min(len(s), longest)], ""))
	q := &query{text: s, terms: nameWords(s)}
	_, q.tells = v.all().byName[s] // a name need not have words
	docs := q.averages(v)
	onlyCommon := !slices.ContainsFunc(q.terms, func(w string) bool { return !stopWords[w] })
	for _, term := range q.terms {
		n, named := v.frequency(term)
		idf := math.Log(1 + (docs-n+0.5)/(n+0.5))
		if stopWords[term] {
			idf *= common
		}
		q.idf = append(q.idf, idf)
		q.tells = q.tells || (n > 0 || named) && (onlyCommon || !stopWords[term])
	}
	return q
}

// averages sets the average lengths over all servers and counts their tools.
func (q *query) averages(v *View) (docs float64) {
	for _, p := range v.all().parts {
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

// frequency counts the tools that have a term, and tells whether a server has
// it in its name.
func (v *View) frequency(term string) (tools float64, named bool) {
	for _, p := range v.all().parts {
		if p.words != nil {
			tools += float64(len(p.words().terms[term]))
			named = named || slices.Contains(p.terms, term)
		}
	}
	return tools, named
}

// score appends the tools of one server that fit.
func (q *query) score(p *part, found []Match) []Match {
	if p.words == nil {
		return found
	}
	words := p.words()
	scores := make([]float64, len(p.docs))
	base := 0.0
	for i, term := range q.terms {
		if slices.Contains(p.terms, term) {
			base += fromServer * q.idf[i]
		}
		for _, hit := range words.terms[term] {
			scores[hit.doc] += q.idf[i] * q.saturate(hit, words.length[hit.doc])
		}
	}
	for doc, t := range p.docs {
		if t == nil {
			continue
		}
		score := scores[doc] + base
		if q.names(t) {
			score += exactName
		}
		if score > 0 {
			found = append(found, Match{t, score})
		}
	}
	return found
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
	return strings.EqualFold(q.text, t.Name) || strings.EqualFold(q.text, t.Upstream) || strings.EqualFold(q.text, t.Leaf)
}
