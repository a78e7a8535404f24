package schema

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// tree decodes the tree: a list of nodes, or the root.
func (r *reading) tree(docPath string, n *syntax.Node, p **Node) {
	root := &Node{Path: "/", Type: "node"}
	switch n.Kind {
	case syntax.List:
		r.list(docPath, n, reflect.ValueOf(&root.Children).Elem(), field{})
		r.checkNodes(docPath, n.Items, root, map[string]syntax.Pos{"/": n.At})
	case syntax.Object:
		r.plain(docPath, n, reflect.ValueOf(root).Elem(), field{})
		if place := n.Get("path"); isKnownText(place) && root.Path != "/" {
			r.fail(place.At, syntax.Below(docPath, "path"), "the root is not /", "write / or make tree a list of nodes")
		}
		r.checkNode(docPath, n, root, map[string]syntax.Pos{})
	default:
		r.fail(n.At, docPath, "this is "+n.Kind.String(), "want a list of nodes, or one node with the path /")
	}
	*p = root
}

// mountSources adds the servers of the tree's sources that have a command of their own, and
// sets the server of each source.
func (c *Config) mountSources(r *reading) {
	c.Tree.walk(func(n *Node) {
		s := n.Source
		switch {
		case s == nil:
			return
		case s.Command == "":
			s.Server = s.MCP
			return
		}
		server := c.Defaults
		server.Name = c.freeName(n.Path)
		server.Mounted, server.Transport, server.Load = n.Path, Stdio, LoadEager
		server.Command, server.Args = "/bin/sh", []string{"-c", s.Command}
		server.ToolFilter, server.ToolOverrides, server.PathAliases = s.ToolFilter, s.ToolOverrides, s.PathAliases
		server.Off, server.Disabled = s.Off, s.Off != nil
		s.Server = server.Name
		c.Origins[server.Name] = Origin{File: r.path, Line: r.sources[s].at.Line}
		c.Servers = append(c.Servers, server)
	})
}

// freeName returns an unused name for the server of a node, derived from its path: /repo/read
// becomes repo-read.
func (c *Config) freeName(path string) string {
	base := cmp.Or(ServerName(path), "root")
	name := base
	for n := 2; ; n++ {
		if _, taken := c.Origins[name]; !taken {
			return name
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}

// walk calls f for the node and all its descendants, parents first.
func (n *Node) walk(f func(*Node)) {
	f(n)
	for i := range n.Children {
		n.Children[i].walk(f)
	}
}

// checkNodes checks the children of parent; items are their nodes in the file. positions maps
// the paths seen so far to their positions.
func (r *reading) checkNodes(docPath string, items []*syntax.Node, parent *Node, positions map[string]syntax.Pos) {
	kept := parent.Children[:0]
	for i, n := range items {
		inner := syntax.Item(docPath, i)
		r.checkPath(syntax.Below(inner, "path"), n.Get("path"), parent, positions)
		v := &parent.Children[i]
		r.checkNode(inner, n, v, positions)
		if off := r.off[syntax.Below(inner, "path")]; off != nil {
			r.warn(n.Get("path").At, syntax.Below(inner, "path"), off.Why()+": the node is left out, with all that is below it", off.Hint)
			continue
		}
		kept = append(kept, *v)
	}
	parent.Children = kept
}

func (r *reading) checkNode(docPath string, n *syntax.Node, v *Node, positions map[string]syntax.Pos) {
	for key, text := range map[string]*string{"summary": &v.Summary, "description": &v.Description} {
		if off := r.off[syntax.Below(docPath, key)]; off != nil {
			r.warn(n.Get(key).At, syntax.Below(docPath, key), off.Why()+": the text is left out", off.Hint)
			*text = ""
		}
	}
	if v.Source != nil {
		source := n.Get("source")
		v.Source.Off = r.off[syntax.Below(docPath, "source")]
		r.sources[v.Source] = place{syntax.Below(docPath, "source"), source.At}
		r.checkSource(syntax.Below(docPath, "source"), source, v.Source)
	}
	r.checkNodes(syntax.Below(docPath, "children"), n.ItemsOf("children"), v, positions)
}

func (r *reading) checkPath(docPath string, n *syntax.Node, parent *Node, positions map[string]syntax.Pos) {
	if !isKnownText(n) {
		return
	}
	first, taken := positions[n.Scalar]
	switch {
	case !strings.HasPrefix(n.Scalar, "/") || path.Clean(n.Scalar) != n.Scalar:
		r.fail(n.At, docPath, "this is not an absolute path", "write it like /repo/read, without a slash at the end")
	case taken:
		r.fail(n.At, docPath, fmt.Sprintf("line %d already has a node with this path", first.Line), "give one of them another")
	case !strings.HasPrefix(n.Scalar, strings.TrimSuffix(parent.Path, "/")+"/"):
		r.warn(n.At, docPath, "this path is not below the node that holds it", "paths are absolute; is the beginning missing?")
	}
	if !taken {
		positions[n.Scalar] = n.At
	}
}

func (r *reading) checkSource(docPath string, n *syntax.Node, s *Source) {
	r.checkTools(docPath, n)
	r.literalSecrets(n)
	mounted, own := n.Get("mcp"), n.Has("command")
	switch {
	case mounted == nil && !own:
		r.fail(n.At, docPath, "nothing says where the tools come from", "give it a command, or mcp with the name of a server")
	case mounted != nil && own:
		r.fail(mounted.At, syntax.Below(docPath, "mcp"), "the source has a command too", "remove one of them")
	case mounted != nil:
		r.checkMountedServer(syntax.Below(docPath, "mcp"), mounted, s.MCP)
	}
}

func (r *reading) checkMountedServer(docPath string, n *syntax.Node, name string) {
	if _, known := r.positions[name]; known || r.inherits(name) || !isKnownText(n) {
		return
	}
	hint := "name one of the servers under mcp"
	if near := nearest.Word(name, slices.Sorted(maps.Keys(r.positions))); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	r.fail(n.At, docPath, "there is no server of this name", hint)
}
