package catalog

import (
	"fmt"
	"strings"
)

// mode is how much of a loaded server's tools a text shows. Each says less
// than the one before.
type mode int

const (
	whole   mode = iota // name and line
	lines80             // name and a shorter line
	lines60
	lines40
	names  // one name per line
	packed // the names of a server on one line
	modes
)

// widths is how long a tool's line may be in each mode; 0: names only.
var widths = [modes]int{whole: lineWidth, lines80: 80, lines60: 60, lines40: 40}

// block returns the lines about one loaded server inside <tools>.
func (p *part) block(m mode) string {
	switch {
	case len(p.tools) == 0:
		return p.after("no tools")
	case m == packed:
		return p.after(p.leafNames())
	}
	var b strings.Builder
	if !p.server.Bare {
		b.WriteString(p.heading() + "\n")
	}
	for _, t := range p.tools {
		b.WriteString(t.line(widths[m]) + "\n")
	}
	return b.String()
}

// counted stands for the block of a server whose tools are only counted.
func (p *part) counted(words int) string {
	s := plural(len(p.tools), "tool")
	if about := p.about(words); about != "" {
		s += ". " + about
	}
	return p.after(s)
}

// deferred is the line of a server that is not loaded.
func (p *part) deferred(words int) string {
	s := "- " + escape(p.server.Name)
	if about := p.about(words); about != "" {
		s += ": " + about
	}
	return s + p.note() + "\n"
}

// after puts s on the line of the server's heading. A server that is alone in
// single-wrap mode needs none.
func (p *part) after(s string) string {
	if p.server.Bare {
		return s + "\n"
	}
	return p.heading() + " " + s + "\n"
}

func (p *part) heading() string { return escape(p.server.Name) + ":" + p.note() }

func (p *part) note() string {
	if p.server.Note == "" {
		return ""
	}
	return " " + escape(fold(p.server.Note))
}

// about is the operator's description in at most words units; below 0: all.
func (p *part) about(words int) string {
	if words < 0 {
		return escape(p.intro)
	}
	return escape(cut(p.intro, words))
}

func (p *part) leafNames() string {
	leaves := make([]string, len(p.tools))
	for i, t := range p.tools {
		leaves[i] = escape(t.Leaf)
	}
	return strings.Join(leaves, ", ")
}

// line is the tool's line with a text of at most width units, escaped.
func (t *Tool) line(width int) string {
	if s := cut(t.Summary, width); s != "" {
		return "- " + escape(t.Name) + ": " + escape(s)
	}
	return "- " + escape(t.Name)
}

// plural counts things: "1 tool", "2 tools".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
