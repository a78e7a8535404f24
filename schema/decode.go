package schema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// value decodes n into v and checks it against the type and the tags in f. On
// an error, which it records, v keeps its value.
func (r *reading) value(path string, n *syntax.Node, v reflect.Value, f field) {
	if n.Unresolved { // the server is off or an error was recorded: the text is only shown
		if v.Kind() == reflect.String {
			v.SetString(n.Scalar)
		}
		return
	}
	switch p := v.Addr().Interface().(type) {
	case OwnForm:
		r.ownForm(path, n, p)
	case *time.Duration:
		r.duration(path, n, p, f)
	case *json.RawMessage:
		if r.is(syntax.Object, path, n, "an object") {
			*p = n.Compact()
		}
	case *Inherit:
		r.inherit(path, n, p)
	case Switch:
		r.switched(path, n, p)
	case *Network:
		r.network(path, n, p)
	case *Credentials:
		credentialsOf(r, path, n, p)
	case *Profile:
		r.profile(path, n, p)
	case **Node:
		r.tree(path, n, p)
	case *Server:
		r.limits(path, n, p)
	case *[]Server:
		r.servers(path, n, p, f.key != "mcp")
	default:
		r.plain(path, n, v, f)
	}
}

// An OwnForm is a value that is written as one text, or as the number 0, and reads and checks that
// itself. It must be a pointer whose type also implements encoding.TextMarshaler.
type OwnForm interface {
	encoding.TextUnmarshaler
	// Form returns a regular expression of the texts, for editors, and a hint that says how to
	// write one.
	Form() (pattern, want string)
}

// A Switch is a pointer to a struct that is written as an object, or as true or false: its zero value is false.
type Switch interface {
	// Switch makes the zero value that of true, without its keys.
	Switch()
	// Example returns an object in JSON.
	Example() string
	// Written returns the value as it is written: true, or a struct.
	Written() any
}

func (r *report) ownForm(path string, n *syntax.Node, p OwnForm) {
	_, want := p.Form()
	if n.Kind != syntax.Text && n.Kind != syntax.Number {
		r.fail(n.At, path, "this is "+n.Kind.String(), want)
		return
	}
	if err := p.UnmarshalText([]byte(n.Scalar)); err != nil {
		r.fail(n.At, path, err.Error()+quotedValue(n), want)
	}
}

// plain decodes the types without a special case in value.
func (r *reading) plain(path string, n *syntax.Node, v reflect.Value, f field) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.value(path, n, v.Elem(), f)
	case reflect.String:
		r.text(path, n, v, f)
	case reflect.Bool:
		if r.is(syntax.Boolean, path, n, "true or false") {
			v.SetBool(n.Scalar == "true")
		}
	case reflect.Int:
		r.integer(path, n, v, f)
	case reflect.Slice:
		r.list(path, n, v, f)
	case reflect.Map:
		r.dictionary(path, n, v, f)
	case reflect.Struct:
		setDefaults(v)
		r.object(path, n, v, fieldsOf(v.Type()))
	default:
		panic("schema: no rule to decode " + v.Type().String())
	}
}

// is reports whether n is of the kind k, and records an error if it is not.
func (r *reading) is(k syntax.Kind, path string, n *syntax.Node, want string) bool {
	if n.Kind != k {
		r.fail(n.At, path, "this is "+n.Kind.String(), "want "+want)
	}
	return n.Kind == k
}

func (r *reading) text(path string, n *syntax.Node, v reflect.Value, f field) {
	want := "text in quotes"
	if f.enum != nil {
		want = nearest.OneOf(f.enum)
	}
	if !r.is(syntax.Text, path, n, want) {
		return
	}
	switch {
	case f.enum != nil && !slices.Contains(f.enum, n.Scalar):
		r.fail(n.At, path, fmt.Sprintf("invalid value%s", quotedValue(n)), nearest.Hint(n.Scalar, f.enum))
	case f.nonblank && strings.TrimSpace(n.Scalar) == "":
		r.fail(n.At, path, "this is empty", "write a value or leave the key out")
	default:
		v.SetString(n.Scalar)
		if f.secret {
			r.secret(n.Scalar)
		}
	}
}

// quotedValue returns the value for an error message, "" if it may contain the value of a
// variable.
func quotedValue(n *syntax.Node) string {
	if n.Expanded {
		return ""
	}
	return " " + strconv.Quote(n.Scalar)
}

func (r *reading) integer(path string, n *syntax.Node, v reflect.Value, f field) {
	if !r.is(syntax.Number, path, n, "a whole number") {
		return
	}
	value, err := strconv.Atoi(n.Scalar)
	least, _ := strconv.Atoi(f.min)
	switch {
	case errors.Is(err, strconv.ErrRange):
		r.fail(n.At, path, n.Scalar+" is too large", "")
	case err != nil:
		r.fail(n.At, path, n.Scalar+" is not a whole number", "write it without fraction or exponent")
	case value < least:
		r.fail(n.At, path, n.Scalar+" is too small", fmt.Sprintf("want %d or more", least))
	default:
		v.SetInt(int64(value))
	}
}

const wantDuration = `want a time like "30s" or "5m", or a number of seconds`

func (r *reading) duration(path string, n *syntax.Node, p *time.Duration, f field) {
	if n.Kind != syntax.Text && n.Kind != syntax.Number {
		r.fail(n.At, path, "this is "+n.Kind.String(), wantDuration)
		return
	}
	d, ok := parseDuration(n.Scalar)
	least, _ := time.ParseDuration(f.min)
	switch {
	case !ok:
		r.fail(n.At, path, "not a duration"+quotedValue(n), wantDuration)
	case d < 0:
		r.fail(n.At, path, "this duration is negative", wantDuration)
	case d < least:
		r.fail(n.At, path, "this duration is too short", fmt.Sprintf("want %v or more", least))
	default:
		*p = d
	}
}

// parseDuration parses a duration as time.ParseDuration does, and a bare number as seconds.
func parseDuration(s string) (time.Duration, bool) {
	if d, err := time.ParseDuration(s); err == nil {
		return d, true
	}
	seconds, err := strconv.ParseFloat(s, 64)
	nanoseconds := seconds * float64(time.Second)
	if err != nil || !(math.Abs(nanoseconds) < math.MaxInt64) {
		return 0, false
	}
	return time.Duration(nanoseconds), true
}

func (r *reading) inherit(path string, n *syntax.Node, p *Inherit) {
	switch n.Kind {
	case syntax.Boolean:
		p.None = n.Scalar == "false"
	case syntax.List:
		r.list(path, n, reflect.ValueOf(&p.Names).Elem(), field{nonblank: true})
		p.None = len(n.Items) == 0
	default:
		r.fail(n.At, path, "this is "+n.Kind.String(), "want true, false or a list of variable names")
	}
}

// switched decodes true, false or an object.
func (r *reading) switched(path string, n *syntax.Node, p Switch) {
	v := reflect.ValueOf(p).Elem()
	switch on := n.Kind == syntax.Object || n.Scalar == "true"; {
	case n.Kind != syntax.Object && n.Kind != syntax.Boolean:
		r.fail(n.At, path, "this is "+n.Kind.String(), "want true, false or an object such as "+p.Example())
	case !on:
		v.SetZero()
	default:
		v.SetZero()
		p.Switch()
		setDefaults(v)
		if n.Kind == syntax.Object {
			r.object(path, n, v, fieldsOf(v.Type()))
		}
	}
}

// network decodes all, none or a list of hosts.
func (r *reading) network(path string, n *syntax.Node, p *Network) {
	switch {
	case n.Kind == syntax.Text && (n.Scalar == "all" || n.Scalar == "none"):
		*p = Network{None: n.Scalar == "none"}
	case n.Kind == syntax.List:
		r.list(path, n, reflect.ValueOf(&p.Hosts).Elem(), field{nonblank: true})
		p.None = len(n.Items) == 0
	default:
		r.fail(n.At, path, "this is not a network", `want "all", "none" or a list of hosts such as ["api.github.com"]`)
	}
}

func (r *reading) list(path string, n *syntax.Node, v reflect.Value, f field) {
	if !r.is(syntax.List, path, n, "a list") {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
	for i, item := range n.Items {
		r.value(syntax.Item(path, i), item, v.Index(i), f)
	}
}

func (r *reading) dictionary(path string, n *syntax.Node, v reflect.Value, f field) {
	if !r.is(syntax.Object, path, n, "an object") {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, m := range n.Members {
		value := reflect.New(v.Type().Elem()).Elem()
		r.value(syntax.Below(path, m.Key), m.Value, value, f)
		v.SetMapIndex(reflect.ValueOf(m.Key), value)
	}
}

// object decodes n into the struct v.
func (r *reading) object(path string, n *syntax.Node, v reflect.Value, fields []field) {
	if !r.is(syntax.Object, path, n, "an object") {
		return
	}
	typo := r.unknownKeys(path, n, fields, nil)
	r.members(path, n, v, fields)
	if !typo {
		r.required(path, n.At, n, fields)
	}
}

// members decodes the members of n that have a field, in the order of fields.
func (r *reading) members(path string, n *syntax.Node, v reflect.Value, fields []field) {
	for _, f := range fields {
		if m, ok := n.Member(f.key); ok {
			r.value(syntax.Below(path, m.Name()), m.Value, v.Field(f.index), f)
		}
	}
}

// required records the missing required fields of n. It is not called when a key of n is
// misspelt, which may be the missing one.
func (r *reading) required(path string, p syntax.Pos, n *syntax.Node, fields []field) {
	for _, f := range fields {
		if f.required && !n.Has(f.key) {
			r.fail(p, path, f.key+" is missing", "add "+strconv.Quote(f.key))
		}
	}
}

// unknownKeys records the members without a field, and reports whether one of
// them looks like a misspelt key. modules has the modules of keys that a program may lack.
func (r *reading) unknownKeys(path string, n *syntax.Node, fields []field, modules map[string]string) (typo bool) {
	for _, m := range n.Members {
		if !hasKey(fields, m.Key) {
			if name := modules[m.Key]; name != "" {
				typo = true // it may say how to reach a server
				r.fail(m.At, syntax.Below(path, m.Name()), lacksModule("key", name), "use a build with it, or remove the key")
				continue
			}
			known := keysOf(fields)
			typo = typo || nearest.Word(m.Key, known) != ""
			r.fail(m.At, syntax.Below(path, m.Name()), "unknown key", hintForKey(m.Key, known))
		}
	}
	return typo
}

// lacksModule says that what a config names needs a module.
func lacksModule(what, module string) string {
	return "this " + what + " needs the module " + module + ", which this build does not have"
}

// duplicates records duplicate keys anywhere below n. The parsers accept them,
// and a map would keep the last.
func (r *reading) duplicates(path string, n *syntax.Node) {
	seen := map[string]syntax.Pos{}
	for _, m := range n.Members {
		inner := syntax.Below(path, m.Key)
		if first, ok := seen[m.Key]; ok {
			r.fail(m.At, inner, fmt.Sprintf("duplicate key, first on line %d", first.Line), "remove one of them")
		} else {
			seen[m.Key] = m.At
		}
		r.duplicates(inner, m.Value)
	}
	for i, item := range n.Items {
		r.duplicates(syntax.Item(path, i), item)
	}
}
