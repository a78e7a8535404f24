package schema

import (
	"reflect"
	"slices"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A Section is the keys of the document that a module adds to those of Document.
type Section struct {
	// Module is the name of the module.
	Module string
	// Type is a struct with the tags that Document describes, whose fields are the keys. With the
	// tag variables, strings below a key may refer to variables. The pointer to it may be a Checker.
	Type reflect.Type
}

// SectionOf returns the section of a module whose keys are the fields of T.
func SectionOf[T any](module string) Section { return Section{module, reflect.TypeFor[T]()} }

// A Checker checks keys whose values are of the right types.
type Checker interface {
	// Check calls fail for each problem, with the names and indices that lead to the value.
	Check(fail func(what, hint string, at ...any))
}

// Keys returns the keys of the section with the type T, with their defaults if the config was
// read without that section.
func Keys[T any](c *Config) (keys T) {
	if v, ok := c.sections[reflect.TypeFor[T]()]; ok {
		return v.(T)
	}
	setDefaults(reflect.ValueOf(&keys).Elem())
	return keys
}

// withSections returns the keys of Document and of sections.
func withSections(sections []Section) []field {
	fields := slices.Clip(documentFields)
	for _, s := range sections {
		fields = append(fields, fieldsOf(s.Type)...)
	}
	return fields
}

// decodeSections decodes the sections of a document.
func decodeSections(r *reading, root *syntax.Node) {
	for _, s := range r.known {
		v := reflect.New(s.Type).Elem()
		setDefaults(v)
		before := len(r.errs)
		r.members("", root, v, fieldsOf(s.Type))
		if checker, ok := v.Addr().Interface().(Checker); ok && len(r.errs) == before {
			checker.Check(func(what, hint string, at ...any) {
				n, path := root.Below(at...)
				r.fail(n.At, path, what, hint)
			})
		}
		r.sections = append(r.sections, v)
	}
}

// setSections merges the sections of files, the nearest first.
func (c *Config) setSections(layers []*reading) {
	c.sections = map[reflect.Type]any{}
	last := len(layers) - 1
	for i, s := range layers[last].known {
		v := reflect.New(s.Type).Elem()
		v.Set(layers[last].sections[i])
		for _, r := range slices.Backward(layers[:last]) {
			overlay(v, r.sections[i], r.root)
		}
		c.sections[s.Type] = v.Interface()
	}
}
