package typescript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A schema has the members that are still to be written, in their order.
type schema struct{ members []member }

type member struct {
	name  string
	value json.RawMessage
}

// read reads the members of an object. It reports false if raw is no object, or has a
// duplicate or malformed name.
func read(raw json.RawMessage) (*schema, bool) {
	s := &schema{}
	for key, value := range wire.Members(raw) {
		name, ok := wire.Text(key)
		if !ok || s.has(name) || strings.ContainsRune(name, utf8.RuneError) {
			return nil, false
		}
		s.members = append(s.members, member{name, value})
	}
	return s, bytes.HasPrefix(raw, []byte("{"))
}

func (s *schema) at(name string) int {
	return slices.IndexFunc(s.members, func(m member) bool { return m.name == name })
}

func (s *schema) has(name string) bool { return s.at(name) >= 0 }

func (s *schema) get(name string) json.RawMessage {
	if i := s.at(name); i >= 0 {
		return s.members[i].value
	}
	return nil
}

// take returns a member and removes it.
func (s *schema) take(name string) json.RawMessage {
	i := s.at(name)
	if i < 0 {
		return nil
	}
	value := s.members[i].value
	s.members = slices.Delete(s.members, i, i+1)
	return value
}

func (s *schema) set(name, value string) {
	s.take(name)
	s.members = append(s.members, member{name, json.RawMessage(value)})
}

// list returns the elements of an array, nil for other values.
func list(raw json.RawMessage) []json.RawMessage { return slices.Collect(wire.Elements(raw)) }

// longestInline is the most characters of an object on one line.
const longestInline = 60

// object takes the keywords about the members of an object.
func (w *writer) object(s *schema, indent int) typed {
	lines := w.properties(s, indent)
	others := s.get("additionalProperties")
	key := "string"
	if names := s.get("propertyNames"); names != nil && string(others) != "false" {
		s.take("propertyNames")
		key = w.node(names, indent+1, false, "").part(union)
	}
	if others == nil || others[0] == '{' || others[0] == 't' || others[0] == 'f' {
		s.take("additionalProperties")
	}
	open := others == nil || string(others) == "true" || others[0] != '{' && others[0] != 'f'
	switch {
	case open && key == "string" && len(lines) == 0:
		return typed{text: "object"}
	case open && key == "string":
		lines = append(lines, "...")
	case open:
		lines = append(lines, "[key: "+key+"]: any")
	case others[0] == '{':
		lines = append(lines, "[key: "+key+"]: "+w.node(others, indent+1, false, "").line())
	}
	return braced(lines, indent)
}

// braced writes the lines of an object, on one line if they are short and without comments.
func braced(lines []string, indent int) typed {
	if len(lines) == 0 {
		return typed{text: "{}"}
	}
	one := "{ " + strings.Join(lines, "; ") + " }"
	if len(one) <= longestInline && !strings.ContainsAny(one, "\n") && !strings.Contains(one, "/") {
		return typed{text: one}
	}
	space := "\n" + strings.Repeat(" ", indent)
	return typed{text: "{" + space + " " + strings.Join(lines, space+" ") + space + "}", braces: true}
}

// properties takes the properties of a schema, with which of them are required.
func (w *writer) properties(s *schema, indent int) (lines []string) {
	raw := s.get("properties")
	if !bytes.HasPrefix(raw, []byte("{")) {
		return nil
	}
	s.take("properties")
	properties, ok := read(raw)
	if !ok {
		w.failed = true
		return nil
	}
	required := takeRequired(s, properties)
	for _, p := range properties.members {
		mark := "?"
		if slices.Contains(required, p.name) {
			mark = ""
		}
		lines = append(lines, propertyName(p.name)+mark+": "+w.node(p.value, indent+1, false, p.name).line())
	}
	return lines
}

// takeRequired returns the names of required properties. Names without a property stay in the
// schema.
func takeRequired(s, properties *schema) (names []string) {
	var rest []string
	for _, v := range list(s.get("required")) {
		name, ok := wire.Text(v)
		switch {
		case !ok:
			return nil
		case properties.has(name):
			names = append(names, name)
		default:
			rest = append(rest, display.JSON(v))
		}
	}
	if !bytes.HasPrefix(s.get("required"), []byte("[")) {
		return nil
	}
	s.take("required")
	if rest != nil {
		s.set("required", "["+strings.Join(rest, ",")+"]")
	}
	return names
}

// propertyName returns a name, quoted unless it is an identifier.
func propertyName(name string) string {
	plain := name != "" && !('0' <= name[0] && name[0] <= '9')
	for _, r := range name {
		plain = plain && (r == '_' || r == '$' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
	}
	if plain {
		return name
	}
	return display.JSON(wire.Quote(name))
}

// array takes the keywords about the elements of an array.
func (w *writer) array(s *schema, indent int) typed {
	first, rest := "prefixItems", "items"
	if bytes.HasPrefix(s.get("items"), []byte("[")) {
		first, rest = "items", "additionalItems"
	}
	if elements := list(s.get(first)); len(elements) > 0 {
		s.take(first)
		return w.tuple(s, elements, s.take(rest), indent)
	}
	items := s.get("items")
	if items == nil {
		return typed{text: "any[]"}
	}
	s.take("items")
	return typed{text: w.node(items, indent, false, "").part(atom) + "[]"}
}

// tuple writes an array whose first elements have types of their own.
func (w *writer) tuple(s *schema, elements []json.RawMessage, rest json.RawMessage, indent int) typed {
	least := 0
	for least < len(elements) && string(s.get("minItems")) != "" && !lessThan(s.get("minItems"), least+1) {
		least++
	}
	if string(s.get("minItems")) == strconv.Itoa(least) {
		s.take("minItems")
	}
	var texts []string
	for i, e := range elements {
		text := w.node(e, indent, false, "").part(atom)
		if i >= least {
			text += "?"
		}
		texts = append(texts, text)
	}
	switch string(rest) {
	case "false":
	case "", "true":
		texts = append(texts, "...any[]")
	default:
		texts = append(texts, "..."+w.node(rest, indent, false, "").part(atom)+"[]")
	}
	return typed{text: "[" + strings.Join(texts, ", ") + "]"}
}
