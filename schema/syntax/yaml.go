package syntax

import (
	"bytes"
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
	src     *Source
	anchors map[string]ast.Node
	open    map[ast.Node]bool // anchored values being read, to find one inside itself
	count   int
	err     error
}

// parseYAML parses one YAML document and expands aliases and merge keys.
func parseYAML(src *Source) (root *Node, err error) {
	// The parser panics on some inputs, and a config must not crash the process that
	// reloads it.
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, src.failure(Pos{1, 1}, "malformed YAML", "the YAML parser could not make sense of the file")
		}
	}()
	// The parser's positions after a comment that ends with a carriage return are wrong.
	file, err := parser.ParseBytes(bytes.ReplaceAll(src.Data, []byte("\r\n"), []byte("\n")), 0, parser.AllowDuplicateMapKey())
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

// yamlError returns the parser's message and position without its excerpt of the file, which
// may contain a secret.
func yamlError(src *Source, err error) error {
	var detail yaml.Error
	if !errors.As(err, &detail) {
		return src.failure(Pos{1, 1}, "malformed YAML", "")
	}
	return src.failure(tokenPlace(detail.GetToken()), "malformed YAML: "+detail.GetMessage(), "")
}

func (y *yamlReader) document(file *ast.File) *Node {
	var root *Node
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
		return &Node{Kind: Null, At: Pos{1, 1}}
	}
	return root
}

func (y *yamlReader) fail(n ast.Node, what, hint string) {
	if y.err == nil {
		y.err = y.src.failure(place(n), "malformed YAML: "+what, hint)
	}
}

// place returns the position of a value. For a block mapping it is that of the first key; the
// parser's is that of the first colon.
func place(n ast.Node) Pos {
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

func tokenPlace(tk *token.Token) Pos {
	if tk == nil || tk.Position == nil {
		return Pos{1, 1}
	}
	return Pos{tk.Position.Line, tk.Position.Column}
}

func (y *yamlReader) node(n ast.Node) *Node {
	y.count++
	if y.count > maxAliased {
		y.fail(n, "aliases make the document too large", "write fewer aliases of aliases")
	}
	if y.err != nil || n == nil {
		return &Node{}
	}
	out := &Node{At: place(n)}
	switch v := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		out.Kind, out.Members = Object, y.members(mappingValues(n))
	case *ast.SequenceNode:
		out.Kind = List
		for _, item := range v.Values {
			out.Items = append(out.Items, y.node(item))
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

func (y *yamlReader) scalar(out *Node, n ast.Node) {
	switch v := n.(type) {
	case *ast.StringNode:
		out.Kind, out.Scalar = Text, v.Value
	case *ast.LiteralNode:
		out.Kind, out.Scalar = Text, v.Value.Value
	case *ast.IntegerNode:
		out.Kind, out.Scalar = Number, numeral(v.Token.Value, fmt.Sprint(v.Value))
	case *ast.FloatNode:
		out.Kind, out.Scalar = Number, numeral(v.Token.Value, strconv.FormatFloat(v.Value, 'g', -1, 64))
	case *ast.BoolNode:
		out.Kind, out.Scalar = Boolean, strconv.FormatBool(v.Value)
	case *ast.NullNode:
		out.Kind = Null
	case *ast.InfinityNode, *ast.NanNode:
		// JSON has no such numbers. As strings they are rejected where a number
		// is wanted.
		out.Kind, out.Scalar = Text, v.GetToken().Value
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

// members reads the keys of a mapping. Keys merged by << come after the mapping's own, which
// override them.
func (y *yamlReader) members(values []*ast.MappingValueNode) []Member {
	var own, merged []Member
	for _, v := range values {
		if v.Key.IsMergeKey() {
			merged = append(merged, y.merged(v.Value)...)
			continue
		}
		own = append(own, Member{Key: y.key(v.Key), At: place(v.Key), Value: y.node(v.Value)})
	}
	taken := map[string]bool{}
	for _, m := range own {
		taken[m.Key] = true
	}
	for _, m := range merged {
		if !taken[m.Key] {
			taken[m.Key] = true
			own = append(own, m)
		}
	}
	return own
}

// merged returns the keys that << merges: those of one mapping, or of several, of which
// earlier ones override later ones.
func (y *yamlReader) merged(value ast.Node) []Member {
	switch n := y.node(value); n.Kind {
	case Object:
		return n.Members
	case List:
		var all []Member
		for _, item := range n.Items {
			all = append(all, item.Members...)
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

func (y *yamlReader) anchored(n, value ast.Node) *Node {
	switch {
	case value == nil:
		y.fail(n, "an alias of an unknown anchor", "put &NAME on the value before *NAME refers to it")
		return &Node{}
	case y.open[value]:
		y.fail(n, "an alias inside its own value", "write the value out")
		return &Node{}
	}
	y.open[value] = true
	defer delete(y.open, value)
	return y.node(value)
}

// tagged reads values with standard tags like !!str, and rejects other tags.
func (y *yamlReader) tagged(v *ast.TagNode) *Node {
	n := y.node(v.Value)
	switch v.Start.Value {
	case "!!str":
		if n.Kind == Boolean || n.Kind == Number {
			n.Kind, n.Scalar = Text, v.Value.GetToken().Value
		}
	case "!!int", "!!float", "!!bool", "!!null", "!!seq", "!!map":
	default:
		y.fail(v, "a tag that configs do not use", "remove it")
	}
	return n
}
