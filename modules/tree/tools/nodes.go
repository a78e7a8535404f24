package tools

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/toolglob"
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

	// Settings that apply here in addition to those of the server.
	Filter    []string
	Overrides map[string]schema.ToolOverride
	Aliases   map[string]string

	pass toolglob.Filter
}

// A Tree shows a view as nodes, with tools as their leaves. The path of a tool is that of its
// node, a slash, and the name of the tool there.
type Tree struct {
	root  *Node // nil: one node for each server, see rootOf
	nodes map[string]*Node
}

// newTree returns the tree below root; if root is nil, the tree with a node for each
// server. In single-wrap mode the tools of the server are below the root itself.
func newTree(root *Node) *Tree {
	t := &Tree{root: root, nodes: map[string]*Node{}}
	if root != nil {
		t.add(root)
	}
	return t
}

func (t *Tree) add(n *Node) {
	t.nodes[n.Path] = n
	if n.Mount != nil {
		n.Mount.pass = toolglob.NewFilter(n.Mount.Filter)
	}
	for _, child := range n.Children {
		t.add(child)
	}
}

// rootOf returns the root of the tree for a view's hosts.
func (t *Tree) rootOf(v *catalog.View) *Node {
	if t.root != nil {
		return t.root
	}
	root := &Node{Path: "/"}
	if only, ok := v.Single(); ok {
		root.Summary, root.Mount = only.Intro, &Mount{Server: only.Name}
		return root
	}
	for _, server := range v.Servers() {
		root.Children = append(root.Children, nodeOf(server))
	}
	return root
}

// known reports whether a server's listing is known from this run or an earlier one.
func known(s catalog.ServerInfo) bool { return s.Loaded || s.Stored }

// nodeOf returns the node of a server in a tree that is not configured.
func nodeOf(s catalog.ServerInfo) *Node {
	return &Node{Path: "/" + s.Name, Summary: display.Fold(s.Description), Description: s.Description, Mount: &Mount{Server: s.Name, Note: s.Note}}
}

// node returns the node at a path, nil if there is none.
func (t *Tree) node(v *catalog.View, path string) *Node {
	switch {
	case t.root != nil:
		return t.nodes[path]
	case path == "/":
		return t.rootOf(v)
	}
	if _, single := v.Single(); single || len(path) < 2 {
		return nil
	}
	if server, ok := v.Server(path[1:]); ok {
		return nodeOf(server)
	}
	return nil
}

// A Place is the content of a path.
type Place struct {
	Node *Node
	Tool *catalog.Tool // as the mount shows it
	// Twice describes the conflict if several things have the path: then no tool is selected.
	Twice string
	// Server is the server whose listing determines the content of the path, or directly below it:
	// that of the node, or of the nearest node above. It may be "".
	Server string
}

// At returns the content of a path, which must match exactly.
func (t *Tree) At(v *catalog.View, path string) Place {
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

// Guess returns the only content that a name other than a path can mean: one without its first slash,
// or with another spelling of a server, or the name of a tool on other surfaces. Without a tool it
// has the server that may add it.
func (t *Tree) Guess(v *catalog.View, name string) Place {
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
			if bare || catalog.Alike(strings.TrimPrefix(path, "/"), trimmed) || tool.Spelled(trimmed) {
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

// Kind implements surface.Tree.
func (t *Tree) Kind(v *catalog.View, where string) string {
	switch here := t.At(v, path.Clean("/"+strings.TrimSpace(where))); {
	case here.Tool != nil:
		return "tool"
	case here.Node != nil:
		return "node"
	}
	return ""
}

// parent returns the path above another, "" above the root.
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

// named returns the tools that the mount shows under a name: usually one or none.
func (m *Mount) named(v *catalog.View, leaf string) []*catalog.Tool {
	var found []*catalog.Tool
	for _, t := range v.ServerTools(m.Server) {
		if m.leaf(t) == leaf && m.pass.Passes(t.Upstream, t.Access) {
			found = append(found, m.shown(t))
		}
	}
	return found
}

// tools returns all tools that the mount shows, by name.
func (m *Mount) tools(v *catalog.View) []*catalog.Tool {
	var all []*catalog.Tool
	for _, t := range v.ServerTools(m.Server) {
		if m.Note == "" && m.pass.Passes(t.Upstream, t.Access) {
			all = append(all, m.shown(t))
		}
	}
	slices.SortStableFunc(all, func(a, b *catalog.Tool) int { return strings.Compare(m.leaf(a), m.leaf(b)) })
	return all
}

func (m *Mount) leaf(t *catalog.Tool) string {
	if alias := m.Aliases[t.Upstream]; alias != "" {
		return alias
	}
	return t.Leaf
}

// shown returns the tool with the mount's overrides.
func (m *Mount) shown(t *catalog.Tool) *catalog.Tool {
	o, ok := m.Overrides[t.Upstream]
	if !ok {
		return t
	}
	changed := *t
	changed.Override(o)
	return &changed
}

// Servers returns the names of the servers that are mounted, in the order of the tree.
func (t *Tree) Servers(v *catalog.View) []string {
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

// Of returns the tree of a config: the configured one, or one with a node for each server.
func Of(cfg *schema.Config) *Tree {
	if cfg.Tree == nil {
		return newTree(nil)
	}
	return newTree(treeNode(cfg.Tree, cfg.Catalog.MaxResultChars))
}

func treeNode(n *schema.Node, most int) *Node {
	node := &Node{Path: n.Path, Summary: n.Summary, Description: n.Description}
	if s := n.Source; s != nil {
		node.Mount = &Mount{Server: s.Server}
		if s.Off != nil {
			node.Mount.Note = "(off: " + s.Off.Why() + ")"
		}
		if s.Command == "" { // otherwise these belong to the server
			node.Mount.Filter, node.Mount.Aliases = s.ToolFilter, s.PathAliases
			node.Mount.Overrides = results.Overrides(s.ToolOverrides, most)
		}
	}
	for i := range n.Children {
		node.Children = append(node.Children, treeNode(&n.Children[i], most))
	}
	return node
}
