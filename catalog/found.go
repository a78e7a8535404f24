package catalog

import (
	"fmt"
	"strings"
)

// Found answers a search: the best tools, and the servers not loaded yet that
// may have others. It shows up to limit tools, 0 meaning 10, and always says how
// to go on.
func (v *View) Found(query string, limit int) string {
	if limit <= 0 {
		limit = 10
	}
	found, more := v.Find(query, min(limit, pageTools))
	var text strings.Builder
	for _, m := range found {
		text.WriteString(m.Tool.line(lineWidth) + m.also() + "\n")
	}
	if len(found) == 0 {
		fmt.Fprintf(&text, "No tool matches %s. discover_tool with no argument lists all.\n", escape(shown(query)))
	}
	if more > 0 && len(found) < pageTools {
		fmt.Fprintf(&text, "%d more have a word of it: a larger \"limit\" shows them.\n", more)
	}
	for i, p := range v.candidates(query, len(found) == 0) {
		if i == 0 {
			text.WriteString("Not loaded yet, may have more; call load_mcp with the name:\n")
		}
		text.WriteString(p.deferred(lineWidth))
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// also names the tools of other servers that have the same name.
func (m *Match) also() string {
	if len(m.Also) == 0 {
		return ""
	}
	s := " (also " + escape(joinNames(m.Also, nearestShown))
	if more := len(m.Also) - nearestShown; more > 0 {
		s += fmt.Sprintf(", and %d more", more)
	}
	return s + ")"
}

// candidates returns servers to load, in config order: those whose tools are
// not known and whose name or description has a word of the query; if none has
// and nothing else was found, the first of all.
func (v *View) candidates(query string, anyway bool) []*part {
	var fit, rest []*part
	for _, p := range v.lazy {
		if p.info.Stored { // what it has was searched
			continue
		}
		if p.mentions(query) {
			fit = append(fit, p)
		} else {
			rest = append(rest, p)
		}
	}
	if len(fit) == 0 && anyway {
		fit = rest
	}
	return fit[:min(len(fit), nearestShown)]
}

// mentions tells whether the server's name or description has a word of the
// query that says something.
func (p *part) mentions(query string) bool {
	asked := map[string]bool{}
	words(query, func(w string) { asked[w] = !stopWords[w] })
	found := false
	words(p.server.Name+" "+p.intro, func(w string) { found = found || asked[w] })
	return found
}
