package typescript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// The precedence of the operators of types.
const (
	atom = iota
	intersection
	union
)

// A typed is a type with its default and its comment, which are not joined yet.
type typed struct {
	text    string
	binding int
	braces  bool   // it is one object on several lines: its comment follows the brace
	value   string // the default, in JSON
	comment string
}

// written returns the type with its default, and the comment that is to follow it.
func (t typed) written() (text, behind string) {
	text, behind = t.text, t.comment
	if t.braces && behind != "" {
		text, behind = "{ "+comment(behind)+text[1:], ""
	}
	if t.value != "" {
		text += " = " + t.value
	}
	return text, behind
}

// line returns the type with its default and comment, to end a line.
func (t typed) line() string {
	text, behind := t.written()
	if behind != "" {
		text += " " + comment(behind)
	}
	return text
}

// part returns the type as a part of another with this binding, in parentheses if necessary.
func (t typed) part(binding int) string {
	text, behind := t.written()
	if behind != "" {
		text += " /* " + behind + " */"
	}
	if t.binding > binding || t.value != "" || behind != "" {
		return "(" + text + ")"
	}
	return text
}

// node writes a schema, whose lines after the first are indented. name is the property that
// it is the value of, or "".
func (w *writer) node(raw json.RawMessage, indent int, root bool, name string) typed {
	switch string(raw) {
	case "true":
		return typed{text: "any"}
	case "false":
		return typed{text: "never"}
	}
	s, ok := read(raw)
	if !ok {
		w.failed = true
		return typed{text: "any"}
	}
	if root && !s.has("type") {
		s.set("type", `"object"`)
	}
	var tags []string
	parts := w.parts(s, indent, &tags)
	t := join(parts)
	t.value = display.JSON(s.take("default"))
	t.comment = w.comment(s, tags, name)
	return t
}

// join writes the intersection of parts.
func join(parts []typed) typed {
	switch len(parts) {
	case 0:
		return typed{text: "any"}
	case 1:
		return parts[0]
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.part(intersection))
	}
	return typed{text: strings.Join(texts, " & "), binding: intersection}
}

// parts takes from a schema what types can express. Tags for the rest are added to tags.
func (w *writer) parts(s *schema, indent int, tags *[]string) (parts []typed) {
	if ref, ok := wire.Text(s.get("$ref")); ok {
		s.take("$ref")
		name := w.reference(ref)
		w.failed = w.failed || name == ""
		parts = append(parts, typed{text: name})
	}
	if t, ok := literals(s); ok {
		parts = append(parts, t)
	}
	if t, ok := w.types(s, indent); ok {
		parts = append(parts, t)
	}
	return append(parts, w.combinations(s, indent, tags, len(parts) == 0)...)
}

// combinations takes the keywords that combine schemas; alone reports that the schema has no
// other types.
func (w *writer) combinations(s *schema, indent int, tags *[]string, alone bool) (parts []typed) {
	for _, keyword := range combining {
		members := list(s.get(keyword))
		if len(members) == 0 {
			continue
		}
		s.take(keyword)
		t := w.combined(keyword, members, indent)
		switch {
		case keyword != "oneOf" || len(members) == 1:
		case alone && len(parts) == 0 && len(list(s.get("allOf"))) == 0:
			*tags = append(*tags, "@oneOf")
		default:
			t.comment = "@oneOf"
		}
		parts = append(parts, t)
	}
	return parts
}

// combining are the keywords that combine schemas.
var combining = []string{"anyOf", "oneOf", "allOf"}

// combined writes the members of anyOf, oneOf or allOf.
func (w *writer) combined(keyword string, members []json.RawMessage, indent int) typed {
	binding, within, sign := union, union, " | "
	switch {
	case len(members) == 1:
		t := w.node(members[0], indent, false, "")
		text := t.part(union)
		if t.braces && t.comment != "" { // which is not for the outer schema
			text = "(" + text + ")"
		}
		return typed{text: text, binding: t.binding}
	case keyword == "allOf":
		binding, within, sign = intersection, intersection, " & "
	case keyword == "oneOf": // a union in it is one member
		within = intersection
	}
	var texts []string
	for _, m := range members {
		texts = append(texts, w.node(m, indent, false, "").part(within))
	}
	return typed{text: strings.Join(texts, sign), binding: binding}
}

// literals takes the values of enum or const, and their type if all have it.
func literals(s *schema) (t typed, ok bool) {
	keyword, values := "const", []json.RawMessage{s.get("const")}
	if s.has("enum") {
		keyword, values = "enum", list(s.get("enum"))
	}
	var texts []string
	for _, v := range values {
		if len(v) == 0 || v[0] == '{' || v[0] == '[' {
			return t, false
		}
		texts = append(texts, display.JSON(v))
	}
	if texts == nil {
		return t, false
	}
	s.take(keyword)
	if of := typesOf(s.get("type")); !slices.ContainsFunc(values, func(v json.RawMessage) bool { return !isOf(v, of) }) {
		s.take("type")
	}
	t.text = strings.Join(texts, " | ")
	if len(texts) > 1 {
		t.binding = union
	}
	return t, true
}

// isOf reports whether a scalar certainly has one of these types.
func isOf(value json.RawMessage, types []string) bool {
	var is string
	switch value[0] {
	case '"':
		is = "string"
	case 't', 'f':
		is = "boolean"
	case 'n':
		is = "null"
	default:
		if !bytes.ContainsAny(value, ".eE") && slices.Contains(types, "integer") {
			return true
		}
		is = "number"
	}
	return slices.Contains(types, is)
}

// typesOf returns the types that a schema names, nil if one is unknown.
func typesOf(raw json.RawMessage) (types []string) {
	if one, ok := wire.Text(raw); ok {
		types = append(types, one)
	}
	for _, v := range list(raw) {
		one, _ := wire.Text(v)
		types = append(types, one)
	}
	known := []string{"string", "number", "integer", "boolean", "null", "object", "array"}
	if slices.ContainsFunc(types, func(t string) bool { return !slices.Contains(known, t) }) {
		return nil
	}
	return types
}

// types takes the types of a schema, with the contents of objects and arrays.
func (w *writer) types(s *schema, indent int) (t typed, ok bool) {
	of := typesOf(s.get("type"))
	if of == nil {
		return t, false
	}
	s.take("type")
	var members []typed
	for _, name := range of {
		switch name {
		case "object":
			members = append(members, w.object(s, indent))
		case "array":
			members = append(members, w.array(s, indent))
		default:
			members = append(members, typed{text: name})
		}
	}
	if len(members) == 1 {
		return members[0], true
	}
	var texts []string
	for _, m := range members {
		texts = append(texts, m.text)
	}
	return typed{text: strings.Join(texts, " | "), binding: union}, true
}
