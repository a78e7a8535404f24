package tree

import (
	"github.com/dynmcp/dynmcp/aggregator/internal/results"
	"github.com/dynmcp/dynmcp/schema"
)

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
