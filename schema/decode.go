package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value decodes n into v and checks it against the type and the tags in f. On
// an error, which it records, v keeps its value.
func (r *reading) value(path string, n *node, v reflect.Value, f field) {
	if n.unresolved { // its server is off, or there is an error: what is written is for people
		if v.Kind() == reflect.String {
			v.SetString(n.scalar)
		}
		return
	}
	switch p := v.Addr().Interface().(type) {
	case *time.Duration:
		r.duration(path, n, p, f)
	case *json.RawMessage:
		if r.is(object, path, n, "an object") {
			*p = n.compact()
		}
	case *Inherit:
		r.inherit(path, n, p)
	case *Sandbox:
		r.sandbox(path, n, p)
	case *Network:
		r.network(path, n, p)
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

// plain decodes the types without a special case in value.
func (r *reading) plain(path string, n *node, v reflect.Value, f field) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.value(path, n, v.Elem(), f)
	case reflect.String:
		r.text(path, n, v, f)
	case reflect.Bool:
		if r.is(boolean, path, n, "true or false") {
			v.SetBool(n.scalar == "true")
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
func (r *reading) is(k kind, path string, n *node, want string) bool {
	if n.kind != k {
		r.fail(n.at, path, "this is "+n.kind.String(), "want "+want)
	}
	return n.kind == k
}

func (r *reading) text(path string, n *node, v reflect.Value, f field) {
	want := "text in quotes"
	if f.enum != nil {
		want = oneOf(f.enum)
	}
	if !r.is(text, path, n, want) {
		return
	}
	switch {
	case f.enum != nil && !slices.Contains(f.enum, n.scalar):
		r.fail(n.at, path, fmt.Sprintf("invalid value%s", quotedValue(n)), didYouMean(n.scalar, f.enum))
	case f.nonblank && strings.TrimSpace(n.scalar) == "":
		r.fail(n.at, path, "this is empty", "write a value or leave the key out")
	default:
		v.SetString(n.scalar)
		if f.secret {
			r.secret(n.scalar)
		}
	}
}

// quotedValue is the value for use in an error message, empty if it may contain
// that of a variable.
func quotedValue(n *node) string {
	if n.expanded {
		return ""
	}
	return " " + strconv.Quote(n.scalar)
}

func (r *reading) integer(path string, n *node, v reflect.Value, f field) {
	if !r.is(number, path, n, "a whole number") {
		return
	}
	value, err := strconv.Atoi(n.scalar)
	least, _ := strconv.Atoi(f.min)
	switch {
	case errors.Is(err, strconv.ErrRange):
		r.fail(n.at, path, n.scalar+" is too large", "")
	case err != nil:
		r.fail(n.at, path, n.scalar+" is not a whole number", "write it without fraction or exponent")
	case value < least:
		r.fail(n.at, path, n.scalar+" is too small", fmt.Sprintf("want %d or more", least))
	default:
		v.SetInt(int64(value))
	}
}

const wantDuration = `want a time like "30s" or "5m", or a number of seconds`

func (r *reading) duration(path string, n *node, p *time.Duration, f field) {
	if n.kind != text && n.kind != number {
		r.fail(n.at, path, "this is "+n.kind.String(), wantDuration)
		return
	}
	d, ok := parseDuration(n.scalar)
	least, _ := time.ParseDuration(f.min)
	switch {
	case !ok:
		r.fail(n.at, path, "not a duration"+quotedValue(n), wantDuration)
	case d < 0:
		r.fail(n.at, path, "this duration is negative", wantDuration)
	case d < least:
		r.fail(n.at, path, "this duration is too short", fmt.Sprintf("want %v or more", least))
	default:
		*p = d
	}
}

// parseDuration reads what time.ParseDuration reads, and a bare number as
// seconds.
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

func (r *reading) inherit(path string, n *node, p *Inherit) {
	switch n.kind {
	case boolean:
		p.None = n.scalar == "false"
	case list:
		r.list(path, n, reflect.ValueOf(&p.Names).Elem(), field{nonblank: true})
		p.None = len(n.items) == 0
	default:
		r.fail(n.at, path, "this is "+n.kind.String(), "want true, false or a list of variable names")
	}
}

// sandbox decodes true, false or an object.
func (r *reading) sandbox(path string, n *node, p *Sandbox) {
	switch n.kind {
	case boolean:
		*p = Sandbox{}
		if p.On = n.scalar == "true"; p.On {
			setDefaults(reflect.ValueOf(p).Elem())
		}
	case object:
		*p = Sandbox{On: true}
		setDefaults(reflect.ValueOf(p).Elem())
		r.object(path, n, reflect.ValueOf(p).Elem(), fieldsOf(reflect.TypeFor[Sandbox]()))
	default:
		r.fail(n.at, path, "this is "+n.kind.String(), `want true, false or an object such as {"read": ["~/notes"], "network": "none"}`)
	}
}

// network decodes all, none or a list of hosts.
func (r *reading) network(path string, n *node, p *Network) {
	switch {
	case n.kind == text && (n.scalar == "all" || n.scalar == "none"):
		*p = Network{None: n.scalar == "none"}
	case n.kind == list:
		r.list(path, n, reflect.ValueOf(&p.Hosts).Elem(), field{nonblank: true})
		p.None = len(n.items) == 0
	default:
		r.fail(n.at, path, "this is no network", `want "all", "none" or a list of hosts such as ["api.github.com"]`)
	}
}

func (r *reading) list(path string, n *node, v reflect.Value, f field) {
	if !r.is(list, path, n, "a list") {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
	for i, item := range n.items {
		r.value(at(path, i), item, v.Index(i), f)
	}
}

func (r *reading) dictionary(path string, n *node, v reflect.Value, f field) {
	if !r.is(object, path, n, "an object") {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, m := range n.members {
		value := reflect.New(v.Type().Elem()).Elem()
		r.value(below(path, m.key), m.value, value, f)
		v.SetMapIndex(reflect.ValueOf(m.key), value)
	}
}

// object decodes n into the struct v.
func (r *reading) object(path string, n *node, v reflect.Value, fields []field) {
	if !r.is(object, path, n, "an object") {
		return
	}
	typo := r.unknownKeys(path, n, fields)
	r.members(path, n, v, fields)
	if !typo {
		r.required(path, n.at, n, fields)
	}
}

// members decodes the members of n that have a field, in the order of fields.
func (r *reading) members(path string, n *node, v reflect.Value, fields []field) {
	for _, f := range fields {
		m, ok := n.member(f.key)
		if !ok {
			continue
		}
		r.value(below(path, m.name()), m.value, v.Field(f.index), f)
	}
}

// required records the required fields that n lacks. It is not called when a key
// of n is misspelt: that may be the missing one.
func (r *reading) required(path string, p pos, n *node, fields []field) {
	for _, f := range fields {
		if f.required && !n.has(f.key) {
			r.fail(p, path, f.key+" is missing", "add "+strconv.Quote(f.key))
		}
	}
}

// unknownKeys records the members without a field, and reports whether one of
// them looks like a misspelt key.
func (r *reading) unknownKeys(path string, n *node, fields []field) (typo bool) {
	for _, m := range n.members {
		if !hasKey(fields, m.key) {
			known := keysOf(fields)
			typo = typo || Nearest(m.key, known) != ""
			r.fail(m.at, below(path, m.name()), "unknown key", hintForKey(m.key, known))
		}
	}
	return typo
}

// duplicates records duplicate keys anywhere below n. The parsers accept them,
// and a map would keep the last.
func (r *reading) duplicates(path string, n *node) {
	seen := map[string]pos{}
	for _, m := range n.members {
		inner := below(path, m.key)
		if first, ok := seen[m.key]; ok {
			r.fail(m.at, inner, fmt.Sprintf("duplicate key, first on line %d", first.line), "remove one of them")
		} else {
			seen[m.key] = m.at
		}
		r.duplicates(inner, m.value)
	}
	for i, item := range n.items {
		r.duplicates(at(path, i), item)
	}
}
