package catalog

import (
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
)

// What the texts say beside the catalogue. They are short because they count.
const (
	preambleText = `Shows the tools that use_tool can call. Before you first use one, read its definition: {"tool_name": "server/tool"}. ` +
		`{"query": "words"} finds tools; {"server": "name"}, or no argument, lists them.`
	preambleBare = `Shows the tools that use_tool can call. Before you first use one, read its definition: {"tool_name": "name"}. ` +
		`{"query": "words"} finds tools; no argument lists them.`
	introText = `Tools of other MCP servers, called through use_tool. discover_tool shows a tool's definition, finds tools and lists them.`
	introBare = `Tools called through use_tool. discover_tool shows a tool's definition, finds tools and lists them.`

	deferredText = `Some servers below are not loaded yet. To use one, call load_mcp with its name; the answer lists its tools.`
	noneLoaded   = `No tools are currently loaded. Call load_mcp with the name of a server above to load its tools.`
	noServers    = `No servers are configured.`

	shorterNote = `Descriptions are shortened to fit: discover_tool {"tool_name": …} shows one whole.`
	namesNote   = `Only names fit here: discover_tool {"tool_name": …} describes a tool, {"query": "words"} finds one.`
	packedNote  = `Only names fit here, after their server: call them server/tool. discover_tool {"tool_name": …} describes a tool, {"query": "words"} finds one.`
	countedNote = `%s not listed here: discover_tool {"server": "name"} lists them, {"query": "words"} finds them.`
	wordsNote   = `Server descriptions are shortened to fit: discover_tool {"server": "name"} shows one whole.`

	ownCut = "\n[Cut to fit: discover_tool with no argument shows these instructions whole.]"
)

// Describe returns the text for discover_tool's description: how to use it,
// the servers not loaded, the tools of those loaded. It has at most maxChars
// UTF-16 units, unless that is 0 or less; what does not fit is shortened in
// steps that the text states.
func (v *View) Describe(maxChars int) string {
	if v.bare() != nil {
		return v.fit(preambleBare, maxChars)
	}
	return v.fit(preambleText, maxChars)
}

// Instructions returns the text for the instructions of initialize: the same
// summary under the same limit. In single-wrap mode the upstream's own
// instructions follow it, verbatim if they fit beside the shortest summary.
func (v *View) Instructions(maxChars int) string {
	p := v.bare()
	if p == nil {
		return v.fit(introText, maxChars)
	}
	own := strings.TrimSpace(p.info.Instructions)
	if own == "" {
		return v.fit(introBare, maxChars)
	}
	if maxChars <= 0 {
		return v.fit(introBare, 0) + "\n\n" + own
	}
	least := v.atLeast()
	if room := maxChars - units(own) - 2; room >= units(least) {
		return v.fit(introBare, room) + "\n\n" + own
	}
	if room := maxChars - units(least) - 2 - units(ownCut); room > 0 {
		return least + "\n\n" + prefix(own, room) + ownCut
	}
	return prefix(least, maxChars)
}

// bare returns the one server of single-wrap mode, else nil.
func (v *View) bare() *part {
	if len(v.parts) == 1 && v.parts[0].server.Bare {
		return v.parts[0]
	}
	return nil
}

// fit returns the fullest text of at most limit units; 0 or less: no limit.
func (v *View) fit(preamble string, limit int) string {
	for d := range v.drafts(preamble, limit) {
		if limit <= 0 || d.size() <= limit {
			return d.render(func(p *part) string { return p.block(d.mode) })
		}
	}
	named, least := v.serverNames(false), v.atLeast()
	for _, s := range []string{
		preamble + "\n\n" + v.serverNames(true),
		preamble + "\n\n" + named, named,
		preamble + "\n\n" + least, least,
	} {
		if units(s) <= limit {
			return s
		}
	}
	return prefix(plural(len(v.tools), "tool")+": discover_tool lists them.", limit)
}

// draft is one attempt at the text about the whole catalogue.
type draft struct {
	v        *View
	preamble string

	mode    mode
	words   int            // units of an operator's description; below 0: all
	counted map[*part]bool // servers whose tools are only counted
}

// drafts yields ever shorter drafts. The operator's words stay whole until
// tool lines have become names.
func (v *View) drafts(preamble string, limit int) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		for m := whole; m < modes; m++ {
			if !yield(draft{v: v, preamble: preamble, mode: m, words: -1}) {
				return
			}
		}
		d := draft{v: v, preamble: preamble, mode: packed, words: lineWidth}
		if !yield(d) {
			return
		}
		for _, d.words = range []int{-1, lineWidth, 60, 0} {
			if !yield(d.count(limit)) {
				return
			}
		}
	}
}

// count turns as few servers as the limit needs into counts, those first that
// save most.
func (d draft) count(limit int) draft {
	gain := func(p *part) int { return p.sizes[d.mode] - units(p.counted(d.words)) }
	ps := slices.DeleteFunc(slices.Clone(d.v.loaded), func(p *part) bool { return gain(p) <= 0 })
	slices.SortStableFunc(ps, func(a, b *part) int { return gain(b) - gain(a) })
	first := func(n int) draft {
		d.counted = make(map[*part]bool, n)
		for _, p := range ps[:n] {
			d.counted[p] = true
		}
		return d
	}
	if none := first(0); len(ps) == 0 || none.size() <= limit { // counting one costs a note: it may be longer
		return none
	}
	return first(1 + sort.Search(len(ps)-1, func(n int) bool { return first(n+1).size() <= limit }))
}

// size is the length of the rendered draft, without rendering its blocks.
func (d draft) size() int {
	n := units(d.render(func(*part) string { return "" }))
	for _, p := range d.v.loaded {
		if !d.counted[p] {
			n += p.sizes[d.mode]
		}
	}
	return n
}

func (d draft) render(block func(*part) string) string {
	var b strings.Builder
	b.WriteString(d.preamble)
	if len(d.v.lazy) > 0 {
		b.WriteString("\n\n" + deferredText + "\n\n<mcp_servers>\n")
		for _, p := range d.v.lazy {
			b.WriteString(p.deferred(d.words))
		}
		b.WriteString("</mcp_servers>")
	}
	if len(d.v.loaded) > 0 {
		b.WriteString("\n\n<tools>\n")
		for _, p := range d.v.loaded {
			if d.counted[p] {
				b.WriteString(p.counted(d.words))
			} else {
				b.WriteString(block(p))
			}
		}
		b.WriteString("</tools>")
	}
	if notes := d.notes(); len(notes) > 0 {
		b.WriteString("\n\n" + strings.Join(notes, "\n"))
	}
	return b.String()
}

// notes states what the draft leaves out and what is not there.
func (d draft) notes() []string {
	notes := d.toolNotes()
	if d.words >= 0 && slices.ContainsFunc(d.v.parts, func(p *part) bool { return units(p.intro) > d.words }) {
		notes = append(notes, wordsNote)
	}
	if len(d.v.loaded) == 0 && len(d.v.lazy) > 0 {
		notes = append(notes, noneLoaded)
	}
	if len(d.v.eager) > 0 {
		notes = append(notes, "Not connected: "+listed(d.v.eager)+".")
	}
	if len(d.v.parts) == 0 {
		notes = append(notes, noServers)
	}
	return notes
}

// toolNotes states how tools are shortened.
func (d draft) toolNotes() []string {
	total, hidden := 0, 0
	for _, p := range d.v.loaded {
		total += len(p.tools)
		if d.counted[p] {
			hidden += len(p.tools)
		}
	}
	var notes []string
	switch {
	case hidden == total || d.mode == whole:
	case d.mode == packed && d.v.bare() == nil:
		notes = append(notes, packedNote)
	case d.mode >= names:
		notes = append(notes, namesNote)
	default:
		notes = append(notes, shorterNote)
	}
	if hidden > 0 {
		notes = append(notes, d.hiddenNote(hidden))
	}
	return notes
}

func (d draft) hiddenNote(n int) string {
	what := plural(n, "tool")
	if d.v.bare() == nil {
		what += " of " + plural(len(d.counted), "server")
	}
	return fmt.Sprintf(countedNote, what)
}

// serverNames only names the servers, with the number of their tools or not.
func (v *View) serverNames(counts bool) string {
	listed := listed
	if !counts {
		listed = joined
	}
	var lines []string
	if len(v.loaded) > 0 {
		lines = append(lines, "Loaded: "+listed(v.loaded)+`. discover_tool {"server": "name"} lists the tools of one.`)
	}
	if len(v.lazy) > 0 {
		lines = append(lines, "Not loaded yet: "+listed(v.lazy)+". Call load_mcp with a name to load one.")
	}
	if len(v.eager) > 0 {
		lines = append(lines, "Not connected: "+listed(v.eager)+".")
	}
	return strings.Join(lines, "\n")
}

// listed joins the names of servers, with their notes, and with the number of
// their tools if they are loaded.
func listed(ps []*part) string {
	items := make([]string, len(ps))
	for i, p := range ps {
		items[i] = escape(p.server.Name) + p.note()
		if p.info.Loaded {
			items[i] += " (" + plural(len(p.tools), "tool") + ")"
		}
	}
	return strings.Join(items, ", ")
}

// joined joins the bare names of servers.
func joined(ps []*part) string {
	items := make([]string, len(ps))
	for i, p := range ps {
		items[i] = escape(p.server.Name)
	}
	return strings.Join(items, ", ")
}

// atLeast is the shortest honest text: how much there is and how to see it.
func (v *View) atLeast() string {
	s := plural(len(v.tools), "tool")
	if v.bare() == nil {
		s += " of " + plural(len(v.parts), "server")
	}
	if n := len(v.lazy); n > 0 {
		s += fmt.Sprintf(" (%d not loaded)", n)
	}
	return s + `: discover_tool with no argument lists them, {"query": "words"} finds tools.`
}
