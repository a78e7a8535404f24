package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/fit"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/toolglob"
)

// The fixed parts of the texts. They are short because they count towards the limits.
const (
	preambleText = `Finds tools%s for use_tool. {"query": ["open an issue", "send a message"]}: a query for each step.`

	deferredText = `No tools of these servers are known: call load_mcp with a name to get them.`
	storedText   = `These servers start when a tool of theirs is used:`
	mixedText    = `These servers start when a tool of theirs is used. No tools of those marked * are known: call load_mcp with a name to get them.`
	unknownMark  = ` *`
	noServers    = `No servers are configured; the user adds one with dynmcp add NAME -- COMMAND.`

	startingNote = `Still starting; use_tool works on their tools, discover_tool {"server": "name"} lists them:`
	downNote     = `Could not be started so far; discover_tool {"server": "name"} says why:`

	restNote      = `%s more: see the description of %s.`
	cutNote       = `Shortened: {"server": "name"} shows one whole.`
	cutNoteSingle = `Shortened to fit: discover_tool with no argument lists all tools with what they do.`
	packedNote    = `The names after a server are its tools: call them server/tool.`
	moreServers   = `%s more: discover_tool with no argument lists all.`
)

// Texts renders a view as texts for models and hosts.
type Texts struct{ *View }

// Texts returns the texts about the view.
func (v *View) Texts() Texts { return Texts{v} }

// Describe returns the text for discover_tool's description: how to use it, the lazy servers,
// and the tools of the others. It has at most maxChars UTF-16 units; 0 or less is no limit. A
// text that does not fit is shortened no more than necessary, and says so. First the lines of
// tools become names; then names are counted; then the words of servers get shorter; in the
// end servers are counted. The servers of DescribeRest are left out.
func (v Texts) Describe(maxChars int) string {
	first, _ := v.divide(maxChars)
	names := ""
	if maxChars <= 0 || maxChars >= 2*aroundServers {
		names = v.named(" of %s", v.parts, firstSentence-len("Finds tools for use_tool."))
	}
	return first.fit(fmt.Sprintf(v.useTools(preambleText), names), maxChars)
}

// firstSentence is the most UTF-16 units of the first sentence of a description. Some hosts show
// models no more of it until they look for the tool.
const firstSentence = 160

// named returns as many names of servers as fit into room UTF-16 units, in their order, and how
// many more there are, with text around them; "" without servers, or for a single one.
func (v Texts) named(text string, servers []*serverView, room int) string {
	if v.single() != nil {
		return ""
	}
	for n := len(servers); n > 0; n-- {
		var names []string
		for _, p := range servers[:n] {
			names = append(names, display.Escape(p.server.Name))
		}
		if more := len(servers) - n; more > 0 {
			names = append(names, display.Plural(more, "more server"))
		}
		if said := fmt.Sprintf(text, strings.Join(names, ", ")); display.Units(said) <= room {
			return said
		}
	}
	return ""
}

// DescribeRest returns a description of at most maxChars UTF-16 units for the first of our
// tools that call tools: says, and the servers for which Describe has no room. Each server
// has only a few words, because models read this text together with a full description.
func (v Texts) DescribeRest(says string, maxChars int) string {
	_, rest := v.divide(maxChars)
	if len(rest.parts) == 0 {
		return says
	}
	d := rest.draft(says)
	d.cut, d.words = true, func(int) int { return fit.LeastWords + 3 }
	if text := d.text(); display.Units(text) <= maxChars {
		return text
	}
	return rest.fit(says, maxChars)
}

// aroundServers is about how many units a description has besides the lines of servers.
const aroundServers = 520

// divide returns the parts that Describe and DescribeRest show. The rest is the lazy servers
// that would have no words in a description of maxChars. The division depends only on the
// config: a load moves no server to the other text.
func (v Texts) divide(maxChars int) (first, rest Texts) {
	here, there := &content{}, &content{}
	room := maxChars - aroundServers
	for _, p := range v.parts {
		if room -= display.Units(display.Escape(p.server.Name)) + fit.LeastWords + len("- : \n"); room < 0 && p.server.Lazy {
			there.parts = append(there.parts, p)
		} else {
			here.parts = append(here.parts, p)
		}
	}
	if maxChars < 2*aroundServers || len(here.parts) == 0 || len(there.parts) == 0 {
		return v, Texts{&View{content: &content{}}}
	}
	here.sort()
	there.sort()
	here.rest, there.rest = len(there.parts), -1
	return Texts{&View{content: here, split: v.split}}, Texts{&View{content: there, split: v.split}}
}

// fit returns the most detailed text of at most limit units; 0 or less is no limit.
func (v Texts) fit(preamble string, limit int) string {
	d := v.draft(preamble)
	d.words, d.width = fit.All, func(int) int { return display.LineWidth }
	tools := v.toolsLoaded()
	d.names, d.lines = fit.All, tools
	if limit <= 0 || shortestLine*tools <= limit && display.Units(d.text()) <= limit {
		return d.text()
	}
	d.cut = true
	if fits := d.fill(limit); fits {
		return d.text()
	}
	for _, s := range []string{preamble + "\n\n" + v.atLeast(), v.atLeast()} {
		if display.Units(s) <= limit {
			return s
		}
	}
	return display.Prefix(display.Plural(tools, "tool")+": discover_tool lists them.", limit)
}

// toolsLoaded counts the tools of the servers that are shown with tools.
func (v Texts) toolsLoaded() int {
	n := 0
	for _, p := range v.loaded {
		n += len(p.tools)
	}
	return n
}

// shortestLine is the length of the shortest line of a tool, "- x" and a line feed. A text
// that cannot fit by that measure is not rendered.
const shortestLine = 4

// A draft is the level of detail of a text about the whole catalogue.
type draft struct {
	v        Texts
	place    map[*serverView]int // index of each server in config order
	preamble string
	cut      bool // something is left out
	longest  int  // bytes of the longest text so far

	named int             // number of servers that are named, in config order
	words func(i int) int // units of the words of each server, in config order
	names func(i int) int // names of tools of each loaded server
	lines int             // number of tools, in order, that have a line of their own
	width func(i int) int // of the line of each tool, in order

	enough int // bytes of servers after which text may stop, 0 for never
}

// draft returns a draft that names all servers and shows nothing else.
func (v Texts) draft(preamble string) *draft {
	d := &draft{v: v, preamble: preamble, named: len(v.parts), words: fit.None, names: fit.None, place: make(map[*serverView]int, len(v.parts))}
	for i, p := range v.parts {
		d.place[p] = i
	}
	return d
}

// fill raises the detail of the draft to the most that fits in limit units: the words of
// servers first, then the names of tools, then their lines. It reports false if nothing fits.
func (d *draft) fill(limit int) bool {
	v := d.v
	d.enough = limit * 3 // bytes; no UTF-16 unit takes more
	defer func() { d.enough = 0 }()
	fits := func() bool { return display.Units(d.text()) <= limit }

	tools := v.toolsLoaded()
	if n := tools; n > 0 && shortestLine*n <= limit {
		widths := func(l fit.Level) bool {
			d.width = func(i int) int { return fit.LeastLine + l.Raised(i, n) }
			return fits()
		}
		if best := fit.Highest(n, display.LineWidth-fit.LeastLine, widths); best >= 0 {
			return widths(best)
		}
	}

	d.lines, d.width, d.names = 0, func(int) int { return fit.LeastLine }, fit.None
	longest := 0
	for _, p := range v.parts {
		longest = max(longest, display.Units(p.intro))
	}
	whole := false
	d.named, d.words, whole = fit.Shorten(len(v.parts), longest, func(named int, words func(int) int) bool {
		d.named, d.words = named, words
		return fits()
	})
	if !whole || tools == 0 {
		return d.named > 0
	}

	loaded, most := len(v.loaded), 0
	for _, p := range v.loaded {
		most = max(most, len(p.tools))
	}
	names := func(l fit.Level) bool {
		d.names = func(i int) int { return l.Raised(i, loaded) }
		return fits()
	}
	if best := fit.Highest(loaded, min(most, limit), names); int(best) < loaded*most {
		return names(best)
	}
	lines := func(n fit.Level) bool { d.lines = int(n); return fits() }
	return lines(fit.Highest(1, tools, lines))
}

// text renders the draft.
func (d *draft) text() string {
	var b strings.Builder
	b.Grow(d.longest)
	b.WriteString(d.preamble)
	d.writeDeferred(&b)
	d.writeLoaded(&b)
	if notes := d.notes(); len(notes) > 0 {
		b.WriteString("\n\n" + strings.Join(notes, "\n"))
	}
	d.longest = max(d.longest, b.Len())
	return b.String()
}

// writeDeferred writes the <mcp_servers> block, unless it is empty: the lazy servers in the order of the
// config. If the tools of some are known, those of which none are have a mark.
func (d *draft) writeDeferred(b *strings.Builder) {
	named, known := 0, 0
	for _, p := range d.v.lazy {
		if d.place[p] < d.named {
			named++
			if p.index != nil {
				known++
			}
		}
	}
	text, mark := mixedText, unknownMark
	switch known {
	case named:
		text = storedText
	case 0:
		text, mark = deferredText, ""
	}
	if named == 0 {
		return
	}
	if d.v.rest >= 0 || text != storedText { // the other text says it
		b.WriteString("\n\n" + text)
	}
	b.WriteString("\n\n<mcp_servers>\n")
	for _, p := range d.v.lazy {
		if i := d.place[p]; i < d.named {
			line := p.deferred(d.words(i))
			if p.index == nil {
				line = strings.TrimSuffix(line, "\n") + mark + "\n"
			}
			b.WriteString(line)
		}
	}
	b.WriteString("</mcp_servers>")
}

// writeLoaded writes the <tools> block, unless it is empty.
func (d *draft) writeLoaded(b *strings.Builder) {
	begins := b.Len()
	before := 0 // tools of the servers above
	for at, p := range d.v.loaded {
		if i := d.place[p]; i < d.named {
			if b.Len() == begins {
				b.WriteString("\n\n<tools>\n")
			}
			if d.enough > 0 && b.Len()-begins > d.enough {
				break
			}
			b.WriteString(p.block(d.words(i), d.names(at), max(d.lines-before, 0), func(i int) int { return d.width(before + i) }))
		}
		before += len(p.tools)
	}
	if b.Len() > begins {
		b.WriteString("</tools>")
	}
}

// notes returns the lines about what the draft leaves out and which servers are not
// available.
func (d *draft) notes() []string {
	v := d.v
	var notes []string
	if d.cut && v.single() == nil && v.rest >= 0 {
		if d.lines < v.toolsLoaded() && d.names(0) > 0 {
			notes = append(notes, packedNote)
		}
		notes = append(notes, cutNote)
	} else if d.cut && v.rest >= 0 {
		notes = append(notes, cutNoteSingle)
	}
	starting, down := startingAndDown(v.eager)
	if lines := d.unlisted(starting); len(lines) > 0 {
		notes = append(append(notes, d.v.useTools(startingNote)), lines...)
	}
	if lines := d.unlisted(down); len(lines) > 0 {
		notes = append(append(notes, downNote), lines...)
	}
	if more := len(v.parts) - d.named; more > 0 {
		notes = append(notes, fmt.Sprintf(moreServers, display.Plural(more, "server")))
	}
	if v.rest > 0 {
		notes = append(notes, fmt.Sprintf(restNote, display.Plural(v.rest, "server"), v.UseTool(toolglob.ReadOnly)))
	}
	if len(v.parts) == 0 {
		notes = append(notes, noServers)
	}
	return notes
}

// unlisted returns the lines of eager servers that have no listing.
func (d *draft) unlisted(eager []*serverView) (lines []string) {
	for _, p := range eager {
		if i := d.place[p]; i < d.named {
			lines = append(lines, strings.TrimSuffix(p.deferred(d.words(i)), "\n"))
		}
	}
	return lines
}

// atLeast returns the shortest text: how many tools there are and how to see them.
func (v Texts) atLeast() string {
	s := display.Plural(v.toolsLoaded(), "tool")
	if v.single() == nil {
		s += " of " + display.Plural(len(v.parts), "server")
	}
	if n := len(v.unlisted()); n > 0 {
		s += fmt.Sprintf(" (those of %d unknown)", n)
	}
	return s + `: discover_tool with no argument lists them, {"query": "words"} finds tools.`
}

// LinesOf returns the lines of a text of Describe about a server and its tools.
func LinesOf(text, server string) []string {
	return slices.DeleteFunc(slices.Collect(strings.Lines(text)), func(line string) bool {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(line, "- "), server)
		return !ok || rest == "" || !strings.ContainsAny(rest[:1], "/: \n")
	})
}
