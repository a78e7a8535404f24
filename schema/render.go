package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// entryNode returns a server as it is written in a file: the fields that are not
// zero, in the order of the type.
func entryNode(s Server) *node { return structNode(reflect.ValueOf(s)) }

func structNode(v reflect.Value) *node {
	n := &node{kind: object}
	for _, f := range fieldsOf(v.Type()) {
		if inner := v.Field(f.index); !isEmpty(inner) {
			n.members = append(n.members, member{key: f.key, value: valueNode(inner)})
		}
	}
	return n
}

func isEmpty(v reflect.Value) bool {
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

func valueNode(v reflect.Value) *node {
	switch p := v.Interface().(type) {
	case time.Duration:
		return textNode(zeroUnits().ReplaceAllString(p.String(), "$1")) // 10m where Go writes 10m0s
	case Inherit:
		if p.None {
			return &node{kind: boolean, scalar: "false"}
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
		n := &node{kind: list}
		for i := range v.Len() {
			n.items = append(n.items, valueNode(v.Index(i)))
		}
		return n
	case reflect.Map:
		n := &node{kind: object}
		for _, key := range v.MapKeys() {
			n.members = append(n.members, member{key: key.String(), value: valueNode(v.MapIndex(key))})
		}
		slices.SortFunc(n.members, func(a, b member) int { return strings.Compare(a.key, b.key) })
		return n
	case reflect.Bool:
		return &node{kind: boolean, scalar: fmt.Sprint(v.Bool())}
	case reflect.Int:
		return &node{kind: number, scalar: fmt.Sprint(v.Int())}
	default:
		return textNode(v.String())
	}
}

func textNode(s string) *node { return &node{kind: text, scalar: s} }

var zeroUnits = lazyregexp.New(`([hm])0[ms](0s)?$`)

// toHost returns an entry with the keys of hosts, the reverse of hostSpelling.
func (n *node) toHost() *node {
	out := *n
	out.members = slices.Clone(n.members)
	for i, m := range out.members {
		if m.key != "transport" {
			continue
		}
		out.members[i].key = "type"
		if m.value.scalar == StreamableHTTP {
			out.members[i].value = textNode(HTTPAliases[0])
		}
	}
	return &out
}

// pretty returns the value as JSON for people: objects on several lines, each
// line but the first with indent before it, and lists on one.
func (n *node) pretty(indent, unit string) string {
	if n.kind != object || len(n.members) == 0 {
		return n.inline()
	}
	var lines []string
	for _, m := range n.members {
		lines = append(lines, "\n"+indent+unit+quoted(m.key)+": "+m.value.pretty(indent+unit, unit))
	}
	return "{" + strings.Join(lines, ",") + "\n" + indent + "}"
}

// inline returns the value as JSON on one line, which is valid YAML.
func (n *node) inline() string { return n.json(", ", ": ") }

// compact returns the value as JSON without spaces.
func (n *node) compact() []byte { return []byte(n.json(",", ":")) }

func (n *node) json(comma, colon string) string {
	switch n.kind {
	case null:
		return "null"
	case text:
		return quoted(n.scalar)
	case list:
		items := make([]string, len(n.items))
		for i, item := range n.items {
			items[i] = item.json(comma, colon)
		}
		return "[" + strings.Join(items, comma) + "]"
	case object:
		members := make([]string, len(n.members))
		for i, m := range n.members {
			members[i] = quoted(m.key) + colon + m.value.json(comma, colon)
		}
		return "{" + strings.Join(members, comma) + "}"
	default:
		return n.scalar
	}
}

// quoted returns s as a JSON string, without HTML escapes.
func quoted(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always marshals
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// blockYAML returns an object as lines of YAML with indent before each.
func (n *node) blockYAML(indent, unit string) string {
	var b strings.Builder
	for _, m := range n.members {
		b.WriteString(indent + plainYAML(m.key) + ":")
		switch {
		case m.value.kind == object && len(m.value.members) > 0:
			b.WriteString("\n" + m.value.blockYAML(indent+unit, unit))
		case m.value.kind == text:
			b.WriteString(" " + plainYAML(m.value.scalar) + "\n")
		default:
			b.WriteString(" " + m.value.inline() + "\n")
		}
	}
	return b.String()
}

// yamlBooleans are words that some YAML parsers read as true or false.
var yamlBooleans = []string{"y", "n", "yes", "no", "on", "off"}

// unquotedYAML matches strings that need no quotes unless they are read as another
// type.
var unquotedYAML = lazyregexp.New(`^[A-Za-z0-9_./$~-][A-Za-z0-9_./$~@+{}:,;=()' -]*$`)

// plainYAML returns s as YAML, without quotes if it is read as the same string.
func plainYAML(s string) string {
	if !unquotedYAML().MatchString(s) || slices.Contains(yamlBooleans, strings.ToLower(s)) {
		return quoted(s)
	}
	root, failure := parseYAML(&source{name: "text.yaml", data: []byte("key: " + s + "\n")})
	if failure != nil || root.get("key") == nil || root.get("key").kind != text || root.get("key").scalar != s {
		return quoted(s)
	}
	return s
}
