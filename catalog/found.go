package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/display"
)

// A Match is one result of a search.
type Match struct {
	Tool  *Tool
	Also  []*Tool // tools of other servers that have the same name, best first
	Score float64 // comparable within one search only
}

// Find returns up to limit results for a query, best first, and how many more tools match;
// see [search.Corpus.Find].
func (v *View) Find(query string, limit int) (found []Match, more int) {
	return v.FindIn("", query, limit)
}

// FindIn is Find among the tools of one server, or of all if it is "". If that server has few
// tools and none matches, all are found, with the score 0.
func (v *View) FindIn(server, query string, limit int) (found []Match, more int) {
	return v.all().find(nil, query, limit, server)
}

// fewTools is the most tools that a search within their server lists if none matches.
const fewTools = 12

// find is [View.FindIn].
func (m *toolset) find(named []string, query string, limit int, server string) (found []Match, more int) {
	matches, more := m.corpus.FindBeside(named, query, limit, server)
	for _, match := range matches {
		x := Match{Tool: m.byName[match.Tool.Name], Score: match.Score}
		for _, t := range match.Also {
			x.Also = append(x.Also, m.byName[t.Name])
		}
		found = append(found, x)
	}
	if len(found) == 0 && server != "" {
		all := slices.DeleteFunc(slices.Clone(m.tools), func(t *Tool) bool { return t.Server != server })
		if len(all) > fewTools {
			return nil, 0
		}
		for _, t := range all[:min(len(all), max(limit, 0))] {
			found = append(found, Match{Tool: t})
		}
	}
	return found, more
}

// A Search is a request for tools.
type Search struct {
	Queries []string // each for one thing
	Server  string   // whose tools are searched; "" for all
	Offset  int      // of the first result, of one query
	Limit   int      // of lines for a query, at most 100; 0 is as many as fit

	Shown func(*Tool) // is called with each tool whose definition is part of the answer; may be nil
}

// Found answers a search: for each query, lines for the best tools and the names of more;
// then the definitions of the best; then servers with unknown tools that may match. No tool
// appears twice. The answer always says how to continue.
func (v Texts) Found(s Search) string {
	var b strings.Builder
	some := v.matches(&b, s)
	if s.Server == "" {
		v.suggest(&b, strings.Join(s.Queries, " "), !some)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// FoundIn answers a search among the tools of a server that was just loaded: how much it
// lists, which tools match, and its instructions. It returns "" for a server without a
// listing.
func (v Texts) FoundIn(server string, queries []string, shown func(*Tool)) string {
	p := v.part(server)
	if p == nil || p.index == nil {
		return ""
	}
	var b strings.Builder
	has := []string{display.Plural(p.info.Tools, "tool")}
	for _, l := range namedLists(v.listOf(p.server.Name)) {
		if n := len(l.entries); n > 0 {
			has = append(has, display.Plural(n, l.what))
		}
	}
	fmt.Fprintf(&b, "%s is loaded, with %s.\n", display.Escape(p.called()), strings.Join(has, ", "))
	v.matches(&b, Search{Queries: queries, Server: server, Shown: shown})
	if own := p.shortInstructions(); own != "" {
		b.WriteString("\nInstructions of this server:\n" + own)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// serversShown is how many servers a search suggests.
const serversShown = 5

// suggest writes the servers without known tools that match the query, best first, and the
// number of the others. If neither a tool nor a server matches, and there are only few such
// servers, it names them all.
func (v Texts) suggest(b *strings.Builder, query string, nothing bool) {
	unknown := slices.DeleteFunc(slices.Clone(v.lazy), func(p *serverView) bool { return p.info.Stored })
	best := search.Rank(query, slices.Concat(unknown, v.eager), func(p *serverView) map[string]float64 { return p.wordCounts() })
	best = best[:min(len(best), serversShown)]
	var fit, eager []*serverView
	for _, p := range best {
		if p.server.Lazy {
			fit = append(fit, p)
		} else {
			eager = append(eager, p)
		}
	}
	if len(best) == 0 && nothing && len(unknown) <= serversShown {
		fit = unknown
	}
	if len(eager) > 0 {
		b.WriteString("\nNot there yet, may have more; discover_tool {\"server\": \"name\"} waits for one:\n")
		for _, p := range eager {
			if p.note() != "" { // it is disabled, or needs a login
				b.WriteString(p.deferred(display.LineWidth))
			} else {
				b.WriteString("- " + p.line(p.intro) + "\n")
			}
		}
	}
	if len(fit) > 0 {
		b.WriteString("\nNo tools known; call load_mcp with the name:\n")
		for _, p := range fit {
			b.WriteString(p.deferred(display.LineWidth))
		}
	}
	if more := len(unknown) - len(fit); more > 0 {
		what := display.Plural(more, "server")
		if len(fit) > 0 {
			what = strings.Replace(what, " ", " more ", 1)
		} else {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "No tools known: %s; discover_tool with no argument lists them.\n", what)
	}
	rest := slices.DeleteFunc(slices.Clone(v.eager), func(p *serverView) bool { return slices.Contains(eager, p) })
	b.WriteString(notListed(rest, "\n"))
}

// countWords counts the terms of a server's intro and of its name; those of the name count
// twice.
func (p *serverView) countWords() map[string]float64 {
	m := map[string]float64{}
	search.Words(p.intro, func(w string) { m[w]++ })
	for _, w := range p.terms {
		m[w] += 2
	}
	return m
}
