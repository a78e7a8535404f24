// Package conform makes entries of lists conform to the types of the protocol.
package conform

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Hosts decode lists into types: one wrong member of one entry makes them refuse the
// whole list, with the entries of all servers. So members that the protocol (2025-11-25,
// 2026-07-28) defines must have its types, as the official SDKs check them. Other
// members are not checked.

// A Check checks one value. It returns the value in a form that typed hosts accept, nil
// if it is better left out, or the fault. Mostly the value is unchanged. Where it
// differs it means the same:
//
//   - an optional member that is null is left out;
//   - a schema that is true or false is written as an object;
//   - an input schema without a type gets the one it must have;
//   - a size that is no whole number is left out, since some hosts refuse it;
//   - an output schema for anything but an object is left out: the protocol allows it
//     since 2026-07-28, and earlier hosts refuse it.
type Check func(value json.RawMessage) (json.RawMessage, *Fault)

// Entry checks an entry of a list, which need not be JSON.
func (c Check) Entry(raw json.RawMessage) (json.RawMessage, *Fault) {
	if !wire.Valid(raw) {
		return nil, &Fault{is: "not JSON", want: "an object"}
	}
	return c(raw)
}

// A Fault is what is wrong with a value, somewhere inside an entry.
type Fault struct{ path, is, want string }

func (f *Fault) String() string {
	if f.path == "" {
		return "it is " + f.is + ", want " + f.want
	}
	return display.Quote(display.Cut(display.Fold(f.path), 60)) + " is " + f.is + ", want " + f.want
}

// in returns the fault as seen from outside the member or element at step.
func (f *Fault) in(step string) *Fault {
	path := step + "." + f.path
	if f.path == "" || f.path[0] == '[' {
		path = step + f.path
	}
	return &Fault{path, f.is, f.want}
}

type member struct {
	name     string
	required bool
	check    Check
}

// The entries of the four lists.
var (
	Tool = object(slices.Concat(described, []member{
		{"name", true, text},
		{"inputSchema", true, inputSchema},
		{"outputSchema", false, outputSchema},
		{"annotations", false, object([]member{
			{"title", false, text},
			{"readOnlyHint", false, boolean},
			{"destructiveHint", false, boolean},
			{"idempotentHint", false, boolean},
			{"openWorldHint", false, boolean},
		}...)},
		{"execution", false, object(member{"taskSupport", false, oneOf("required", "optional", "forbidden")})},
	})...)

	Prompt = object(slices.Concat(described, []member{
		{"name", true, text},
		{"arguments", false, array(object([]member{
			{"name", true, text},
			{"title", false, text},
			{"description", false, text},
			{"required", false, boolean},
		}...))},
	})...)

	Resource = object(slices.Concat(described, content, []member{
		{"uri", true, text},
		{"size", false, size},
	})...)

	Template = object(slices.Concat(described, content, []member{
		{"uriTemplate", true, text},
	})...)
)

// The members that entries of several lists share.
var (
	described = []member{
		{"title", false, text},
		{"description", false, text},
		{"icons", false, array(object([]member{
			{"src", true, text},
			{"mimeType", false, text},
			{"sizes", false, array(text)},
			{"theme", false, oneOf("light", "dark")},
		}...))},
		{"_meta", false, object()},
	}
	content = []member{
		{"name", true, text},
		{"mimeType", false, text},
		{"annotations", false, object([]member{
			{"audience", false, array(oneOf("user", "assistant"))},
			{"priority", false, share},
			{"lastModified", false, instant},
		}...)},
	}
)

// object checks every occurrence of the known members, and leaves others as they are.
func object(known ...member) Check {
	return func(obj json.RawMessage) (json.RawMessage, *Fault) {
		if !wire.IsObject(obj) {
			return nil, wrong(obj, "an object")
		}
		var changes rewrite
		seen := make([]bool, len(known))
		for name, value := range wire.Spans(obj) {
			i := slices.IndexFunc(known, func(m member) bool { return wire.EqualString(name.In(obj), m.name) })
			if i < 0 {
				continue
			}
			seen[i] = true
			if m := known[i]; m.required || string(value.In(obj)) != "null" {
				if f := changes.check(obj, value, m.name, m.check); f != nil {
					return nil, f
				}
			} else {
				changes.drop = append(changes.drop, m.name)
			}
		}
		for i, m := range known {
			if m.required && !seen[i] {
				_, f := m.check(json.RawMessage("null"))
				return nil, &Fault{m.name, "missing", f.want}
			}
		}
		return changes.apply(obj), nil
	}
}

// mapOf checks the value of every member.
func mapOf(each Check) Check {
	return func(obj json.RawMessage) (json.RawMessage, *Fault) {
		if !wire.IsObject(obj) {
			return nil, wrong(obj, "an object")
		}
		var changes rewrite
		for name, value := range wire.Spans(obj) {
			key, _ := wire.Text(name.In(obj))
			if f := changes.check(obj, value, key, each); f != nil {
				return nil, f
			}
		}
		return changes.apply(obj), nil
	}
}

// A rewrite collects the changes of an object.
type rewrite struct {
	drop  []string // members
	edits []wire.Edit
}

// check checks the value of one member.
func (r *rewrite) check(obj json.RawMessage, value wire.Span, name string, is Check) *Fault {
	was := json.RawMessage(value.In(obj))
	now, f := is(was)
	switch {
	case f != nil:
		return f.in(name)
	case now == nil:
		r.drop = append(r.drop, name)
	case !bytes.Equal(was, now):
		r.edits = append(r.edits, wire.Edit{Span: value, With: now})
	}
	return nil
}

func (r *rewrite) apply(obj json.RawMessage) json.RawMessage {
	if r.edits != nil {
		obj = wire.Replace(obj, r.edits...)
	}
	if r.drop != nil {
		obj = wire.Delete(obj, r.drop...)
	}
	return obj
}

// array checks every element.
func array(each Check) Check {
	return func(arr json.RawMessage) (json.RawMessage, *Fault) {
		if wire.TypeName(arr) != "an array" {
			return nil, wrong(arr, "an array")
		}
		out, changed, n := []byte{'['}, false, 0
		for element := range wire.Elements(arr) {
			now, f := each(element)
			if f != nil {
				return nil, f.in("[" + strconv.Itoa(n) + "]")
			}
			if n++; n > 1 {
				out = append(out, ',')
			}
			out = append(out, now...) // no element is ever left out
			changed = changed || !bytes.Equal(element, now)
		}
		if !changed {
			return arr, nil
		}
		return append(out, ']'), nil
	}
}

func text(value json.RawMessage) (json.RawMessage, *Fault) { return ofType(value, "a string") }

func boolean(value json.RawMessage) (json.RawMessage, *Fault) { return ofType(value, "a boolean") }

func ofType(value json.RawMessage, want string) (json.RawMessage, *Fault) {
	if wire.TypeName(value) != want {
		return nil, wrong(value, want)
	}
	return value, nil
}

func wrong(value json.RawMessage, want string) *Fault {
	return &Fault{is: wire.TypeName(value), want: want}
}

// oneOf wants one of some strings.
func oneOf(texts ...string) Check {
	want := strings.Join(texts, " or ")
	return func(value json.RawMessage) (json.RawMessage, *Fault) {
		s, ok := wire.Text(value)
		switch {
		case !ok:
			return nil, wrong(value, want)
		case !slices.Contains(texts, s):
			return nil, &Fault{is: display.Name(s), want: want}
		}
		return value, nil
	}
}

// share wants a number from 0 to 1.
func share(value json.RawMessage) (json.RawMessage, *Fault) {
	const want = "a number from 0 to 1"
	if wire.TypeName(value) != "a number" {
		return nil, wrong(value, want)
	}
	if n, err := strconv.ParseFloat(string(value), 64); err != nil || n < 0 || n > 1 {
		return nil, &Fault{is: display.Cut(string(value), 60), want: want}
	}
	return value, nil
}

// size wants a number. Some hosts accept only whole numbers of 64 bits, so others are left
// out.
func size(value json.RawMessage) (json.RawMessage, *Fault) {
	if wire.TypeName(value) != "a number" {
		return nil, wrong(value, "a number")
	}
	if _, err := strconv.ParseInt(string(value), 10, 64); err != nil {
		return nil, nil
	}
	return value, nil
}

// instant wants a time with its zone.
func instant(value json.RawMessage) (json.RawMessage, *Fault) {
	const want = `a time such as "2025-01-12T15:00:58Z"`
	s, ok := wire.Text(value)
	switch {
	case !ok:
		return nil, wrong(value, want)
	case new(time.Time).UnmarshalText([]byte(s)) != nil:
		return nil, &Fault{is: display.Name(s), want: want}
	}
	return value, nil
}

var inputMembers = object(
	member{"type", true, oneOf("object")},
	member{"properties", false, mapOf(subschema)},
	member{"required", false, array(text)},
	member{"$schema", false, text},
)

func inputSchema(schema json.RawMessage) (json.RawMessage, *Fault) {
	if wire.IsObject(schema) && wire.Get(schema, "type") == nil {
		schema = wire.Set(schema, "type", []byte(`"object"`))
	}
	return inputMembers(schema)
}

func outputSchema(schema json.RawMessage) (json.RawMessage, *Fault) {
	fixed, f := inputMembers(schema)
	if f != nil && f.path == "type" && wire.IsObject(schema) && isTypes(wire.Get(schema, "type")) {
		return nil, nil
	}
	return fixed, f
}

// isTypes reports whether value is valid as a schema's type: absent, a name, or a list of
// names.
func isTypes(value json.RawMessage) bool {
	_, many := array(text)(value)
	_, one := text(value)
	return value == nil || one == nil || many == nil
}

// subschema wants a schema: an object, or a boolean, which not all hosts accept.
func subschema(value json.RawMessage) (json.RawMessage, *Fault) {
	switch string(value) {
	case "true":
		return json.RawMessage(`{}`), nil
	case "false":
		return json.RawMessage(`{"not":{}}`), nil
	}
	return ofType(value, "an object")
}
