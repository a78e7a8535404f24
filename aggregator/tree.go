package aggregator

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A treeView is the tree surface: three tools that never change, by which a model walks
// a tree whose leaves are the upstreams' tools.
type treeView struct {
	*Aggregator
	tree *catalog.Tree
}

func treeSurface(a *Aggregator, cfg *schema.Config) []tool {
	t := treeView{a, NewTree(cfg)}
	return []tool{
		{name: "meta_tree", call: t.list, definitions: fixed(define("meta_tree", treeDescription, treeInput, looksOnly))},
		{name: "meta_desc", call: t.describe, definitions: fixed(define("meta_desc", describeDescription, describeInput, looksOnly))},
		{name: "meta_call", means: t.call, definitions: fixed(define("meta_call", callDescription, callInput, ""))},
	}
}

const (
	treeDescription     = `Lists what is directly below a path of the tree of tools: nodes, which lead on, and tools. Begin with {"path": "/"}.`
	describeDescription = "Describes what is at a path of the tree: of a tool, what it does and the exact schema of its arguments; of a node, what is below it."
	callDescription     = "Calls the tool at a path of the tree, with arguments that fit the schema which meta_desc shows for that path."

	treeInput     = `{"type":"object","properties":{"path":{"type":"string","description":"Absolute path of a node, such as /repo.","default":"/"}},"additionalProperties":false}`
	describeInput = `{"type":"object","properties":{"path":{"type":"string","description":"Absolute path of a tool or node, as meta_tree shows it."}},"required":["path"],"additionalProperties":false}`
	callInput     = `{"type":"object","properties":{` +
		`"path":{"type":"string","description":"Absolute path of the tool, as meta_tree shows it."},` +
		`"args":{"type":"object","description":"Arguments of the tool, as its schema wants them.","additionalProperties":true}},` +
		`"required":["path"]}`
)

// NewTree returns the tree of a config: the one that it has, or one with a node for
// each server.
func NewTree(cfg *schema.Config) *catalog.Tree {
	if cfg.Tree == nil {
		return catalog.NewTree(nil)
	}
	return catalog.NewTree(treeNode(cfg.Tree, cfg.Catalog.MaxResultChars))
}

func treeNode(n *schema.Node, most int) *catalog.Node {
	node := &catalog.Node{Path: n.Path, Summary: n.Summary, Description: n.Description}
	if s := n.Source; s != nil {
		node.Mount = &catalog.Mount{Server: s.Server}
		if s.Off != nil {
			node.Mount.Note = "(off: " + s.Off.Why() + ")"
		}
		if s.Command == "" { // else these are the server's own
			node.Mount.Filter, node.Mount.Aliases = s.ToolFilter, s.PathAliases
			node.Mount.Overrides = overrides(s.ToolOverrides, most)
		}
	}
	for i := range n.Children {
		node.Children = append(node.Children, treeNode(&n.Children[i], most))
	}
	return node
}

// list answers meta_tree.
func (t treeView) list(s *session, r *host.Request, p callParams) {
	where, err := pathArgument(p.arguments.In(p.all), "/")
	if err != nil {
		refuseArguments(r, "meta_tree", err)
		return
	}
	t.show(s, r, where, func(*catalog.Tool) json.RawMessage {
		return errorResult(fmt.Sprintf(`%s is a tool, not a node: meta_desc {"path": %s} shows its arguments, meta_call calls it.`, where, wire.Quote(where)))
	}, t.tree.Children)
}

// describe answers meta_desc.
func (t treeView) describe(s *session, r *host.Request, p callParams) {
	where, err := pathArgument(p.arguments.In(p.all), "")
	if err != nil {
		refuseArguments(r, "meta_desc", err)
		return
	}
	t.show(s, r, where, func(tool *catalog.Tool) json.RawMessage {
		s.show(tool)
		return catalog.TextResult(t.tree.DescribeTool(where, tool))
	}, t.tree.DescribeNode)
}

// show answers with what is at a path: a tool, a node, or that there is neither.
func (t treeView) show(s *session, r *host.Request, where string, ofTool func(*catalog.Tool) json.RawMessage, ofNode func(*catalog.View, *catalog.Node) (text, note string)) {
	t.atPlace(s, r, where, func(view *catalog.View, here catalog.Place, failed error) {
		switch {
		case here.Twice != "" && here.Node == nil:
			r.Reply(errorResult(ambiguous(where, here)), nil)
		case here.Tool != nil:
			r.Reply(ofTool(here.Tool), nil)
		case here.Node == nil:
			r.Reply(errorResult(t.tree.Unknown(view, where)), nil)
		default:
			text, note := ofNode(view, here.Node)
			missing := ""
			if failed != nil {
				missing = "Its tools are not there: " + s.explain(failed)
			}
			r.Reply(catalog.TextResult(said(text, note, missing)...), nil)
		}
	})
}

// atPlace calls answer with what is at a path, which is an inquiry about the server on
// which that depends. If it cannot be loaded, that is the answer, but where there are
// other things below the path: then failed says it.
func (t treeView) atPlace(s *session, r *host.Request, where string, answer func(view *catalog.View, here catalog.Place, failed error)) {
	look := func() (*catalog.View, catalog.Place) {
		view := s.view()
		return view, t.tree.At(view, where)
	}
	_, here := look()
	inquiry{server: here.Server, asText: !s.tree, enough: func() bool {
		_, here := look()
		return here.Tool != nil
	}, answer: func() {
		view, here := look()
		var failed error
		if gone := s.givenUp(t.set.Get(here.Server)); gone != "" {
			failed = errors.New(strings.TrimSpace(gone))
		}
		answer(view, here, failed)
	}, failed: func(err error) bool {
		view, here := look()
		if here.Tool == nil && (here.Node == nil || len(here.Node.Children) == 0) {
			return false
		}
		answer(view, here, err)
		return true
	}}.ask(s, r)
}

// said are the texts that say something.
func said(all ...string) []string {
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

func ambiguous(where string, here catalog.Place) string {
	return fmt.Sprintf("%s is the path of %s, so none of them can be meant. Whoever runs dynmcp gives one another name in path_aliases. (outcome not_sent: nothing was called)", where, here.Twice)
}

var callNames = innerNames{"path", "args", `{"path": "/node/tool", "args": {…}}`}

// call reads what meta_call calls.
func (t treeView) call(p callParams, outline *wire.Outline) (toolCall, error) {
	where, input, err := innerArguments(p.arguments.In(p.all), outline, callNames)
	return toolCall{params: p, name: where, tree: t.tree, input: input}, err
}

// unknownPath answers a call of a path at which there is no tool.
func unknownPath(tree *catalog.Tree, view *catalog.View, where string) string {
	switch here := tree.At(view, where); {
	case here.Twice != "":
		return ambiguous(where, here)
	case here.Node != nil:
		return fmt.Sprintf(`%s is a node, not a tool: meta_tree {"path": %s} lists what is below it. (outcome not_sent: nothing was called)`, where, wire.Quote(where))
	}
	return tree.Unknown(view, where) + "\n(outcome not_sent: nothing was called)"
}

// refuseInput answers a call of the tool at a path with what in its input does not fit
// the schema.
func refuseInput(s *session, r *host.Request, where string, wrong []string) {
	text := fmt.Sprintf("The arguments do not fit the schema of %s:\n- %s", where, strings.Join(wrong, "\n- "))
	if s.tree {
		r.Reply(nil, transports.Refusal(wire.CodeInvalidParams, text, transports.NotSent))
		return
	}
	r.Reply(errorResult(fmt.Sprintf("%s\nmeta_desc {\"path\": %s} shows it. (outcome not_sent: nothing was called)", text, wire.Quote(where))), nil)
}

// pathArgument reads the one argument, path, as it is meant: a slash too many or too
// few changes nothing. Where it is missing it is otherwise, or with "" an error.
func pathArgument(arguments json.RawMessage, otherwise string) (string, error) {
	in := readArguments(arguments, "path")
	where := strings.TrimSpace(in.text("path"))
	switch {
	case in.errs != nil:
		return "", in.err()
	case where != "":
		return path.Clean("/" + where), nil
	case otherwise == "":
		return "", errors.New(`"path" is missing`)
	}
	return otherwise, nil
}
