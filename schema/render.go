package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// entryNode returns a server as it is written in a file: the fields that are not
// zero, in the order of the type.
func entryNode(s Server) *syntax.Node { return structNode(reflect.ValueOf(s)) }

func structNode(v reflect.Value) *syntax.Node {
	n := &syntax.Node{Kind: syntax.Object}
	for _, f := range fieldsOf(v.Type()) {
		if inner := v.Field(f.index); !isEmpty(inner) {
			n.Members = append(n.Members, syntax.Member{Key: f.key, Value: valueNode(inner)})
		}
	}
	return n
}

func isEmpty(v reflect.Value) bool {
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

func valueNode(v reflect.Value) *syntax.Node {
	switch p := v.Interface().(type) {
	case time.Duration:
		return textNode(zeroUnits().ReplaceAllString(p.String(), "$1")) // 10m where Go writes 10m0s
	case Inherit:
		if p.None {
			return &syntax.Node{Kind: syntax.Boolean, Scalar: "false"}
		}
		return valueNode(reflect.ValueOf(p.Names))
	case Network:
		if p.None || len(p.Hosts) == 0 {
			return textNode(map[bool]string{true: "none", false: "all"}[p.None])
		}
		return valueNode(reflect.ValueOf(p.Hosts))
	}
	switch v.Kind() {
	case reflect.Pointer:
		return valueNode(v.Elem())
	case reflect.Struct:
		return structNode(v)
	case reflect.Slice:
		n := &syntax.Node{Kind: syntax.List}
		for i := range v.Len() {
			n.Items = append(n.Items, valueNode(v.Index(i)))
		}
		return n
	case reflect.Map:
		n := &syntax.Node{Kind: syntax.Object}
		for _, key := range v.MapKeys() {
			n.Members = append(n.Members, syntax.Member{Key: key.String(), Value: valueNode(v.MapIndex(key))})
		}
		slices.SortFunc(n.Members, func(a, b syntax.Member) int { return strings.Compare(a.Key, b.Key) })
		return n
	case reflect.Bool:
		return &syntax.Node{Kind: syntax.Boolean, Scalar: fmt.Sprint(v.Bool())}
	case reflect.Int:
		return &syntax.Node{Kind: syntax.Number, Scalar: fmt.Sprint(v.Int())}
	default:
		return textNode(v.String())
	}
}

func textNode(s string) *syntax.Node { return &syntax.Node{Kind: syntax.Text, Scalar: s} }

var zeroUnits = lazyregexp.New(`([hm])0[ms](0s)?$`)

// toHost returns an entry with the keys of hosts, the reverse of hostSpelling.
func toHost(n *syntax.Node) *syntax.Node {
	out := *n
	out.Members = slices.Clone(n.Members)
	for i, m := range out.Members {
		if m.Key != "transport" {
			continue
		}
		out.Members[i].Key = "type"
		if m.Value.Scalar == StreamableHTTP {
			out.Members[i].Value = textNode(HTTPAliases[0])
		}
	}
	return &out
}
