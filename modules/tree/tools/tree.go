// Package tools is a surface of three fixed tools, by which a model walks a tree whose leaves are the
// tools of the servers.
package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// Surface is the surface tree.
var Surface = surface.Kind{Name: schema.ExposeTree, Start: surface.Plain(newSurface)}

func newSurface(cfg *schema.Config) surface.Surface {
	t := Of(cfg)
	return surface.Surface{
		Tools: []surface.Tool{
			{Name: "meta_tree", Definitions: surface.Fixed("meta_tree", listDescription, listInput, surface.ReadOnly), Answer: t.list},
			{Name: "meta_desc", Definitions: surface.Fixed("meta_desc", describeDescription, describeInput, surface.ReadOnly), Answer: t.describe},
			{
				Name: "meta_call", Definitions: surface.Fixed("meta_call", callDescription, callInput, ""),
				Read: callArguments.Read,
				Target: &surface.Target{
					Surface: schema.ExposeTree, Way: way{tree: t}, Checks: true,
				},
			},
		},
		Texts: []surface.Texts{texts{tree: t, cfg: cfg}},
		Tree:  t,
	}
}

type texts struct {
	surface.NoTexts
	tree *Tree
	cfg  *schema.Config
}

func (t texts) Instructions(v *catalog.View) string { return t.tree.Intro(v, t.cfg.Catalog.MaxChars) }
func (t texts) HowToRead(string) string             { return "meta_desc" }

const (
	listDescription     = `Lists what is directly below a path of the tree of tools: nodes, which lead on, and tools. Begin with {"path": "/"}.`
	describeDescription = "Describes what is at a path of the tree: of a tool, what it does and the exact schema of its arguments; of a node, what is below it."
	callDescription     = "Calls the tool at a path of the tree, with arguments that fit the schema which meta_desc shows for that path."

	listInput     = `{"type":"object","properties":{"path":{"type":"string","description":"Absolute path of a node, such as /repo.","default":"/"}},"additionalProperties":false}`
	describeInput = `{"type":"object","properties":{"path":{"type":"string","description":"Absolute path of a tool or node, as meta_tree shows it."}},"required":["path"],"additionalProperties":false}`
	callInput     = `{"type":"object","properties":{` +
		`"path":{"type":"string","description":"Absolute path of the tool, as meta_tree shows it."},` +
		`"args":{"type":"object","description":"Arguments of the tool, as its schema wants them.","additionalProperties":true}},` +
		`"required":["path"]}`
)

// list answers meta_tree.
func (t *Tree) list(c *surface.Call) {
	t.answer(c, "/", func(where string, _ *catalog.Tool) {
		c.Fail(fmt.Sprintf(`%s is a tool, not a node: meta_desc {"path": %s} shows its arguments, meta_call calls it.`, where, wire.Quote(where)))
	}, t.Children)
}

// describe answers meta_desc.
func (t *Tree) describe(c *surface.Call) {
	t.answer(c, "", func(where string, tool *catalog.Tool) {
		c.Show(tool)
		c.Text(t.DescribeTool(where, tool))
	}, t.DescribeNode)
}

// answer answers with the content of the path in the arguments: a tool, a node, or that there is
// neither. It starts the server that determines the content. If that fails, the failure is the
// answer, unless there are other entries below the path.
func (t *Tree) answer(c *surface.Call, otherwise string, ofTool func(where string, tool *catalog.Tool), ofNode func(*catalog.View, *Node) (text, note string)) {
	where, err := pathArgument(c.Arguments, otherwise)
	if err != nil {
		c.InvalidArguments(err)
		return
	}
	reply := func(missing string) {
		view := c.View()
		switch here := t.At(view, where); {
		case here.Twice != "" && here.Node == nil:
			c.Fail(ambiguous(where, here))
		case here.Tool != nil:
			ofTool(where, here.Tool)
		case here.Node == nil:
			c.Fail(t.Unknown(view, where))
		default:
			text, note := ofNode(view, here.Node)
			if missing != "" {
				missing = "Its tools are not there: " + missing
			}
			c.Text(text, note, missing)
		}
	}
	server := t.At(c.View(), where).Server
	c.Wait(surface.Question{
		Server: server,
		Known:  func() bool { return t.At(c.View(), where).Tool != nil },
		Answer: func() { reply(strings.TrimSpace(c.GivenUp(t.At(c.View(), where).Server))) },
		Failed: func(err error) bool {
			here := t.At(c.View(), where)
			if here.Tool == nil && (here.Node == nil || len(here.Node.Children) == 0) {
				return false
			}
			reply(c.Explain(err))
			return true
		},
	})
}

func ambiguous(where string, here Place) string {
	return fmt.Sprintf("%s is the path of %s, so none of them can be called. The user who runs dynmcp can give one another name in path_aliases.", where, here.Twice)
}

var callArguments = surface.CallArguments{Tool: "path", Input: "args", Example: `{"path": "/node/tool", "args": {…}}`}

// A way calls tools by their paths.
type way struct {
	surface.AnyTool
	tree *Tree
}

func (way) HowToFit(path string) string {
	return fmt.Sprintf(`meta_desc {"path": %s} shows it.`, wire.Quote(path))
}

// Find returns the tool at a path, or the only one that the path can mean.
func (w way) Find(v *catalog.View, path string) (tool *catalog.Tool, server string) {
	here := w.tree.At(v, path)
	if here.Tool == nil && here.Node == nil && here.Twice == "" {
		here = w.tree.Guess(v, path)
	}
	return here.Tool, here.Server
}

// Unknown answers a call of a path without a tool.
func (w way) Unknown(v *catalog.View, where string) string {
	switch here := w.tree.At(v, where); {
	case here.Twice != "":
		return ambiguous(where, here)
	case here.Node != nil:
		return fmt.Sprintf(`%s is a node, not a tool: meta_tree {"path": %s} lists what is below it.`, where, wire.Quote(where))
	}
	return w.tree.Unknown(v, where)
}

// pathArgument reads and normalizes the argument path: extra or missing slashes are ignored. If it
// is missing, it is otherwise, or an error if that is "".
func pathArgument(arguments json.RawMessage, otherwise string) (string, error) {
	in := surface.ReadArguments(arguments, "path")
	where := strings.TrimSpace(in.Text("path"))
	switch {
	case in.Errs != nil:
		return "", in.Err()
	case where != "":
		return path.Clean("/" + where), nil
	case otherwise == "":
		return "", errors.New(`"path" is missing`)
	}
	return otherwise, nil
}
