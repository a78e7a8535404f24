package catalog

import (
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/tokens"
)

// Limits of the answer to a search.
const (
	foundWidth = 64 // UTF-16 units of what a tool does
	lineTokens = 40 // of all lines on average, by estimate
	alsoShown  = 3  // tools of the same name

	linesShown  = 5   // for a query
	linesOfLong = 10  // for a query that asks for several things
	linesOfAll  = 25  // for all queries
	minLines    = 3   // for a query
	namesRanked = 35  // results of a query that are named, with a line or without
	namesTokens = 100 // of the names without a line

	worthAName = 0.7 // share of the best score that a name needs, for a query that asks for one thing

	definedFor = 3    // results of a query whose definitions are shown
	nearly     = 0.85 // share of the best score that the second and the third need
	cheap      = 400  // tokens that all definitions with these must not exceed
	cheapMore  = 150  // as many more for each query after the first
	wholeInput = 200  // tokens up to which the input schema of the best is whole
	bareInput  = 250  // tokens up to which it has the whole schemas of optional arguments
	manyMore   = 50   // more results are not counted exactly
)

// forUse is above the definitions.
const forUse = `For use_tool; {"tool_name": "name"} shows what is left out here:`

// results is the answer to a search while it is written.
type results struct {
	v        Texts
	search   Search
	queries  []queryResults
	listed   map[*Tool]bool // has a line
	defined  map[*Tool]bool
	texts    []string // the definitions
	definedN int      // their tokens
}

// queryResults are the results of one query.
type queryResults struct {
	query string
	found []Match // from the offset on
	more  int     // matches beside found
	lines int     // number of found that have a line
	least float64 // score that a name without a line needs
}

// matches writes the tools that are found, and reports whether there are any.
func (v Texts) matches(b *strings.Builder, s Search) bool {
	r := &results{v: v, search: s, listed: map[*Tool]bool{}, defined: map[*Tool]bool{}}
	some := false
	named := v.all().corpus.Named(s.Queries)
	for _, query := range s.Queries {
		q, any := r.find(named, query)
		r.queries = append(r.queries, q)
		some = some || any
	}
	if s.Offset <= 0 {
		r.define()
	}
	for _, q := range r.queries {
		r.writeQuery(b, q)
	}
	r.writeNames(b)
	if len(r.texts) > 0 {
		b.WriteString("\n" + r.v.useTools(forUse) + "\n" + strings.Join(r.texts, "\n\n") + "\n")
	}
	return some
}

// find runs one query, and reports whether anything matches, at any offset.
func (r *results) find(named []string, query string) (q queryResults, any bool) {
	limit, offset := r.limit(), max(r.search.Offset, 0)
	found, more := r.v.all().find(named, query, min(offset, 1<<20)+max(limit, namesRanked), r.search.Server)
	any = len(found) > 0
	found = found[min(offset, len(found)):]
	if any && len(found) > 0 && found[0].Score == 0 { // all tools of a server with few
		limit = max(limit, len(found))
	}
	q = queryResults{query: query, found: found, more: more}
	if r.search.Limit == 0 && (offset > 0 || search.AsksForSeveral(query)) {
		limit = max(limit, linesOfLong/len(r.search.Queries))
	}
	q.lines = min(limit, len(found))
	if len(found) > 0 && !search.AsksForSeveral(query) {
		q.least = worthAName * found[0].Score
	}
	return q, any
}

// limit is how many lines a query may have.
func (r *results) limit() int {
	if r.search.Limit > 0 {
		return min(r.search.Limit, pageTools)
	}
	return min(linesShown, max(linesOfAll/max(len(r.search.Queries), 1), minLines))
}

// define renders definitions: that of the best tool of each query, then those of tools that
// score nearly as much, if they are short.
func (r *results) define() {
	for place := range definedFor {
		for _, q := range r.queries {
			if place < len(q.found) && q.found[0].Score > 0 && (place == 0 || q.found[place].Score >= nearly*q.found[0].Score) {
				r.defineTool(q.found[place].Tool, place == 0)
			}
		}
	}
}

func (r *results) defineTool(t *Tool, best bool) {
	if r.defined[t] {
		return
	}
	input, words := t.bareInput(), secondTokens
	if best {
		words = descriptionTokens
	}
	if plain := t.plainInput(); best && tokens.Count(string(plain)) <= wholeInput {
		input = plain
	}
	if tokens.Count(string(input)) > bareInput {
		input = t.sketchedInput()
	}
	write := func() (text string, n int, fits bool) {
		text = t.shortDefinition(r.v.UseTool(t.Access), max(shortTokens-r.definedN, minTokens), words, input)
		n = tokens.Count(text)
		return text, n, best || r.definedN+n <= cheap+cheapMore*(len(r.queries)-1)
	}
	text, n, fits := write()
	if !fits {
		input = t.sketchedInput()
		text, n, fits = write()
	}
	if !fits {
		return
	}
	r.definedN += n
	r.defined[t] = true
	r.texts = append(r.texts, text)
	if r.search.Shown != nil {
		r.search.Shown(t)
	}
}

// writeQuery writes the results of one query.
func (r *results) writeQuery(b *strings.Builder, q queryResults) {
	s := r.search
	if len(r.queries) > 1 {
		fmt.Fprintf(b, "For %s:\n", display.Escape(display.Name(q.query)))
	}
	switch {
	case len(q.found) > 0 && q.found[0].Score == 0:
		fmt.Fprintf(b, "No tool of %s matches %s. It has:\n%s", display.Escape(s.Server), display.Escape(display.Name(q.query)), r.lines(q.found))
	case len(q.found) > 0:
		b.WriteString(r.lines(q.found[:q.lines]))
		if words := r.v.all().corpus.Unknown(q.query); len(words) > 0 {
			fmt.Fprintf(b, "No tool has: %s\n", display.Escape(display.Cut(strings.Join(words, ", "), foundWidth)))
		}
	case s.Offset > 0:
		fmt.Fprintf(b, "Nothing from %d on.\n", s.Offset)
	case s.Server != "" && r.v.single() == nil:
		fmt.Fprintf(b, "No tool of %s matches %s. discover_tool {\"server\": %s} lists all it has.\n", display.Escape(s.Server), display.Escape(display.Name(q.query)), display.Quote(s.Server))
	default:
		fmt.Fprintf(b, "No tool matches %s. discover_tool with no argument lists all.\n", display.Escape(display.Name(q.query)))
	}
}

// lines returns a line for each result. Lines are shorter if the text takes many tokens, as
// in some scripts. A tool that is defined below is named without its summary. A tool with a
// line above gets another only as the best of its query.
func (r *results) lines(found []Match) (text string) {
	widths := []int{foundWidth, foundWidth / 2, 0}
	for i, width := range widths {
		var b strings.Builder
		for place, m := range found {
			switch {
			case r.listed[m.Tool] && place == 0:
				b.WriteString(m.Tool.line(0) + " (above)\n")
			case r.listed[m.Tool]:
			case r.defined[m.Tool] && m.Tool.Summary == display.FirstLine(m.Tool.Description): // the definition says it
				b.WriteString(m.Tool.line(0) + " (below)" + m.also() + "\n")
			default:
				b.WriteString(m.Tool.line(width) + m.also() + "\n")
			}
		}
		if text = b.String(); i == len(widths)-1 || tokens.Count(text) <= lineTokens*len(found) {
			break
		}
	}
	for _, m := range found {
		r.listed[m.Tool] = true
	}
	return text
}

// also names the tools of other servers that have the same name.
func (m *Match) also() string {
	if len(m.Also) == 0 {
		return ""
	}
	s := " (also " + display.Escape(joinNames(m.Also, alsoShown))
	if more := len(m.Also) - alsoShown; more > 0 {
		s += fmt.Sprintf(", and %d more", more)
	}
	return s + ")"
}

// writeNames writes the names of results without a line, by server, the best of all queries
// first, and how to continue.
func (r *results) writeNames(b *strings.Builder) {
	var servers []string
	leaves := map[string][]string{}
	named, room := make([]int, len(r.queries)), namesTokens-20 // the introduction takes 20
	for place := range namesRanked {
		for i, q := range r.queries {
			at := q.lines + place
			if at >= len(q.found) || r.search.Limit > 0 || r.search.Offset > 0 || q.found[at].Score < q.least {
				continue
			}
			t := q.found[at].Tool
			cost := tokens.Count(t.Leaf) + 1
			if leaves[t.Server] == nil {
				cost += tokens.Count(t.Server) + 2
			}
			if room -= cost; room < 0 {
				break
			}
			named[i]++
			if r.listed[t] {
				continue
			}
			r.listed[t] = true
			if leaves[t.Server] == nil {
				servers = append(servers, t.Server)
			}
			leaves[t.Server] = append(leaves[t.Server], display.Escape(t.Leaf))
		}
	}
	r.writeServers(b, servers, leaves)
	if len(r.queries) == 1 {
		r.writeRest(b, r.queries[0], named[0])
	}
}

func (r *results) writeServers(b *strings.Builder, servers []string, leaves map[string][]string) {
	switch {
	case len(servers) == 0:
	case r.v.single() != nil:
		b.WriteString("More: " + strings.Join(leaves[servers[0]], ", ") + "\n")
	default:
		var groups []string
		for _, s := range servers {
			groups = append(groups, display.Escape(s)+": "+strings.Join(leaves[s], ", "))
		}
		b.WriteString("More, by server: " + strings.Join(groups, "; ") + "\n")
	}
}

// writeRest writes how many more tools match a query, and how to see them.
func (r *results) writeRest(b *strings.Builder, q queryResults, named int) {
	shown := q.lines + named
	more := q.more
	for _, m := range q.found[min(shown, len(q.found)):] {
		more += 1 + len(m.Also)
	}
	if more == 0 {
		return
	}
	count := fmt.Sprintf("%d more match", more)
	if more > manyMore {
		count = "Many more match"
	}
	how := fmt.Sprintf(`"offset": %d`, max(r.search.Offset, 0)+shown)
	if r.search.Server != "" { // load_mcp has no offset
		how = fmt.Sprintf(`discover_tool with this query, "server": %s and %s`, display.Quote(r.search.Server), how)
	}
	fmt.Fprintf(b, "%s: %s goes on.\n", count, how)
}
