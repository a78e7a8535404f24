package catalog

import (
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Loaded returns load_mcp's answer for a server: its tools by exposed name,
// resources, templates, prompts and instructions, as JSON text with one entry
// per line. A listing over 16 KB is told by names only, and one still too large
// by as many names as fit and a count; "more" then says what is left out and how
// to see it. It returns "" for a server without a listing.
func (v Texts) Loaded(server string) string {
	p := v.part(server)
	if p == nil || p.index == nil {
		return ""
	}
	a := p.answer()
	text := a.encode()
	for _, shorten := range []func(){a.idsOnly, a.namesOnly, a.fewer} {
		if len(text) > pageBytes {
			shorten()
			text = a.encode()
		}
	}
	return text
}

// answer is what load_mcp says, its lists still to be shortened.
type answer struct {
	p     *serverView
	own   string // the upstream's instructions, cut
	lists [4]list
	left  []string // what was left out
	more  string   // the same, and how to see it
}

// list is one array of the answer, as encoded objects.
type list struct {
	key   string
	what  string // one of its entries, in words
	items []string
}

func (p *serverView) answer() *answer {
	a := &answer{p: p, own: p.shortInstructions()}
	a.lists = [4]list{{key: "tools", what: "tool"}, {key: "resources"}, {key: "resource_templates"}, {key: "prompts"}}
	for _, t := range p.tools {
		a.lists[0].add(`{"name":` + display.Quote(t.Name) + `,"description":` + display.Quote(t.Summary) + "}")
	}
	for i, l := range p.namedLists() {
		a.lists[i+1].what = l.what
		for _, n := range l.entries {
			name, _ := wire.Text(wire.Get(n.raw, "name"))
			if l.key == "name" {
				name = "" // it is the first member already
			}
			description, _ := wire.Text(wire.Get(n.raw, "description"))
			a.lists[i+1].add(display.Object(l.key, n.id, "name", name, "description", display.Summary(description, display.LineWidth)))
		}
	}
	return a
}

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

func (l *list) add(obj string) { l.items = append(l.items, obj) }

// idsOnly leaves of resources, templates and prompts what identifies them.
func (a *answer) idsOnly() {
	for i, l := range a.p.namedLists() {
		a.lists[i+1].items = nil
		for _, n := range l.entries {
			a.lists[i+1].add(display.Object(l.key, n.id))
		}
		if n := len(l.entries); n > 0 {
			a.leave("descriptions of " + display.Plural(n, a.lists[i+1].what))
		}
	}
}

// leave notes what the answer leaves out.
func (a *answer) leave(what string) {
	a.left = append(a.left, what)
	server := display.Quote(a.p.server.Name)
	a.more = fmt.Sprintf(`left out to keep this short: %s. discover_tool {"server": %s} lists all tools with theirs, {"query": "words"} finds tools.`,
		strings.Join(a.left, ", "), server)
}

// namesOnly leaves of tools their names.
func (a *answer) namesOnly() {
	a.lists[0].items = nil
	for _, t := range a.p.tools {
		a.lists[0].add(display.Object("name", t.Name))
	}
	a.leave("descriptions of " + display.Plural(len(a.p.tools), "tool"))
}

// fewer cuts the lists to what fits and counts the rest. Tools come first but
// leave the others up to a quarter of the room.
func (a *answer) fewer() {
	all := a.lists
	a.more += strings.Repeat(" ", 200) // room for what is added to the note
	for i := range a.lists {
		a.lists[i].items = nil
	}
	room := pageBytes - len(a.encode())
	reserve := min(room/4, all[1].size()+all[2].size()+all[3].size())
	for i, l := range all {
		n := 0
		for ; n < len(l.items) && room-len(l.items[n])-2 >= reserve; n++ {
			room -= len(l.items[n]) + 2
		}
		a.lists[i].items = l.items[:n]
		if more := len(l.items) - n; more > 0 {
			a.leave(display.Plural(more, l.what))
		}
		reserve = 0
	}
}

// size is what the list's entries take, with what separates them.
func (l *list) size() int {
	n := 0
	for _, obj := range l.items {
		n += len(obj) + 2
	}
	return n
}

func (a *answer) encode() string {
	var b strings.Builder
	b.WriteString(`{"mcp_name":` + display.Quote(a.p.server.Name))
	for _, l := range a.lists {
		b.WriteString(`,"` + l.key + `":[`)
		for i, obj := range l.items {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString("\n" + obj)
		}
		b.WriteByte(']')
	}
	if a.more != "" {
		b.WriteString(`,"more":` + display.Quote(a.more))
	}
	if a.own != "" {
		b.WriteString(`,"instructions":` + display.Quote(a.own))
	}
	return b.String() + "}"
}
