package catalog

import (
	"cmp"
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
	if limit <= 0 {
		limit = pageTools
	}
	b := pageBuilder{server: server, limit: limit, tools: v.tools}
	p := v.bare()
	if server != "" {
		if p = v.server[server]; p == nil {
			return Page{}, false
		}
		b.tools = p.tools
	}
	if p != nil {
		b.about(p, offset <= 0)
	} else {
		b.parts = v.parts
	}
	return b.page(offset), true
}

// item is an entry of a page: its line, and its object in a list.
type item struct{ line, json string }

func (t *Tool) item() item {
	return item{t.line(lineWidth), `{"name":` + quote(t.Name) + `,"description":` + quote(t.Summary) + "}"}
}

func (p *part) item() item {
	line := "- " + escape(p.server.Name) + " (" + p.state() + ")"
	if p.intro != "" {
		line += ": " + escape(p.intro)
	}
	return item{line + p.note(), p.json()}
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
	if !p.info.Loaded {
		return obj
	}
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

// pageBuilder cuts a page out of servers followed by tools.
type pageBuilder struct {
	server string // asked for; "" for all
	limit  int
	parts  []*part
	tools  []*Tool

	head    string   // text above the entries
	servers []string // objects of servers on the page
	own     string   // the instructions of the upstream, cut
	empty   string   // said if there are no entries
}

// about puts one server's own page head: what it is, and on the first page
// what it says about itself.
func (b *pageBuilder) about(p *part, first bool) {
	b.head = p.item().line[len("- "):] + "\n"
	b.servers = []string{p.json()}
	b.empty = "No tools."
	if !p.info.Loaded {
		b.empty = "Its tools are not known yet."
	}
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

// page takes entries from offset on until the page is full; at least one.
func (b *pageBuilder) page(offset int) Page {
	total := len(b.parts) + len(b.tools)
	from := min(max(offset, 0), total)
	var lines strings.Builder
	tools := []string{}
	end := from
	for ; end < total && end-from < b.limit; end++ {
		it := b.item(end)
		if end > from && len(b.head)+lines.Len()+len(it.line) >= pageBytes {
			break
		}
		lines.WriteString(it.line + "\n")
		if end < len(b.parts) {
			b.servers = append(b.servers, it.json)
		} else {
			tools = append(tools, it.json)
		}
	}
	pg := Page{Text: b.head + lines.String() + b.foot(from, end, total)}
	if end < total {
		pg.Next = end
	}
	pg.Text = strings.TrimSuffix(pg.Text, "\n")
	pg.Structured = b.structured(tools, pg.Next)
	return pg
}

func (b *pageBuilder) item(i int) item {
	if i < len(b.parts) {
		return b.parts[i].item()
	}
	return b.tools[i-len(b.parts)].item()
}

// foot says where the page stands if it is not all.
func (b *pageBuilder) foot(from, end, total int) string {
	switch {
	case total == 0:
		return cmp.Or(b.empty, noServers)
	case from == total:
		return fmt.Sprintf("Nothing from %d on: there are %d.", from, total)
	case end == total:
		return ""
	}
	args := fmt.Sprintf(`"offset": %d`, end)
	if b.server != "" {
		args = fmt.Sprintf(`"server": %s, `, quote(b.server)) + args
	}
	return fmt.Sprintf("%d to %d of %d. Go on with discover_tool {%s}.", from+1, end, total, args)
}

func (b *pageBuilder) structured(tools []string, next int) json.RawMessage {
	s := `{"tools":[` + strings.Join(tools, ",") + `],"servers":[` + strings.Join(b.servers, ",") + `]`
	if b.own != "" {
		s += `,"instructions":` + quote(b.own)
	}
	if next > 0 {
		s += fmt.Sprintf(`,"next":%d`, next)
	}
	return json.RawMessage(s + "}")
}
