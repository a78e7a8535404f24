package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Details returns a tool's full definition as text: name, description, schemas
// and annotations. Schemas are the upstream's bytes, but characters that
// cannot be seen are written as JSON escapes.
func (v *View) Details(t *Tool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Name: %s\n", t.Name)
	if title := fold(t.Title); title != "" {
		fmt.Fprintf(&b, "Title: %s\n", title)
	}
	if description := strings.TrimSpace(clean(t.Description)); description != "" {
		fmt.Fprintf(&b, "Description: %s\n", description)
	}
	if t.InputSchema != nil {
		fmt.Fprintf(&b, "\nInput Schema:\n%s\n", visible(t.InputSchema))
	}
	if t.OutputSchema != nil {
		fmt.Fprintf(&b, "\nOutput Schema:\n%s\n", visible(t.OutputSchema))
	}
	if hints := t.hints(); hints != "" {
		fmt.Fprintf(&b, "\nAnnotations:\n%s", hints)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// hints returns the annotations, one "key: value" per line; false is said too.
func (t *Tool) hints() string {
	var b strings.Builder
	for m := range members(t.Annotations) {
		value := t.Annotations[m.value:m.after]
		if s, ok := text(value); ok {
			fmt.Fprintf(&b, "%s: %s\n", fold(m.key), fold(s))
		} else {
			fmt.Fprintf(&b, "%s: %s\n", fold(m.key), visible(value))
		}
	}
	return b.String()
}

// visible returns valid JSON that means the same, with invisible characters as
// \u escapes. Outside strings there are none but white space.
func visible(raw json.RawMessage) string {
	var b strings.Builder
	b.Grow(len(raw))
	for _, r := range string(raw) {
		switch {
		case r < ' ' || !invisible(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Definition returns the upstream's tool object with the exposed name, and
// with the operator's description if there is one. All other bytes are the
// upstream's.
func (v *View) Definition(t *Tool) json.RawMessage { return v.DefinitionAs(t, t.Name) }

// DefinitionAs is Definition with a name of the caller's choice.
func (v *View) DefinitionAs(t *Tool, name string) json.RawMessage {
	def := t.Raw
	if name != t.Upstream {
		def = setMember(def, "name", name)
	}
	if t.overridden {
		def = setMember(def, "description", t.Description)
	}
	return def
}

// setMember returns a copy of a valid, non-empty JSON object in which the
// member key is the string value. It changes every member of that name, since
// readers differ in which of two they take, and puts a missing one in front.
func setMember(obj json.RawMessage, key, value string) json.RawMessage {
	var out []byte
	done := 0
	for m := range members(obj) {
		if m.key == key {
			out = append(out, obj[done:m.value]...)
			out = append(out, quote(value)...)
			done = m.after
		}
	}
	if done == 0 {
		brace := slices.Index(obj, '{') + 1
		out = append(out, obj[:brace]...)
		out = append(out, quote(key)+":"+quote(value)+","...)
		done = brace
	}
	return append(out, obj[done:]...)
}
