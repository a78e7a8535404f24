package catalog

import (
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/fit"
	"github.com/dynmcp/dynmcp/internal/display"
)

const (
	introText = `The tools of the MCP servers%s are called through use_tool. discover_tool finds them ` +
		`({"query": ["words"]}, a query for each step) and shows their definitions. A server is started when it is used.`
	introSingle = `The tools of %s are called through use_tool. discover_tool lists them, finds them and shows their definitions.`

	ownCut = "\n[Cut to fit: discover_tool {\"full\": true} shows these instructions whole.]"
)

// Instructions returns the text for the instructions of initialize, in at most
// maxChars UTF-16 units unless that is 0 or less: how tools are found and called, and names of
// servers, because some hosts do not show the descriptions of tools. In single-wrap mode the
// upstream's own instructions follow, verbatim if they fit.
func (v Texts) Instructions(maxChars int) string {
	if p := v.single(); p != nil {
		return p.instructions(v.useTools(introSingle), maxChars)
	}
	names := " that the description of discover_tool names"
	if some := v.named(" %s", v.parts, firstSentence); some != "" {
		names = some
	}
	text := fmt.Sprintf(v.useTools(introText), names)
	if len(v.parts) == 0 {
		text += "\n\n" + noServers
	}
	if maxChars <= 0 {
		return text
	}
	return display.Prefix(text, maxChars)
}

// instructions returns the instructions in single-wrap mode, which begin with intro.
func (p *serverView) instructions(intro string, maxChars int) string {
	text := fmt.Sprintf(intro, p.called())
	own := strings.TrimSpace(p.info.Instructions)
	whole := strings.TrimSpace(text + "\n\n" + own)
	switch room := maxChars - display.Units(text) - 2 - display.Units(ownCut); {
	case maxChars <= 0 || display.Units(whole) <= maxChars:
		return whole
	case own != "" && room > 0:
		return text + "\n\n" + display.Prefix(own, room) + ownCut
	}
	return display.Prefix(text, maxChars)
}

const (
	directText = `What the servers of these tools say of their use, by server.`
	directCut  = ` [cut]`
	directLate = `The tools of these servers are added when they have started: %s.`
	minOwn     = 60 // the least UTF-16 units of a server's instructions that are worth showing
)

// DirectInstructions returns the instructions of the servers, as last listed, for hosts on
// the direct surface. It has at most maxChars UTF-16 units; 0 or less is no limit. If not all
// fit, the longest are cut to the same length.
func (v Texts) DirectInstructions(maxChars int) string {
	var own []string
	var parts []*serverView
	longest := 0
	for _, p := range v.parts {
		if text := strings.TrimSpace(display.Clean(p.info.Instructions)); text != "" {
			own, parts, longest = append(own, text), append(parts, p), max(longest, display.Units(text))
		}
	}
	missing := v.named(directLate, v.eager, max(maxChars/4, firstSentence))
	render := func(named, width int) string {
		text := strings.TrimPrefix(missing+"\n\n"+directText, "\n\n")
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
		return missing
	}
	if maxChars <= 0 {
		return render(len(parts), longest)
	}
	fits := func(named, width int) bool { return display.Units(render(named, width)) <= maxChars }
	named := int(fit.Highest(1, len(parts), func(l fit.Level) bool { return fits(int(l), min(minOwn, longest)) }))
	if named <= 0 {
		return missing
	}
	width := fit.Highest(1, longest, func(l fit.Level) bool { return int(l) < minOwn || fits(named, int(l)) })
	return render(named, int(width))
}
