package schema

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
)

// tree decodes the tree, which is a list of nodes or the root.
func (r *reading) tree(docPath string, n *node, p **Node) {
	root := &Node{Path: "/", Type: "node"}
	switch n.kind {
	case list:
		r.list(docPath, n, reflect.ValueOf(&root.Children).Elem(), field{})
		r.checkNodes(docPath, n.items, root, map[string]pos{"/": n.at})
	case object:
		r.plain(docPath, n, reflect.ValueOf(root).Elem(), field{})
		if place := n.get("path"); isKnownText(place) && root.Path != "/" {
			r.fail(place.at, below(docPath, "path"), "the root is not /", "write / or make tree a list of nodes")
		}
		r.checkNode(docPath, n, root, map[string]pos{})
	default:
		r.fail(n.at, docPath, "this is "+n.kind.String(), "want a list of nodes, or one node with the path /")
	}
	*p = root
}

// checkNodes checks the children of parent, which items are in the file. positions
// maps the paths seen so far to their positions.
func (r *reading) checkNodes(docPath string, items []*node, parent *Node, positions map[string]pos) {
	for i, n := range items {
		inner := at(docPath, i)
		r.checkPath(below(inner, "path"), n.get("path"), parent, positions)
		r.checkNode(inner, n, &parent.Children[i], positions)
	}
}

func (r *reading) checkNode(docPath string, n *node, v *Node, positions map[string]pos) {
	if v.Source != nil {
		r.checkSource(below(docPath, "source"), n.get("source"), v.Source)
	}
	r.checkNodes(below(docPath, "children"), n.itemsOf("children"), v, positions)
}

func (r *reading) checkPath(docPath string, n *node, parent *Node, positions map[string]pos) {
	if !isKnownText(n) {
		return
	}
	first, taken := positions[n.scalar]
	switch {
	case !strings.HasPrefix(n.scalar, "/") || path.Clean(n.scalar) != n.scalar:
		r.fail(n.at, docPath, "this is not an absolute path", "write it like /repo/read, without a slash at the end")
	case taken:
		r.fail(n.at, docPath, fmt.Sprintf("line %d already has a node with this path", first.line), "give one of them another")
	case !strings.HasPrefix(n.scalar, strings.TrimSuffix(parent.Path, "/")+"/"):
		r.warn(n.at, docPath, "this path is not below the node that holds it", "paths are absolute; is the beginning missing?")
	}
	if !taken {
		positions[n.scalar] = n.at
	}
}

func (r *reading) checkSource(docPath string, n *node, s *Source) {
	r.checkTools(docPath, n)
	mounted, own := n.get("mcp"), n.has("command")
	switch {
	case mounted == nil && !own:
		r.fail(n.at, docPath, "nothing says where the tools come from", "give it a command, or mcp with the name of a server")
	case mounted != nil && own:
		r.fail(mounted.at, below(docPath, "mcp"), "the source has a command too", "remove one of them")
	case mounted != nil:
		r.checkMountedServer(below(docPath, "mcp"), mounted, s.MCP)
	}
}

func (r *reading) checkMountedServer(docPath string, n *node, name string) {
	if _, known := r.positions[name]; known || r.inherits(name) || !isKnownText(n) {
		return
	}
	hint := "name one of the servers under mcp"
	if near := Nearest(name, slices.Sorted(maps.Keys(r.positions))); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	r.fail(n.at, docPath, "there is no server of this name", hint)
}
