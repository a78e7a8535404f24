package catalog

import (
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/internal/display"
)

const (
	introText = `The tools of these MCP servers are called through use_tool. discover_tool finds tools ({"query": "words"}), lists a server's ` +
		`({"server": "name"}) and shows definitions. A server that does not run is started when it is used.`
	introSingle = `The tools of %s are called through use_tool. discover_tool lists them, finds them and shows their definitions.`

	ownCut = "\n[Cut to fit: discover_tool {\"full\": true} shows these instructions whole.]"
)

// Instructions returns the text for the instructions of initialize, in at most
// maxChars UTF-16 units unless that is 0 or less. Hosts read it once, so it is
// about what stays: which servers there are, what they are for, how they are
// called. In single-wrap mode the upstream's own instructions follow, verbatim
// if they fit.
func (v Texts) Instructions(maxChars int) string {
	if p := v.single(); p != nil {
		return p.instructions(maxChars)
	}
	n := len(v.parts)
	text := v.introduce(n, all)
	if maxChars <= 0 || display.Units(text) <= maxChars {
		return text
	}
	longest := 0
	for _, p := range v.parts {
		longest = max(longest, display.Units(p.described))
	}
	named, words, _ := shorten(n, longest, func(named int, words func(i int) int) bool {
		return display.Units(v.introduce(named, words)) <= maxChars
	})
	return display.Prefix(v.introduce(max(named, 0), words), maxChars)
}

// introduce names the first servers of the config, with the operator's words.
func (v Texts) introduce(named int, words func(i int) int) string {
	var b strings.Builder
	b.WriteString(v.useTools(introText) + "\n\n")
	if len(v.parts) == 0 {
		return b.String() + noServers
	}
	b.WriteString("<mcp_servers>\n")
	for i, p := range v.parts[:named] {
		b.WriteString("- " + display.Escape(p.server.Name))
		if about := display.Escape(display.Cut(p.described, words(i))); about != "" {
			b.WriteString(": " + about)
		}
		b.WriteString("\n")
	}
	b.WriteString("</mcp_servers>")
	if more := len(v.parts) - named; more > 0 {
		fmt.Fprintf(&b, "\n"+moreServers, display.Plural(more, "server"))
	}
	return b.String()
}

// instructions are those of single-wrap mode.
func (p *serverView) instructions(maxChars int) string {
	text := fmt.Sprintf(p.useTools(introSingle), p.called())
	own := strings.TrimSpace(p.info.Instructions)
	whole := text + "\n\n" + own
	switch room := maxChars - display.Units(text) - 2 - display.Units(ownCut); {
	case own == "" && maxChars <= 0:
		return text
	case own == "":
		return display.Prefix(text, maxChars)
	case maxChars <= 0 || display.Units(whole) <= maxChars:
		return whole
	case room > 0:
		return text + "\n\n" + display.Prefix(own, room) + ownCut
	}
	return display.Prefix(text, maxChars)
}

const (
	directText = `What the servers of these tools say of their use, by server.`
	directCut  = ` [cut]`
	leastOwn   = 60 // UTF-16 units of a server's instructions that are worth showing
)

// DirectInstructions returns the instructions of the servers, as they listed them last, for
// a host that is shown their tools as themselves: in at most maxChars UTF-16 units, unless
// that is 0 or less. Where not all fit whole, the longest are cut, to the same length.
func (v Texts) DirectInstructions(maxChars int) string {
	var own []string
	var parts []*serverView
	longest := 0
	for _, p := range v.parts {
		if text := strings.TrimSpace(display.Clean(p.info.Instructions)); text != "" {
			own, parts, longest = append(own, text), append(parts, p), max(longest, display.Units(text))
		}
	}
	render := func(named, width int) string {
		text := directText
		for i, p := range parts[:named] {
			says := own[i]
			if display.Units(says) > width {
				says = display.Prefix(says, width-display.Units(directCut)) + directCut
			}
			text += "\n\n## " + p.called() + "\n" + says
		}
		if more := len(parts) - named; more > 0 {
			text += fmt.Sprintf("\n\n%s have instructions that do not fit.", display.Plural(more, "more server"))
		}
		return text
	}
	if len(parts) == 0 {
		return ""
	}
	if maxChars <= 0 {
		return render(len(parts), longest)
	}
	fits := func(named, width int) bool { return display.Units(render(named, width)) <= maxChars }
	named := int(highest(1, len(parts), func(l level) bool { return fits(int(l), min(leastOwn, longest)) }))
	if named <= 0 {
		return ""
	}
	width := highest(1, longest, func(l level) bool { return int(l) < leastOwn || fits(named, int(l)) })
	return render(named, int(width))
}
