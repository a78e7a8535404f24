package search

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/internal/pace"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// field is a part of a tool with its own weight in searches.
type field int

const (
	inName field = iota
	inText       // title and description
	inArgs       // argument names, their descriptions and values
	fields
)

// An Index is the inverted index over the tools of one server, in a few large pieces of
// memory. Terms are hashes of 64 bits: a collision, likely only among billions of terms,
// ranks a tool wrong and does no other harm. Frequencies are raw, so that a query can weigh
// them by the averages of all servers.
type Index struct {
	terms []uint64  // hashes, sorted
	ends  []uint32  // by term: where its postings end in list
	list  []posting // by term, then by tool

	length [][fields]uint16 // by tool
	total  [fields]float64
}

// posting counts a term in one tool.
type posting struct {
	doc   uint32
	count [fields]uint8
}

var hashSeed = maphash.MakeSeed()

func hashOf(term string) uint64 { return maphash.String(hashSeed, term) }

// span says where the postings of one term are in the list.
type span struct{ start, end uint32 }

// find returns where the postings of a term are, given its hash.
func (x *Index) find(hash uint64) span {
	i, found := slices.BinarySearch(x.terms, hash)
	switch {
	case !found:
		return span{}
	case i == 0:
		return span{0, x.ends[0]}
	}
	return span{x.ends[i-1], x.ends[i]}
}

// An indexer makes an Index. Its memory is reused for the next server.
type indexer struct {
	x        *Index
	hashes   map[string]uint64 // by piece of text as written
	numbers  map[uint64]uint32 // hash of a term → its number, in order of appearance
	last     []uint32          // by number: the length of postings after its last posting
	postings []posting         // in the order of tools
	terms    []uint32          // by index of postings: the number of its term
}

var indexers = sync.Pool{New: func() any {
	return &indexer{hashes: map[string]uint64{}, numbers: map[uint64]uint32{}}
}}

// A Doc has the searched texts of a tool.
type Doc struct {
	Name, Title, Description string
	Input                    json.RawMessage // its input schema
}

// NewIndex returns the index of n tools; doc returns the tool of an index.
func NewIndex(n int, doc func(i int) Doc) *Index {
	in := indexers.Get().(*indexer)
	defer indexers.Put(in)
	x := &Index{length: make([][fields]uint16, n)}
	in.reset(x)
	var pacer pace.Pacer
	for i := range n {
		pacer.Step()
		d := doc(i)
		in.addText(i, inName, d.Name)
		in.addText(i, inText, d.Title)
		in.addText(i, inText, d.Description)
		in.addSchema(i, d.Input, 0)
		for f, n := range x.length[i] {
			x.total[f] += float64(n)
		}
	}
	in.sort()
	in.x = nil
	return x
}

// reset prepares in for the Index x. It keeps the hashes of earlier pieces, unless there are
// too many.
func (in *indexer) reset(x *Index) {
	const worthKeeping = 1 << 14
	if len(in.hashes) > worthKeeping {
		clear(in.hashes)
	}
	clear(in.numbers)
	in.x, in.last, in.postings, in.terms = x, in.last[:0], in.postings[:0], in.terms[:0]
}

func (in *indexer) addText(doc int, f field, s string) {
	const enough = 64 << 10 // bytes; ten times the longest text met in real servers
	pieces(s[:min(len(s), enough)], func(piece string) {
		hash, known := in.hashes[piece]
		if !known {
			hash = hashOf(stem(strings.ToLower(piece)))
			in.hashes[strings.Clone(piece)] = hash
		}
		term, known := in.numbers[hash]
		if !known {
			term = uint32(len(in.last))
			in.numbers[hash] = term
			in.last = append(in.last, 0)
		}
		at := in.last[term]
		if at == 0 || in.postings[at-1].doc != uint32(doc) {
			in.postings = append(in.postings, posting{doc: uint32(doc)})
			in.terms = append(in.terms, term)
			at = uint32(len(in.postings))
			in.last[term] = at
		}
		if c := &in.postings[at-1].count[f]; *c < math.MaxUint8 {
			*c++
		}
		if n := &in.x.length[doc][f]; *n < math.MaxUint16 {
			*n++
		}
	})
}

// sort puts the postings into the Index, by term.
func (in *indexer) sort() {
	x := in.x
	x.terms = slices.AppendSeq(make([]uint64, 0, len(in.numbers)), maps.Keys(in.numbers))
	slices.Sort(x.terms)
	x.ends = make([]uint32, len(x.terms))
	place := in.last // by number: the index of the term among the sorted ones
	for i, hash := range x.terms {
		place[in.numbers[hash]] = uint32(i)
	}
	for _, term := range in.terms {
		x.ends[place[term]]++
	}
	start := uint32(0)
	for i, n := range x.ends { // until the next loop, where they start
		x.ends[i], start = start, start+n
	}
	x.list = make([]posting, len(in.postings))
	for i, term := range in.terms {
		at := &x.ends[place[term]]
		x.list[*at] = in.postings[i]
		*at++
	}
}

// addSchema adds the properties of a schema, those of nested objects too, as
// deep as people write them by hand.
func (in *indexer) addSchema(doc int, schema json.RawMessage, depth int) {
	if depth > 4 {
		return
	}
	for key, value := range wire.Members(schema) {
		switch {
		case wire.EqualString(key, "properties"):
			for key, property := range wire.Members(value) {
				argument, _ := wire.Text(key)
				in.addText(doc, inArgs, argument)
				in.addArgument(doc, property, depth)
			}
		case wire.EqualString(key, "items"):
			in.addSchema(doc, value, depth+1)
		}
	}
}

// addArgument adds the description of a property and its values, which queries often contain.
func (in *indexer) addArgument(doc int, property json.RawMessage, depth int) {
	for key, value := range wire.Members(property) {
		switch {
		case wire.EqualString(key, "description"):
			s, _ := wire.Text(value)
			in.addText(doc, inArgs, s)
		case wire.EqualString(key, "enum"), wire.EqualString(key, "default"):
			in.addText(doc, inArgs, string(value))
		}
	}
	in.addSchema(doc, property, depth+1)
}
