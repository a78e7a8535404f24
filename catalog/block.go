package catalog

import (
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/display"
)

// block returns the lines of one loaded server inside <tools>: a line of at most width(i)
// units for each of the first tools, lines in all, and then up to names names of the others.
// If every tool has a line, the heading has no words.
func (p *serverView) block(words, names, lines int, width func(i int) int) string {
	switch lines = min(lines, len(p.tools)); {
	case len(p.tools) == 0:
		return p.heading(words, "no tools")
	case lines == 0:
		return p.heading(words, p.leafNames(0, names))
	}
	var b strings.Builder
	switch {
	case p.server.Single:
	case lines == len(p.tools):
		b.WriteString(p.heading(0, ""))
	default:
		b.WriteString(p.heading(words, ""))
	}
	for i, t := range p.tools[:lines] {
		b.WriteString(t.line(width(i)) + "\n")
	}
	if lines < len(p.tools) {
		if !p.server.Single {
			b.WriteString(display.Escape(p.server.Name) + " ")
		}
		b.WriteString("also: " + p.leafNames(lines, names) + "\n")
	}
	return b.String()
}

// heading returns the first line of a loaded server's block, which ends in rest. In
// single-wrap mode it is rest alone.
func (p *serverView) heading(words int, rest string) string {
	if p.server.Single {
		return rest + "\n"
	}
	s := display.Escape(p.server.Name)
	if about := p.about(words); about != "" {
		s += " (" + about + ")"
	}
	s += ":" + p.note()
	if rest != "" {
		s += " " + rest
	}
	return s + "\n"
}

// deferred is the line of a server that is shown without its tools.
func (p *serverView) deferred(words int) string {
	about := p.about(words)
	if about != "" {
		about = ": " + about
	}
	return "- " + display.Escape(p.server.Name) + about + p.note() + "\n"
}

func (p *serverView) note() string {
	note := p.approval.Note
	if p.server.Note != "" {
		note += " " + display.Escape(display.Fold(p.server.Note))
	}
	return note
}

// about returns the server's intro, cut after a word to about so many units. It has no ellipsis: a
// note at the end of the text says that texts are cut.
func (p *serverView) about(words int) string {
	if words <= 0 {
		return ""
	}
	text, cut := strings.CutSuffix(display.Cut(p.intro, words+1), "…")
	if cut {
		text = wholeWords(text, p.intro[min(len(text), len(p.intro)):])
	}
	return display.Escape(text)
}

// mostOfAWord is how many letters of a word in a list are worth showing without the others.
const mostOfAWord = 4

// wholeWords drops from the end of a text, which is cut before rest, part of a word, and words and marks
// that lead to others: "Run SQL on the dat" becomes "Run SQL". The first word stays as it is.
func wholeWords(text, rest string) string {
	whole := rest == "" || strings.HasPrefix(rest, " ")
	if comma := strings.LastIndex(text, ", "); comma >= 0 {
		last := text[comma+2:] // of a list, most of a word tells which it is
		whole = whole || len(last) >= mostOfAWord && !strings.Contains(last, " ")
	}
	for {
		space := strings.LastIndexByte(text, ' ')
		if space < 0 || whole && !search.IsStopWord(strings.ToLower(text[space+1:])) {
			return strings.TrimRight(text, ",;:&/–—-( ")
		}
		text, whole = strings.TrimRight(text[:space], ",;:&/–—-( "), true
	}
}

// leafNames returns the names of n tools, beginning at the index from, and the number of the
// others.
func (p *serverView) leafNames(from, n int) string {
	leaves := p.names[from:]
	if n <= 0 {
		return display.Plural(len(leaves), "tool")
	}
	if n >= len(leaves) {
		return strings.Join(leaves, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(leaves[:n], ", "), len(leaves)-n)
}

// line is the tool's line with a text of at most width units, escaped.
func (t *Tool) line(width int) string {
	if s := display.Cut(t.Summary, width); s != "" {
		return "- " + display.Escape(t.Name) + ": " + display.Escape(s)
	}
	return "- " + display.Escape(t.Name)
}
