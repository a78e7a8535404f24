package schema

import (
	"reflect"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Groups of server keys.
const (
	groupStdio = "stdio"
	groupHTTP  = "http"
	groupLimit = "limit"
	// groupSandbox belongs to stdio, and to the defaults.
	groupSandbox = "sandbox"
	// groupTLS belongs to http, and to the defaults.
	groupTLS = "tls"
)

// field is a key of an object, as the tags of a struct field describe it.
type field struct {
	key         string
	index       int
	group       string
	enum        []string
	min         string
	defaultYAML string // the default, as YAML
	required    bool
	nonblank    bool
	secret      bool
	variables   bool // of a module's key: strings below it may refer to variables
}

// fieldsOf reads the keys of a struct type from its tags, in the order of
// the fields. Nil has none.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	if t == nil {
		return nil
	}
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		key := tag.Get("json")
		if key == "" || key == "-" {
			continue
		}
		fields = append(fields, field{
			key: key, index: i, group: tag.Get("group"), enum: Allowed(tag), min: tag.Get("min"), defaultYAML: tag.Get("default"),
			required: tag.Get("required") == "true", nonblank: tag.Get("nonblank") == "true", secret: tag.Get("secret") == "true",
			variables: tag.Get("variables") == "true",
		})
	}
	return fields
}

// Allowed returns the values that a key may have by its tag, nil for any. The tag of surfaces
// names their list.
func Allowed(tag reflect.StructTag) []string {
	switch enum := tag.Get("enum"); enum {
	case "":
		return nil
	case "surfaces":
		return Surfaces
	default:
		return strings.Split(enum, ",")
	}
}

// inGroups returns the fields that belong to one of the groups.
func inGroups(fields []field, groups ...string) []field {
	var in []field
	for _, f := range fields {
		if slices.Contains(groups, f.group) {
			in = append(in, f)
		}
	}
	return in
}

// optional returns the fields with none required.
func optional(fields []field) []field {
	fields = slices.Clone(fields)
	for i := range fields {
		fields[i].required = false
	}
	return fields
}

func hasKey(fields []field, key string) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.key == key })
}

func keysOf(fields []field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}

// setDefaults sets every field of the struct v, and of the structs in it, to the
// default of its tag.
func setDefaults(v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		switch inner := v.Field(f.index); {
		case f.defaultYAML == "[]" || f.defaultYAML == "{}":
		case inner.Kind() == reflect.String:
			inner.SetString(f.defaultYAML)
		case f.defaultYAML != "":
			f.setDefault(inner)
		case inner.Kind() == reflect.Struct:
			setDefaults(inner)
		}
	}
}

// setDefault decodes the default like a document, so that a tag has the form that a user
// would write.
func (f field) setDefault(v reflect.Value) {
	src := &syntax.Source{Name: f.key + ".yaml", Data: []byte(f.defaultYAML)}
	n, err := src.Parse()
	if err != nil {
		panic(err) // a tag in types.go is wrong
	}
	r := &reading{report: report{src: src}}
	r.value(f.key, n, v, f)
	if err := r.err(); err != nil {
		panic(err)
	}
}
