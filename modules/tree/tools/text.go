package tools

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/internal/toolglob"
)

// Bounds of answers.
const (
	maxSummaries = 16 << 10 // bytes of an answer with summaries
	nearestShown = 25       // entries below what is nearest to an unknown path
)

// Dump returns the whole tree as text: a line for each node and each tool. Of a server that could not be
// started it has no tools: what it listed in an earlier run is not there.
func (t *Tree) Dump(v *catalog.View) string {
	var b strings.Builder
	t.walk(t.rootOf(v), func(n *Node) {
		fmt.Fprintf(&b, "node %s%s\n", n.Path, colon(n.summary(v)))
		if n.Mount == nil {
			return
		}
		if server, _ := v.Server(n.Mount.Server); server.Down == "" {
			for _, tool := range n.Mount.tools(v) {
				fmt.Fprintf(&b, "tool %s%s\n", n.join(n.Mount.leaf(tool)), colon(tool.Summary))
			}
		}
	})
	return b.String()
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// summary returns the node's line: the operator's words, or the server's own description, and the
// problem of the server, if any.
func (n *Node) summary(v *catalog.View) string {
	words := display.Fold(cmp.Or(n.Summary, display.FirstLine(n.Description)))
	m := n.Mount
	if m == nil {
		return words
	}
	server, ok := v.Server(m.Server)
	if ok {
		words = cmp.Or(words, server.Intro)
	}
	var state string
	switch {
	case m.Note != "":
		state = m.Note
	case !ok:
		state = "(not available)"
	case server.Note != "":
		state = server.Note
	case server.Down != "":
		state = "(could not be started: " + display.Cut(server.Down, display.LineWidth) + ")"
	case !known(server) && server.Lazy:
		state = "(to look below starts it)"
	case !known(server):
		state = "(still starting)"
	}
	return strings.TrimSpace(words + " " + state)
}

// children returns a node's entries in an answer: nodes first, then tools, each by path.
func (t *Tree) children(v *catalog.View, n *Node) []treeEntry {
	var entries []treeEntry
	for _, child := range n.Children {
		entries = append(entries, treeEntry{Path: child.Path, Type: "node", Summary: child.summary(v)})
	}
	slices.SortFunc(entries, func(a, b treeEntry) int { return strings.Compare(a.Path, b.Path) })
	if n.Mount != nil {
		for _, tool := range n.Mount.tools(v) {
			entries = append(entries, treeEntry{Path: n.join(n.Mount.leaf(tool)), Type: "tool", Summary: tool.Summary})
		}
	}
	return entries
}

type treeEntry struct {
	Path, Type, Summary string
}

// encodeEntries returns the entries as a JSON array, one to a line.
func encodeEntries(entries []treeEntry, summaries bool) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, e := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		summary := ""
		if summaries {
			summary = e.Summary
		}
		b.WriteString("\n" + display.Object("path", e.Path, "type", e.Type, "summary", summary))
	}
	return b.String() + "]"
}

// Children answers meta_tree for a node: the entries directly below it, as JSON text. An answer over
// 16 KB has no summaries. note explains that, or an empty answer.
func (t *Tree) Children(v *catalog.View, n *Node) (text, note string) {
	entries := t.children(v, n)
	if len(entries) == 0 {
		return "[]", "Nothing is below it" + colon(n.summary(v)) + "."
	}
	if text = encodeEntries(entries, true); len(text) > maxSummaries {
		text, note = encodeEntries(entries, false), fmt.Sprintf("The summaries of these %d are left out to keep this short: meta_desc shows that of each.", len(entries))
	}
	return text, note
}

// DescribeNode answers meta_desc for a node.
func (t *Tree) DescribeNode(v *catalog.View, n *Node) (text, note string) {
	children, note := t.Children(v, n)
	head := display.Object("path", n.Path, "type", "node", "summary", n.summary(v), "description", strings.TrimSpace(display.Clean(n.Description)))
	return strings.TrimSuffix(head, "}") + `,"children":` + children + "}", note
}

// DescribeTool answers meta_desc for the tool of a path, with the upstream's exact input
// schema.
func (t *Tree) DescribeTool(path string, tool *catalog.Tool) string {
	head := display.Object("path", path, "type", "tool", "summary", tool.Summary, "description", strings.TrimSpace(display.Clean(tool.Description)))
	text := strings.TrimSuffix(head, "}") + `,` + "\n" + `"args_schema":` + cmp.Or(display.JSON(tool.InputSchema), `{"type":"object"}`)
	if tool.ExampleArgs != nil {
		text += `,` + "\n" + `"example_args":` + display.JSON(tool.ExampleArgs)
	}
	return text + "}"
}

// Unknown answers a path without a suitable entry: it names the nearest path, and the entries
// below it.
func (t *Tree) Unknown(v *catalog.View, path string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Unknown path: %s\n", display.Asked(path))
	if !strings.HasPrefix(path, "/") {
		b.WriteString("Paths begin with /.\n")
	}
	if why := t.whyHidden(v, path); why != "" {
		fmt.Fprintf(&b, "The server lists it, but it is left out: %s.\n", why)
	}
	above := parent("/" + strings.Trim(path, "/"))
	for above != "" && t.node(v, above) == nil && t.At(v, above).Tool == nil {
		above = parent(above)
	}
	n := t.node(v, cmp.Or(above, "/"))
	if n == nil {
		fmt.Fprintf(&b, "%s is a tool: nothing is below it. meta_desc {\"path\": %s} shows its arguments.", above, display.Quote(above))
		return b.String()
	}
	fmt.Fprintf(&b, "The nearest that exists is %s", n.Path)
	entries := t.children(v, n)
	if len(entries) == 0 {
		fmt.Fprintf(&b, ", with nothing below it%s.", colon(n.summary(v)))
		return b.String()
	}
	b.WriteString(". Below it:\n")
	slices.SortStableFunc(entries, func(x, y treeEntry) int { // similar spellings first
		asked := []rune(strings.ToLower(path))
		return cmp.Compare(nearest.Closeness(asked, y.Path), nearest.Closeness(asked, x.Path))
	})
	for _, e := range entries[:min(len(entries), nearestShown)] {
		fmt.Fprintf(&b, "- %s (%s)\n", e.Path, e.Type)
	}
	if more := len(entries) - nearestShown; more > 0 {
		fmt.Fprintf(&b, "and %d more: meta_tree {\"path\": %s} lists all.\n", more, display.Quote(n.Path))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// whyHidden explains why there is no tool at a path though its server lists one.
func (t *Tree) whyHidden(v *catalog.View, path string) string {
	for above := parent(path); above != ""; above = parent(above) {
		n := t.node(v, above)
		if n == nil || n.Mount == nil || n.Mount.Note != "" {
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(path, above), "/")
		if !n.Mount.pass.Passes(name, toolglob.Destructive) { // for a tool that is not offered, no better reason is known
			continue
		}
		if _, single := v.Single(); !single {
			name = n.Mount.Server + "/" + name
		}
		if why := v.WhyHidden(name); why != "" {
			return why
		}
	}
	return ""
}

// Intro returns the part of the instructions about the tree: its use and its top nodes, in the
// operator's words, in at most max UTF-16 units; 0 is no limit.
func (t *Tree) Intro(v *catalog.View, max int) string {
	text := `The tools are the leaves of a tree. meta_tree {"path": "/"} lists what is below a path, meta_desc shows the arguments of a tool, meta_call {"path", "args"} calls it.`
	nodes := t.rootOf(v).Children
	for i, n := range nodes {
		line := "\n- " + n.Path + colon(display.Fold(cmp.Or(n.Summary, display.FirstLine(n.Description))))
		more := fmt.Sprintf("\nand %d more", len(nodes)-i)
		if max > 0 && display.Units(text)+display.Units(line)+display.Units(more) > max {
			return text + more
		}
		text += line
	}
	return text
}
