package catalog

import (
	"encoding/json"
	"math"
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
