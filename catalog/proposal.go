package catalog

import (
	"strings"

	"github.com/dynmcp/dynmcp/internal/display"
)

// Bounds of a proposed description, in UTF-16 units: of what the server says, and of
// the names of its tools.
const (
	proposedWords = 160
	proposedTools = 120
)

// Proposal returns a description for a listed server, made of what it says of
// itself: the first sentence of its instructions, its own description or title, and
// where that is little the names of its tools. It is "" for a server that is not
// listed, or has nothing to say.
func (v Texts) Proposal(server string) string {
	p := v.part(server)
	if p == nil || p.index == nil {
		return ""
	}
	text := p.saysOfItself(proposedWords)
	if display.Units(text) >= ownLine/2 || len(p.tools) == 0 {
		return text
	}
	var names []string
	for _, t := range p.tools {
		names = append(names, t.Leaf)
	}
	tools := "Tools: " + display.Cut(strings.Join(names, ", "), proposedTools)
	if text == "" {
		return tools
	}
	return strings.TrimRight(text, ".") + ". " + tools
}
