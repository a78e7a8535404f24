package syntax

import (
	"errors"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// IsTOML reports whether a file is read as TOML: by its name.
func IsTOML(name string) bool { return strings.HasSuffix(strings.ToLower(name), ".toml") }

// parseTOML reads TOML in the order of the file, with positions. Some hosts have it; it is not edited
// here.
func parseTOML(src *Source) (*Node, error) {
	var all map[string]any
	if err := toml.Unmarshal(src.Data, &all); err != nil { // the parser below does not look for duplicates
		at := Pos{1, 1}
		if detail, ok := errors.AsType[*toml.DecodeError](err); ok {
			at.Line, at.Col = detail.Position()
		}
		return nil, src.failure(at, "malformed TOML", "")
	}
	r := tomlReader{root: &Node{Kind: Object, At: Pos{1, 1}}}
	r.table = r.root
	r.parser.Reset(src.Data)
	for r.parser.NextExpression() {
		r.statement(r.parser.Expression())
	}
	if err := r.parser.Error(); err != nil {
		return nil, src.failure(Pos{1, 1}, "malformed TOML", "")
	}
	return r.root, nil
}

type tomlReader struct {
	parser      unstable.Parser
	root, table *Node // table is that of the last header
}

func (r *tomlReader) statement(e *unstable.Node) {
	switch e.Kind {
	case unstable.Table:
		holder, last := r.descend(r.root, e)
		r.table = r.inner(holder, last, Object)
	case unstable.ArrayTable:
		holder, last := r.descend(r.root, e)
		list := r.inner(holder, last, List)
		r.table = &Node{Kind: Object, At: last.At}
		list.Items = append(list.Items, r.table)
	case unstable.KeyValue:
		r.keyValue(r.table, e)
	}
}

func (r *tomlReader) keyValue(in *Node, e *unstable.Node) {
	holder, m := r.descend(in, e)
	m.Value = r.value(e.Value(), m.At)
	holder.Members = append(holder.Members, m)
}

// descend returns the object that holds the last of the keys of a statement, and a member for that key.
func (r *tomlReader) descend(in *Node, e *unstable.Node) (holder *Node, last Member) {
	for keys := e.Key(); keys.Next(); {
		key := keys.Node()
		at := r.parser.Shape(key.Raw).Start
		m := Member{Key: string(key.Data), At: Pos{at.Line, at.Column}}
		if keys.IsLast() {
			return in, m
		}
		if in = r.inner(in, m, Object); in.Kind == List {
			in = in.Items[len(in.Items)-1]
		}
	}
	return in, last
}

// inner returns the value at the key of m, which it adds if it is not there.
func (r *tomlReader) inner(in *Node, m Member, kind Kind) *Node {
	if n := in.Get(m.Key); n != nil {
		return n
	}
	m.Value = &Node{Kind: kind, At: m.At}
	in.Members = append(in.Members, m)
	return m.Value
}

func (r *tomlReader) value(v *unstable.Node, at Pos) *Node {
	out := &Node{At: at, Scalar: string(v.Data)}
	switch v.Kind {
	case unstable.Array:
		out.Kind, out.Scalar = List, ""
		for it := v.Children(); it.Next(); {
			out.Items = append(out.Items, r.value(it.Node(), at))
		}
	case unstable.InlineTable:
		out.Kind, out.Scalar = Object, ""
		for it := v.Children(); it.Next(); {
			r.keyValue(out, it.Node())
		}
	case unstable.Bool:
		out.Kind = Boolean
	case unstable.Integer:
		out.Kind = Number
		if number, err := strconv.ParseInt(out.Scalar, 0, 64); err == nil {
			out.Scalar = strconv.FormatInt(number, 10)
		}
	case unstable.Float:
		if number, err := strconv.ParseFloat(out.Scalar, 64); err == nil && number-number == 0 { // JSON has no infinity
			out.Kind, out.Scalar = Number, strconv.FormatFloat(number, 'g', -1, 64)
		} else {
			out.Kind = Text
		}
	default: // text, or a date
		out.Kind = Text
	}
	return out
}
