package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Bounds of what one answer says.
const (
	pageTools = 100      // entries on a page if the caller names no limit
	pageBytes = 16 << 10 // of text; a page ends before it grows past this
	ownWords  = 2048     // UTF-16 units of an upstream's instructions
)

// Page is one page of a listing, as text and as structured content.
type Page struct {
	Text       string
	Structured json.RawMessage // {"tools":[…],"servers":[…],"next":n}
	Next       int             // offset of the next page; 0 after the last
}

// Page lists the tools of one server, or with "" all servers and then all
// tools. It starts at the entry numbered offset and has at most limit entries,
// 0 meaning 100, and fewer if they are long. It is false if no such server is
// offered.
func (v *View) Page(server string, offset, limit int) (Page, bool) {
	b := pageBuilder{limit: limit}
	tools := v.tools
	if server != "" {
		p, ok := v.server[server]
		if !ok {
			return Page{}, false
		}
		tools = p.tools
		b.about(p, offset == 0)
	} else if p := v.bare(); p != nil {
		b.about(p, offset == 0)
	} else {
		for _, p := range v.parts {
			b.items = append(b.items, p.item())
		}
	}
	for _, t := range tools {
		b.items = append(b.items, t.item())
	}
	return b.page(server, offset), true
}

// item is an entry of a page: its line, and its object in a list.
type item struct {
	server     bool
	line, json string
}

func (t *Tool) item() item {
	return item{line: t.line(lineWidth), json: brief("name", t.Name, "description", t.Summary)}
}

func (p *part) item() item {
	line := "- " + escape(p.server.Name) + " (" + p.state() + ")"
	if p.intro != "" {
		line += ": " + escape(p.intro)
	}
	return item{true, line + p.note(), p.json()}
}

// state says in words where a server stands and what to do.
func (p *part) state() string {
	switch {
	case p.info.Loaded:
		return plural(len(p.tools), "tool")
	case p.server.Lazy:
		return "not loaded, call load_mcp"
	}
	return "not connected"
}

func (p *part) json() string {
	state := "not connected"
	switch {
	case p.info.Loaded:
		state = "loaded"
	case p.server.Lazy:
		state = "not loaded"
	}
	obj := brief("name", p.server.Name, "description", p.intro, "state", state, "note", fold(p.server.Note))
	return fmt.Sprintf(`%s,"tools":%d}`, strings.TrimSuffix(obj, "}"), len(p.tools))
}

// brief encodes an object of string members, leaving out empty ones but the
// first.
func brief(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		if i == 0 || pairs[i+1] != "" {
			b.WriteString(`,"` + pairs[i] + `":` + quote(pairs[i+1]))
		}
	}
	return "{" + b.String()[1:] + "}"
}

// pageBuilder cuts a page out of a list of items.
type pageBuilder struct {
	limit   int
	items   []item
	head    string   // text above the items
	servers []string // objects beside the items
	own     string   // the instructions of the upstream, cut
}

// about puts one server's own page head: what it is, and on the first page
// what it says about itself.
func (b *pageBuilder) about(p *part, first bool) {
	b.head = p.item().line[len("- "):] + "\n"
	b.servers = []string{p.json()}
	if first && p.info.Instructions != "" {
		b.own = instructions(p.info.Instructions)
		b.head += "\nInstructions of this server:\n" + b.own + "\n\n"
	}
}

// instructions cuts an upstream's instructions to what an answer holds.
func instructions(s string) string {
	const more = "\n[cut]"
	s = strings.TrimSpace(clean(s))
	if units(s) <= ownWords {
		return s
	}
	return prefix(s, ownWords-units(more)) + more
}

// page takes items from offset on until the page is full; at least one.
func (b *pageBuilder) page(server string, offset int) Page {
	limit := b.limit
	if limit <= 0 {
		limit = pageTools
	}
	from := min(max(offset, 0), len(b.items))
	end, size := from, len(b.head)
	for end < len(b.items) && end-from < limit {
		size += len(b.items[end].line) + 1
		if size > pageBytes && end > from {
			break
		}
		end++
	}
	var pg Page
	if end < len(b.items) {
		pg.Next = end
	}
	pg.Text = b.text(server, from, end)
	pg.Structured = b.structured(b.items[from:end], pg.Next)
	return pg
}

func (b *pageBuilder) text(server string, from, end int) string {
	var s strings.Builder
	s.WriteString(b.head)
	for _, it := range b.items[from:end] {
		s.WriteString(it.line + "\n")
	}
	switch {
	case len(b.items) == 0:
		s.WriteString("No tools.\n")
	case end < len(b.items):
		fmt.Fprintf(&s, "%d to %d of %d. Go on with discover_tool %s.\n", from+1, end, len(b.items), nextArgs(server, end))
	case from >= len(b.items):
		fmt.Fprintf(&s, "Nothing from %d on: there are %d.\n", from, len(b.items))
	}
	return strings.TrimSuffix(s.String(), "\n")
}

func nextArgs(server string, offset int) string {
	if server == "" {
		return fmt.Sprintf(`{"offset": %d}`, offset)
	}
	return fmt.Sprintf(`{"server": %s, "offset": %d}`, quote(server), offset)
}

func (b *pageBuilder) structured(items []item, next int) json.RawMessage {
	tools, servers := []string{}, b.servers
	for _, it := range items {
		if it.server {
			servers = append(servers, it.json)
		} else {
			tools = append(tools, it.json)
		}
	}
	s := `{"tools":[` + strings.Join(tools, ",") + `],"servers":[` + strings.Join(servers, ",") + `]`
	if b.own != "" {
		s += `,"instructions":` + quote(b.own)
	}
	if next > 0 {
		s += fmt.Sprintf(`,"next":%d`, next)
	}
	return json.RawMessage(s + "}")
}
