package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/schema/hostfile"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// structNode returns a struct in the form of a file: its non-zero fields, in the order of the
// type.
func structNode(v reflect.Value) *syntax.Node { return fieldsNode(v, fieldsOf(v.Type())) }

func fieldsNode(v reflect.Value, fields []field) *syntax.Node {
	n := &syntax.Node{Kind: syntax.Object}
	for _, f := range fields {
		if inner := v.Field(f.index); !isEmpty(inner) {
			n.Members = append(n.Members, syntax.Member{Key: f.key, Value: valueNode(inner)})
		}
	}
	return n
}

// node returns an entry in the form of a file.
func (s Server) node() *syntax.Node {
	if !slices.Contains(transports, s.Transport) {
		s.Transport = "" // a module's, implied by its key
	}
	n := structNode(reflect.ValueOf(s))
	for _, t := range slices.SortedFunc(maps.Keys(s.Keys), func(a, b reflect.Type) int { return strings.Compare(a.String(), b.String()) }) {
		for _, own := range fieldsOf(t) {
			member := fieldsNode(reflect.ValueOf(s.Keys[t]), []field{own}).Members
			n.Members = slices.Insert(n.Members, placeOf(n, own.group), member...)
		}
	}
	return n
}

// placeOf returns the index in an entry before which a key of a module belongs: those of a program are after
// its other keys, others before what says how the server is reached.
func placeOf(n *syntax.Node, group string) int {
	before := func(m syntax.Member) bool { return m.Key == "command" || m.Key == "url" }
	if group == groupStdio || group == groupSandbox {
		program := keysOf(inGroups(serverFields, groupStdio))
		for i, m := range slices.Backward(n.Members) {
			if slices.Contains(program, m.Key) {
				return i + 1
			}
		}
	}
	if i := slices.IndexFunc(n.Members, before); i >= 0 {
		return i
	}
	return len(n.Members)
}

// Limits returns the limits of a server that differ from dynmcp's defaults, as a JSON object with
// the keys of an entry; nil if none does.
func (s Server) Limits() json.RawMessage {
	n := fieldsNode(reflect.ValueOf(s.WithoutDefaults()), inGroups(serverFields, groupLimit))
	if len(n.Members) == 0 {
		return nil
	}
	return n.Compact()
}

func isEmpty(v reflect.Value) bool {
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

func valueNode(v reflect.Value) *syntax.Node {
	v = asWritten(v)
	switch v.Kind() {
	case reflect.Struct:
		return structNode(v)
	case reflect.Slice:
		n := &syntax.Node{Kind: syntax.List}
		for i := range v.Len() {
			n.Items = append(n.Items, valueNode(v.Index(i)))
		}
		return n
	case reflect.Map:
		return mapNode(v)
	case reflect.Bool:
		return &syntax.Node{Kind: syntax.Boolean, Scalar: fmt.Sprint(v.Bool())}
	case reflect.Int:
		return &syntax.Node{Kind: syntax.Number, Scalar: fmt.Sprint(v.Int())}
	default:
		return textNode(v.String())
	}
}

// asWritten returns the form of v in a file, which depends on its type.
func asWritten(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch p := v.Interface().(type) {
	case encoding.TextMarshaler:
		text, _ := p.MarshalText() // of a value that was read
		return reflect.ValueOf(string(text))
	case time.Duration:
		return reflect.ValueOf(syntax.Duration(p))
	case Inherit:
		if len(p.Names) == 0 {
			return reflect.ValueOf(!p.None)
		}
		return reflect.ValueOf(p.Names)
	case interface{ Written() any }: // of a Switch
		return reflect.ValueOf(p.Written())
	case Network:
		switch {
		case p.None:
			return reflect.ValueOf("none")
		case len(p.Hosts) == 0:
			return reflect.ValueOf("all")
		}
		return reflect.ValueOf(p.Hosts)
	case Credentials:
		switch {
		case p.Exchange != nil:
			return v
		case p.User:
			return reflect.ValueOf(CredentialsUser)
		}
		return reflect.ValueOf(CredentialsShared)
	}
	return v
}

// mapNode returns a map with its keys in order.
func mapNode(v reflect.Value) *syntax.Node {
	n := &syntax.Node{Kind: syntax.Object}
	for _, key := range v.MapKeys() {
		n.Members = append(n.Members, syntax.Member{Key: key.String(), Value: valueNode(v.MapIndex(key))})
	}
	slices.SortFunc(n.Members, func(a, b syntax.Member) int { return strings.Compare(a.Key, b.Key) })
	return n
}

func textNode(s string) *syntax.Node { return &syntax.Node{Kind: syntax.Text, Scalar: s} }

// toHost converts an entry to the keys of hosts, the reverse of hostfile.
func toHost(n *syntax.Node) *syntax.Node {
	out := *n
	out.Members = slices.Clone(n.Members)
	for i, m := range out.Members {
		if m.Key != "transport" {
			continue
		}
		out.Members[i].Key = "type"
		if m.Value.Scalar == StreamableHTTP {
			out.Members[i].Value = textNode(hostfile.HTTP)
		}
	}
	return &out
}
