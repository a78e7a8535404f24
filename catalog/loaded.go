package catalog

import (
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Loaded returns load_mcp's answer for a server: the first page of its tools, as
// discover_tool shows it, and a line for each of its resources, templates and prompts, as
// many as fit. It returns "" for a server without a listing.
func (v Texts) Loaded(server string) string {
	p := v.part(server)
	if p == nil || p.index == nil {
		return ""
	}
	page, _ := v.Page(server, 0, 0, false)
	var b strings.Builder
	b.WriteString(page + "\n")
	for _, l := range p.namedLists() {
		l.write(&b)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// namedBytes is what the lines of one kind of entries may take.
const namedBytes = pageBytes / 8

// namedList is a listing's entries of one kind and the member that names them.
type namedList struct {
	key     string
	what    string // one of its entries, in words
	entries []named
}

func (p *serverView) namedLists() []namedList {
	x := p.index
	return []namedList{{"uri", "resource", x.resources}, {"uriTemplate", "resource template", x.templates}, {"name", "prompt", x.prompts}}
}

// write writes a line for each entry.
func (l namedList) write(b *strings.Builder) {
	if len(l.entries) == 0 {
		return
	}
	begins := b.Len()
	fmt.Fprintf(b, "\n%s:\n", display.Plural(len(l.entries), l.what))
	for i, n := range l.entries {
		line := "- " + display.Escape(display.Fold(n.id))
		if name, _ := wire.Text(wire.Get(n.raw, "name")); name != "" && l.key != "name" {
			line += " (" + display.Escape(display.Fold(name)) + ")"
		}
		if description, _ := wire.Text(wire.Get(n.raw, "description")); description != "" {
			line += ": " + display.Escape(display.Summary(description, display.LineWidth))
		}
		if b.Len()-begins+len(line) > namedBytes {
			fmt.Fprintf(b, "and %d more\n", len(l.entries)-i)
			return
		}
		b.WriteString(line + "\n")
	}
}
