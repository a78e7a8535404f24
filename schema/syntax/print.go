package syntax

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// pretty returns the value as JSON for people: objects on several lines, each
// line but the first with indent before it, and lists on one.
func (n *Node) pretty(indent, unit string) string {
	if n.Kind != Object || len(n.Members) == 0 {
		return n.Inline()
	}
	var lines []string
	for _, m := range n.Members {
		lines = append(lines, "\n"+indent+unit+Quote(m.Key)+": "+m.Value.pretty(indent+unit, unit))
	}
	return "{" + strings.Join(lines, ",") + "\n" + indent + "}"
}

// Inline returns the value as JSON on one line, which is valid YAML.
func (n *Node) Inline() string { return n.json(", ", ": ") }

// Compact returns the value as JSON without spaces.
func (n *Node) Compact() []byte { return []byte(n.json(",", ":")) }

func (n *Node) json(comma, colon string) string {
	switch n.Kind {
	case Null:
		return "null"
	case Text:
		return Quote(n.Scalar)
	case List:
		items := make([]string, len(n.Items))
		for i, item := range n.Items {
			items[i] = item.json(comma, colon)
		}
		return "[" + strings.Join(items, comma) + "]"
	case Object:
		members := make([]string, len(n.Members))
		for i, m := range n.Members {
			members[i] = Quote(m.Key) + colon + m.Value.json(comma, colon)
		}
		return "{" + strings.Join(members, comma) + "}"
	default:
		return n.Scalar
	}
}

// Quote returns s as a JSON string, without HTML escapes.
func Quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always marshals
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Duration returns a duration as time.ParseDuration reads it, without units that are zero: 10m
// where Go writes 10m0s.
func Duration(d time.Duration) string { return zeroUnits().ReplaceAllString(d.String(), "$1") }

var zeroUnits = lazyregexp.New(`([hm])0[ms](0s)?$`)

// blockYAML returns an object as lines of YAML, each after indent.
func (n *Node) blockYAML(indent, unit string) string {
	var b strings.Builder
	for _, m := range n.Members {
		b.WriteString(indent + plainYAML(m.Key) + ":")
		switch {
		case m.Value.Kind == Object && len(m.Value.Members) > 0:
			b.WriteString("\n" + m.Value.blockYAML(indent+unit, unit))
		case m.Value.Kind == Text:
			b.WriteString(" " + plainYAML(m.Value.Scalar) + "\n")
		default:
			b.WriteString(" " + m.Value.Inline() + "\n")
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
		return Quote(s)
	}
	root, err := parseYAML(&Source{Name: "text.yaml", Data: []byte("key: " + s + "\n")})
	if err != nil || root.Get("key") == nil || root.Get("key").Kind != Text || root.Get("key").Scalar != s {
		return Quote(s)
	}
	return s
}
