package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxAliased limits the number of values of a YAML file with its aliases expanded,
// so that a small file cannot become a huge document.
const maxAliased = 100_000

// yamlReader converts the parser's tree to ours. It stops at the first construct
// that it does not support.
type yamlReader struct {
	src     *source
	anchors map[string]ast.Node
	open    map[ast.Node]bool // anchored values being read, to see one inside itself
	count   int
	err     *Error
}

// parseYAML parses one YAML document and expands aliases and merge keys.
func parseYAML(src *source) (root *node, failure *Error) {
	// There are inputs that the parser panics on, and a config must not crash the
	// process that reloads it.
	defer func() {
		if r := recover(); r != nil {
			root, failure = nil, &Error{File: src.name, Line: 1, Column: 1, Err: errors.New("malformed YAML"), Hint: "the YAML parser could not make sense of the file"}
		}
	}()
	file, err := parser.ParseBytes(src.data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, yamlError(src, err)
	}
	y := &yamlReader{src: src, anchors: map[string]ast.Node{}, open: map[ast.Node]bool{}}
	root = y.document(file)
	if y.err != nil {
		return nil, y.err
	}
	return root, nil
}

// yamlError keeps the parser's message and position but not its excerpt of the
// file, which may contain a secret.
func yamlError(src *source, err error) *Error {
	e := &Error{File: src.name, Line: 1, Column: 1, Err: errors.New("malformed YAML")}
	var detail yaml.Error
	if !errors.As(err, &detail) {
		return e
	}
	e.Err = errors.New("malformed YAML: " + detail.GetMessage())
	p := src.clamp(tokenPlace(detail.GetToken()))
	e.Line, e.Column = p.line, p.col
	return e
}

func (y *yamlReader) document(file *ast.File) *node {
	var root *node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case root != nil:
			y.fail(doc.Body, "a second YAML document", "a config is one document; remove what follows ---")
		default:
			root = y.node(doc.Body)
		}
	}
	if root == nil {
		return &node{kind: null, at: pos{1, 1}}
	}
	return root
}

func (y *yamlReader) fail(n ast.Node, what, hint string) {
	if y.err == nil {
		p := y.src.clamp(place(n))
		y.err = &Error{File: y.src.name, Line: p.line, Column: p.col, Err: errors.New("malformed YAML: " + what), Hint: hint}
	}
}

// place is the position of a value. For a block mapping it is the first key; the
// parser gives the first colon.
func place(n ast.Node) pos {
	switch v := n.(type) {
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			return place(v.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return place(v.Key)
	}
	return tokenPlace(n.GetToken())
}

func tokenPlace(tk *token.Token) pos {
	if tk == nil || tk.Position == nil {
		return pos{1, 1}
	}
	return pos{tk.Position.Line, tk.Position.Column}
}

func (y *yamlReader) node(n ast.Node) *node {
	y.count++
	if y.count > maxAliased {
		y.fail(n, "aliases make the document too large", "write fewer aliases of aliases")
	}
	if y.err != nil || n == nil {
		return &node{}
	}
	out := &node{at: place(n)}
	switch v := n.(type) {
	case *ast.MappingNode:
		out.kind, out.members = object, y.members(v.Values)
	case *ast.MappingValueNode:
		out.kind, out.members = object, y.members([]*ast.MappingValueNode{v})
	case *ast.SequenceNode:
		out.kind = list
		for _, item := range v.Values {
			out.items = append(out.items, y.node(item))
		}
	case *ast.AnchorNode:
		y.anchors[v.Name.GetToken().Value] = v.Value
		return y.anchored(v, v.Value)
	case *ast.AliasNode:
		return y.anchored(v, y.anchors[v.Value.GetToken().Value])
	case *ast.TagNode:
		return y.tagged(v)
	default:
		y.scalar(out, n)
	}
	return out
}

func (y *yamlReader) scalar(out *node, n ast.Node) {
	switch v := n.(type) {
	case *ast.StringNode:
		out.kind, out.scalar = text, v.Value
	case *ast.LiteralNode:
		out.kind, out.scalar = text, v.Value.Value
	case *ast.IntegerNode:
		out.kind, out.scalar = number, numeral(v.Token.Value, fmt.Sprint(v.Value))
	case *ast.FloatNode:
		out.kind, out.scalar = number, numeral(v.Token.Value, strconv.FormatFloat(v.Value, 'g', -1, 64))
	case *ast.BoolNode:
		out.kind, out.scalar = boolean, strconv.FormatBool(v.Value)
	case *ast.NullNode:
		out.kind = null
	case *ast.InfinityNode, *ast.NanNode:
		// JSON has no such numbers. As strings they are rejected where a number
		// is wanted.
		out.kind, out.scalar = text, v.GetToken().Value
	default:
		y.fail(n, "a construct that configs do not use", "write it as plain keys, lists and text")
	}
}

// numeral returns a number as it is written if that is valid JSON, and its value
// otherwise, as for 0x1F.
func numeral(written, value string) string {
	if json.Valid([]byte(written)) {
		return written
	}
	return value
}

// members reads the keys of a mapping. Keys merged in with << come after the
// mapping's own, which override them.
func (y *yamlReader) members(values []*ast.MappingValueNode) []member {
	var own, merged []member
	for _, v := range values {
		if v.Key.IsMergeKey() {
			merged = append(merged, y.merged(v.Value)...)
			continue
		}
		own = append(own, member{key: y.key(v.Key), at: place(v.Key), value: y.node(v.Value)})
	}
	taken := map[string]bool{}
	for _, m := range own {
		taken[m.key] = true
	}
	for _, m := range merged {
		if !taken[m.key] {
			taken[m.key] = true
			own = append(own, m)
		}
	}
	return own
}

// merged returns the keys that << merges in: those of one mapping, or of several,
// of which earlier ones override later ones.
func (y *yamlReader) merged(value ast.Node) []member {
	switch n := y.node(value); n.kind {
	case object:
		return n.members
	case list:
		var all []member
		for _, item := range n.items {
			all = append(all, item.members...)
		}
		return all
	default:
		y.fail(value, "<< without a mapping to merge", "write <<: *NAME, with &NAME on a mapping")
		return nil
	}
}

func (y *yamlReader) key(k ast.MapKeyNode) string {
	switch v := k.(type) {
	case *ast.StringNode:
		return v.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return k.GetToken().Value
	default:
		y.fail(k, "a key that is not text", "write keys as plain text")
		return ""
	}
}

func (y *yamlReader) anchored(n, value ast.Node) *node {
	switch {
	case value == nil:
		y.fail(n, "an alias of nothing", "put &NAME on the value before *NAME refers to it")
		return &node{}
	case y.open[value]:
		y.fail(n, "an alias inside what it stands for", "write the value out")
		return &node{}
	}
	y.open[value] = true
	defer delete(y.open, value)
	return y.node(value)
}

// tagged reads values with standard tags like !!str, and rejects other tags.
func (y *yamlReader) tagged(v *ast.TagNode) *node {
	n := y.node(v.Value)
	switch v.Start.Value {
	case "!!str":
		if n.kind == boolean || n.kind == number {
			n.kind, n.scalar = text, v.Value.GetToken().Value
		}
	case "!!int", "!!float", "!!bool", "!!null", "!!seq", "!!map":
	default:
		y.fail(v, "a tag that configs do not use", "remove it")
	}
	return n
}
