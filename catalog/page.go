package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/catalog/names"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Limits of one answer.
const (
	pageTools = 100      // entries on a page if the caller names no limit
	pageBytes = 16 << 10 // of text; a page ends before it grows past this
	ownWords  = 2048     // UTF-16 units of an upstream's instructions
)

// Page lists the tools of one server or, with "", the servers. In single-wrap mode it always
// lists tools. It begins at the entry of index offset and has at most limit entries, 100 if
// that is 0, and fewer if they are long. The server's instructions are cut to 2,048
// characters unless full is set. ok is false if the server is not offered.
func (v Texts) Page(server string, offset, limit int, full bool) (text string, ok bool) {
	if limit <= 0 {
		limit = pageTools
	}
	b := pageBuilder{server: server, limit: limit}
	p := v.single()
	if server != "" {
		if p = v.part(server); p == nil {
			return "", false
		}
	}
	if p != nil {
		b.about(p, offset <= 0, full)
		return b.page(offset), true
	}
	parts := v.all().parts
	b.total, b.line = len(parts), func(i int) string { return "- " + parts[i].line(parts[i].intro) }
	if len(v.all().tools) > 0 {
		b.end = `discover_tool {"server": "name"} lists the tools of one, {"query": "words"} finds tools.`
	}
	return b.page(offset), true
}

// line returns a server's line: its name, its state, and what it is for.
func (p *serverView) line(about string) string {
	s := display.Escape(p.called()) + " (" + p.state() + ")"
	if about != "" {
		s += ": " + display.Escape(about)
	}
	return s + p.note()
}

// state describes the state of a server, and what to do about it.
func (p *serverView) state() string {
	switch {
	case p.info.Loaded:
		return display.Plural(len(p.tools), "tool")
	case p.info.Stored && p.info.Down != "":
		return display.Plural(len(p.tools), "tool") + " when it last ran; could not be started: " + display.Escape(display.Cut(p.info.Down, display.LineWidth))
	case p.info.Stored:
		return display.Plural(len(p.tools), "tool") + ", started when used"
	case p.server.Lazy:
		return "no tools known, call load_mcp"
	case p.info.Down != "":
		return "could not be started: " + display.Escape(display.Cut(p.info.Down, display.LineWidth))
	}
	return "still starting, its tools can be called"
}

// pageBuilder cuts a page out of lines.
type pageBuilder struct {
	server string // asked for; "" for all
	limit  int
	total  int
	line   func(i int) string // the line of an entry
	head   string             // text above the lines
	empty  string             // said if there are no lines
	end    string             // said below the last line
}

// about makes the page list one server's tools below the server's line and, on the first
// page, its instructions.
func (b *pageBuilder) about(p *serverView, first, full bool) {
	b.head = p.line(p.described) + "\n"
	b.empty = "No tools."
	if !p.info.Loaded && !p.info.Stored {
		b.empty = "Its tools are not known yet."
	}
	if first && p.info.Instructions != "" {
		own := p.shortInstructions()
		if full {
			own = strings.TrimSpace(display.Clean(p.info.Instructions))
		}
		b.head += "\nInstructions of this server:\n" + own + "\n\n"
	}
	b.total, b.line = len(p.tools), func(i int) string { return p.tools[i].line(display.LineWidth) }
}

// shortInstructions returns the upstream's instructions, cut to ownWords.
func (p *serverView) shortInstructions() string {
	s := strings.TrimSpace(display.Clean(p.info.Instructions))
	if display.Units(s) <= ownWords {
		return s
	}
	more := fmt.Sprintf("\n[Cut: discover_tool {\"server\": %s, \"full\": true} shows all.]", display.Quote(p.server.Name))
	if p.server.Single {
		more = "\n[Cut: discover_tool {\"full\": true} shows all.]"
	}
	return display.Prefix(s, ownWords-display.Units(more)) + more
}

// page takes lines from offset on until the page is full; at least one.
func (b *pageBuilder) page(offset int) string {
	from := min(max(offset, 0), b.total)
	var text strings.Builder
	end := from
	for ; end < b.total && end-from < b.limit; end++ {
		line := b.line(end)
		if end > from && len(b.head)+text.Len()+len(line) >= pageBytes {
			break
		}
		text.WriteString(line + "\n")
	}
	return strings.TrimSuffix(b.head+text.String()+b.foot(from, end), "\n")
}

// foot returns the last line: where the page is and how to continue, unless it shows all.
func (b *pageBuilder) foot(from, end int) string {
	switch {
	case b.total == 0:
		return cmp.Or(b.empty, noServers)
	case from == b.total:
		return fmt.Sprintf("Nothing from %d on: there are %d.", from, b.total)
	case end == b.total:
		return b.end
	}
	args := fmt.Sprintf(`"offset": %d`, end)
	if b.server != "" {
		args = fmt.Sprintf(`"server": %s, `, display.Quote(b.server)) + args
	}
	return fmt.Sprintf("%d to %d of %d. Go on with discover_tool {%s}.", from+1, end, b.total, args)
}

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
	b.WriteString(p.leftOut())
	for _, l := range namedLists(v.listOf(p.server.Name)) {
		l.write(&b)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// leftOut names the tools, as many as fit, that hosts do not see because of the policy or for want of approval.
func (p *serverView) leftOut() (text string) {
	var denied, unapproved []string
	for _, t := range p.denied {
		denied = append(denied, t.Leaf)
	}
	if approval.Blocks(p.server.Guard) {
		unapproved = slices.Sorted(maps.Keys(p.approval.Unapproved))
	}
	for _, c := range []struct {
		why   string
		names []string
	}{{"Left out by the policy", denied}, {"Left out until a person approves them", unapproved}} {
		if names := display.Fold(strings.Join(c.names, ", ")); names != "" {
			text += c.why + ": " + display.Escape(display.Cut(names, 2*display.LineWidth)) + "\n"
		}
	}
	return text
}

// namedBytes limits the lines of one kind of entries.
const namedBytes = pageBytes / 8

// namedList is a listing's entries of one kind and the member that names them.
type namedList struct {
	key     string
	what    string // one of its entries, in words
	entries []entry.Named
}

func namedLists(of names.List) []namedList {
	return []namedList{{"uri", "resource", of.Resources}, {"uriTemplate", "resource template", of.Templates}, {"name", "prompt", of.Prompts}}
}

// write writes a line for each entry.
func (l namedList) write(b *strings.Builder) {
	if len(l.entries) == 0 {
		return
	}
	begins := b.Len()
	fmt.Fprintf(b, "\n%s:\n", display.Plural(len(l.entries), l.what))
	for i, n := range l.entries {
		line := "- " + display.Escape(display.Fold(n.ID))
		if name, _ := wire.Text(wire.Get(n.Raw, "name")); name != "" && l.key != "name" {
			line += " (" + display.Escape(display.Fold(name)) + ")"
		}
		if description, _ := wire.Text(wire.Get(n.Raw, "description")); description != "" {
			line += ": " + display.Escape(display.Summary(description, display.LineWidth))
		}
		if b.Len()-begins+len(line) > namedBytes {
			fmt.Fprintf(b, "and %d more\n", len(l.entries)-i)
			return
		}
		b.WriteString(line + "\n")
	}
}
