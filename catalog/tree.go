package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/schema"
)

// A Node is a node of the configured tree.
type Node struct {
	Path                 string // absolute
	Summary, Description string // the operator's words
	Children             []*Node
	Mount                *Mount // nil: only nodes are below it
}

// A Mount shows the tools of a server as the leaves below a node.
type Mount struct {
	Server string
	Note   string // why the mount is off, in words; "" if it is not

	// What holds here beside what the server's own declaration says.
	Filter    []string
	Overrides map[string]schema.ToolOverride
	Aliases   map[string]string

	pass filter
}

// A Tree is a way to look at a view: nodes, and tools that are their leaves. A path is
// a node's, or that of a node, a slash, and the name of a tool that is mounted there.
type Tree struct {
	root  *Node // nil: one node for each server, see rootOf
	nodes map[string]*Node
}

// NewTree returns the tree below root, or with nil the one that has a node for each
// server. In single-wrap mode the tools of that server are below the root itself.
func NewTree(root *Node) *Tree {
	t := &Tree{root: root, nodes: map[string]*Node{}}
	if root != nil {
		t.add(root)
	}
	return t
}

func (t *Tree) add(n *Node) {
	t.nodes[n.Path] = n
	if n.Mount != nil {
		n.Mount.pass = newFilter(n.Mount.Filter)
	}
	for _, child := range n.Children {
		t.add(child)
	}
}

// rootOf returns the root of the tree that a view's hosts see.
func (t *Tree) rootOf(v *View) *Node {
	if t.root != nil {
		return t.root
	}
	root := &Node{Path: "/"}
	if p := v.bare(); p != nil {
		root.Summary, root.Mount = p.intro, &Mount{Server: p.server.Name}
		return root
	}
	for _, p := range v.parts {
		root.Children = append(root.Children, p.node())
	}
	return root
}

// known reports whether it is known what the server lists, now or from an earlier run.
func (p *part) known() bool { return p.info.Loaded || p.info.Stored }

// node is the server's node in a tree that is not configured.
func (p *part) node() *Node {
	return &Node{Path: "/" + p.server.Name, Summary: p.described, Description: p.server.Description, Mount: &Mount{Server: p.server.Name, Note: p.server.Note}}
}

// node returns the node of a path, nil if there is none.
func (t *Tree) node(v *View, path string) *Node {
	switch {
	case t.root != nil:
		return t.nodes[path]
	case path == "/":
		return t.rootOf(v)
	case v.bare() == nil && v.server[path[min(1, len(path)):]] != nil:
		return v.server[path[1:]].node()
	}
	return nil
}

// A Place is what there is at a path.
type Place struct {
	Node *Node
	Tool *Tool // as the mount shows it
	// Twice says what has the path, if there are several: then no tool can be meant.
	Twice string
	// Server is the one whose listing decides what is here, or right below: that of the
	// node, or of the nearest node above. It may be "".
	Server string
}

// At returns what there is at a path, which must be written exactly so.
func (t *Tree) At(v *View, path string) Place {
	var here Place
	var claims []string
	if here.Node = t.node(v, path); here.Node != nil {
		claims = append(claims, "the node "+path)
		if m := here.Node.Mount; m != nil && m.Note == "" {
			here.Server = m.Server
		}
	}
	for above := parent(path); above != ""; above = parent(above) {
		n := t.node(v, above)
		if n == nil || n.Mount == nil || n.Mount.Note != "" {
			continue
		}
		if here.Node == nil {
			here.Server = cmp.Or(here.Server, n.Mount.Server)
		}
		leaf := strings.TrimPrefix(strings.TrimPrefix(path, above), "/")
		for _, tool := range n.Mount.named(v, leaf) {
			here.Tool = tool
			claims = append(claims, claim(tool))
		}
	}
	if len(claims) > 1 {
		here.Twice, here.Tool = strings.Join(claims, " and "), nil
	}
	return here
}

// Meant returns what a name can only mean that is no path: one without its first slash, or
// with a server spelled otherwise, or the name of a tool as other surfaces have it. Without
// a tool it has the server that may bring it.
func (t *Tree) Meant(v *View, name string) Place {
	trimmed := strings.Trim(name, "/")
	var paths []string
	t.walk(t.rootOf(v), func(n *Node) {
		if n.Mount == nil {
			return
		}
		for _, tool := range n.Mount.tools(v) {
			leaf := n.Mount.leaf(tool)
			path := n.join(leaf)
			bare := v.Complete() && (strings.EqualFold(name, leaf) || strings.EqualFold(name, tool.Upstream))
			if bare || alikeNames(strings.TrimPrefix(path, "/"), trimmed) || tool.spelled(trimmed) {
				paths = append(paths, path)
			}
		}
	})
	switch len(paths) {
	case 0:
		return Place{Server: cmp.Or(t.At(v, "/"+trimmed).Server, v.ServerFor(trimmed))}
	case 1:
		return t.At(v, paths[0])
	}
	return Place{}
}

// parent is the path above another, "" above the root.
func parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	switch {
	case i < 0 || path == "/":
		return ""
	case i == 0:
		return "/"
	}
	return path[:i]
}

// named returns the tools that the mount shows under a name: mostly one or none.
func (m *Mount) named(v *View, leaf string) []*Tool {
	var found []*Tool
	for _, t := range v.ServerTools(m.Server) {
		if m.leaf(t) == leaf && m.pass.passes(t.Upstream, t.Access) {
			found = append(found, m.shown(t))
		}
	}
	return found
}

// tools returns all tools that the mount shows, by name.
func (m *Mount) tools(v *View) []*Tool {
	var all []*Tool
	for _, t := range v.ServerTools(m.Server) {
		if m.Note == "" && m.pass.passes(t.Upstream, t.Access) {
			all = append(all, m.shown(t))
		}
	}
	slices.SortStableFunc(all, func(a, b *Tool) int { return strings.Compare(m.leaf(a), m.leaf(b)) })
	return all
}

func (m *Mount) leaf(t *Tool) string {
	if alias := m.Aliases[t.Upstream]; alias != "" {
		return alias
	}
	return t.Leaf
}

// shown returns the tool as the mount's overrides make it.
func (m *Mount) shown(t *Tool) *Tool {
	o, ok := m.Overrides[t.Upstream]
	if !ok {
		return t
	}
	changed := *t
	changed.override(o)
	return &changed
}

// Problems says what is wrong with the mounts of servers that are listed: paths that
// several things have, none of which can be used then, and beside these conflicts
// aliases and overrides that are for no tool.
func (t *Tree) Problems(v *View) (conflicts, warnings []string) {
	claims := map[string][]string{}
	t.walk(t.rootOf(v), func(n *Node) {
		claims[n.Path] = append(claims[n.Path], "the node "+n.Path)
		m := n.Mount
		if m == nil || m.Note != "" || v.server[m.Server] == nil || !v.server[m.Server].known() {
			return
		}
		for _, tool := range m.tools(v) {
			path := n.join(m.leaf(tool))
			claims[path] = append(claims[path], claim(tool))
		}
		exists := map[string]bool{}
		for _, tool := range v.ServerTools(m.Server) {
			exists[tool.Upstream] = true
		}
		for _, name := range slices.Sorted(maps.Keys(m.Aliases)) {
			if !exists[name] {
				warnings = append(warnings, fmt.Sprintf("tree: %s: alias %s is for tool %s, which %s does not have", n.Path, shown(m.Aliases[name]), shown(name), m.Server))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m.Overrides)) {
			if !exists[name] {
				warnings = append(warnings, fmt.Sprintf("tree: %s: override is for tool %s, which %s does not have", n.Path, shown(name), m.Server))
			}
		}
	})
	for _, path := range slices.Sorted(maps.Keys(claims)) {
		if all := claims[path]; len(all) > 1 {
			conflicts = append(conflicts, fmt.Sprintf("tree: %s is the path of %s; give one of them another name in path_aliases", path, strings.Join(all, " and ")))
		}
	}
	return conflicts, warnings
}

// claim names a tool whose path something else has.
func claim(t *Tool) string { return fmt.Sprintf("tool %s of %s", shown(t.Upstream), t.Server) }

// Servers returns the names of the servers that are mounted, in the order of the tree.
func (t *Tree) Servers(v *View) []string {
	var names []string
	t.walk(t.rootOf(v), func(n *Node) {
		if n.Mount != nil && n.Mount.Note == "" && !slices.Contains(names, n.Mount.Server) {
			names = append(names, n.Mount.Server)
		}
	})
	return names
}

func (t *Tree) walk(n *Node, f func(*Node)) {
	f(n)
	for _, child := range n.Children {
		t.walk(child, f)
	}
}

func (n *Node) join(leaf string) string { return strings.TrimSuffix(n.Path, "/") + "/" + leaf }

// Dump returns the whole tree as text: a line for each node and each tool.
func (t *Tree) Dump(v *View) string {
	var b strings.Builder
	t.walk(t.rootOf(v), func(n *Node) {
		fmt.Fprintf(&b, "node %s%s\n", n.Path, colon(n.summary(v)))
		if n.Mount != nil {
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

// summary is the node's line: the operator's words, or what the server says of itself,
// and what is the matter with the server.
func (n *Node) summary(v *View) string {
	words := fold(cmp.Or(n.Summary, firstLine(n.Description)))
	m := n.Mount
	if m == nil {
		return words
	}
	p := v.server[m.Server]
	var state string
	switch {
	case m.Note != "":
		state = m.Note
	case p == nil:
		state = "(not available)"
	case p.info.Down != "":
		state = "(could not be started: " + cut(p.info.Down, lineWidth) + ")"
	case !p.known() && p.server.Lazy:
		state = "(not loaded yet: to look below loads it)"
	case !p.known():
		state = "(still starting)"
	}
	if p != nil {
		words = cmp.Or(words, p.intro)
		if p.server.Note != "" && m.Note == "" {
			state = p.server.Note
		}
	}
	return strings.TrimSpace(words + " " + state)
}

// children are a node's entries in an answer: nodes first, then tools, each by path.
func (t *Tree) children(v *View, n *Node) []treeEntry {
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

// encode returns the entries as a JSON array, one to a line.
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
		b.WriteString("\n" + brief("path", e.Path, "type", e.Type, "summary", summary))
	}
	return b.String() + "]"
}

// Children answers meta_tree for a node: what is right below it, as JSON text. An
// answer over 16 KB has no summaries. note says what is to be said beside: that, or why
// there is nothing.
func (t *Tree) Children(v *View, n *Node) (text, note string) {
	entries := t.children(v, n)
	if len(entries) == 0 {
		return "[]", "Nothing is below it" + colon(n.summary(v)) + "."
	}
	if text = encodeEntries(entries, true); len(text) > pageBytes {
		text, note = encodeEntries(entries, false), fmt.Sprintf("The summaries of these %d are left out to keep this short: meta_desc shows that of each.", len(entries))
	}
	return text, note
}

// DescribeNode answers meta_desc for a node.
func (t *Tree) DescribeNode(v *View, n *Node) (text, note string) {
	children, note := t.Children(v, n)
	head := brief("path", n.Path, "type", "node", "summary", n.summary(v), "description", strings.TrimSpace(clean(n.Description)))
	return strings.TrimSuffix(head, "}") + `,"children":` + children + "}", note
}

// DescribeTool answers meta_desc for the tool of a path: its input schema is the
// upstream's, exactly.
func (t *Tree) DescribeTool(path string, tool *Tool) string {
	head := brief("path", path, "type", "tool", "summary", tool.Summary, "description", strings.TrimSpace(clean(tool.Description)))
	text := strings.TrimSuffix(head, "}") + `,` + "\n" + `"args_schema":` + cmp.Or(visible(tool.InputSchema), `{"type":"object"}`)
	if tool.ExampleArgs != nil {
		text += `,` + "\n" + `"example_args":` + visible(tool.ExampleArgs)
	}
	return text + "}"
}

// Unknown answers a path at which there is nothing, or nothing that fits: what is
// nearest, and what is below that.
func (t *Tree) Unknown(v *View, path string) string {
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
		fmt.Fprintf(&b, "%s is a tool: nothing is below it. meta_desc {\"path\": %s} shows its arguments.", above, quote(above))
		return b.String()
	}
	fmt.Fprintf(&b, "The nearest that exists is %s", n.Path)
	entries := t.children(v, n)
	if len(entries) == 0 {
		fmt.Fprintf(&b, ", with nothing below it%s.", colon(n.summary(v)))
		return b.String()
	}
	b.WriteString(". Below it:\n")
	slices.SortStableFunc(entries, func(x, y treeEntry) int { // what is spelled alike first
		asked := []rune(strings.ToLower(path))
		return cmp.Compare(closeness(asked, y.Path), closeness(asked, x.Path))
	})
	for _, e := range entries[:min(len(entries), othersShown)] {
		fmt.Fprintf(&b, "- %s (%s)\n", e.Path, e.Type)
	}
	if more := len(entries) - othersShown; more > 0 {
		fmt.Fprintf(&b, "and %d more: meta_tree {\"path\": %s} lists all.\n", more, quote(n.Path))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// whyHidden says why there is no tool at a path though its server lists one.
func (t *Tree) whyHidden(v *View, path string) string {
	for above := parent(path); above != ""; above = parent(above) {
		n := t.node(v, above)
		if n == nil || n.Mount == nil || n.Mount.Note != "" {
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(path, above), "/")
		if !n.Mount.pass.passes(name, Destructive) { // of a tool that is not offered nothing better is known
			continue
		}
		if p := v.server[n.Mount.Server]; p != nil && !p.server.Bare {
			name = n.Mount.Server + "/" + name
		}
		if why := v.whyHidden(name); why != "" {
			return why
		}
	}
	return ""
}

// TreeIntro is what instructions say of the tree: how it is used and which nodes are at
// its top, in the operator's words, in at most max UTF-16 units, 0 being any number.
func (t *Tree) TreeIntro(v *View, max int) string {
	text := `The tools are the leaves of a tree. meta_tree {"path": "/"} lists what is below a path, meta_desc shows the arguments of a tool, meta_call {"path", "args"} calls it.`
	nodes := t.rootOf(v).Children
	for i, n := range nodes {
		line := "\n- " + n.Path + colon(fold(cmp.Or(n.Summary, firstLine(n.Description))))
		more := fmt.Sprintf("\nand %d more", len(nodes)-i)
		if max > 0 && Units(text)+Units(line)+Units(more) > max {
			return text + more
		}
		text += line
	}
	return text
}
