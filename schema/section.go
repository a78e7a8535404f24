package schema

import (
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A Section is the keys that a module adds to those of Document or, with Server set, to those of Server.
type Section struct {
	// Module is the name of the module.
	Module string
	// Surfaces are the names in expose of the surfaces that the module has. A section of these has no Type.
	Surfaces []string
	// Type is a struct with the tags that Document describes, whose fields are the keys. With the
	// tag variables, strings below a key may refer to variables. The pointer to it may be a Checker.
	Type reflect.Type
	// Server reports that they are keys of an entry. Their groups are those of the keys of Server.
	Server bool
	// Transport is what an entry with the required key of Type has as its Transport. It has the keys of
	// servers at an address, of which none is required. It is "" if Type has no required key.
	Transport string
}

// SectionOf returns the section of a module whose keys are the fields of T.
func SectionOf[T any](module string) Section {
	return Section{Module: module, Type: reflect.TypeFor[T]()}
}

// ServerSectionOf returns the section of a module whose keys of an entry are the fields of T.
func ServerSectionOf[T any](module, transport string) Section {
	return Section{Module: module, Type: reflect.TypeFor[T](), Server: true, Transport: transport}
}

// A Checker checks keys whose values are of the right types.
type Checker interface {
	// Check calls fail for each problem, with the names and indices that lead to the value.
	Check(fail func(what, hint string, at ...any))
}

// A FormChecker checks keys as they are written, whatever their values are.
type FormChecker interface {
	// CheckForm calls fail for each problem in root, the object that has the keys.
	CheckForm(root *syntax.Node, fail func(at syntax.Pos, path, what, hint string))
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

// Knows reports whether a config was read with the section with the type T.
func Knows[T any](c *Config) bool {
	_, ok := c.sections[reflect.TypeFor[T]()]
	return ok
}

// ServerKeys returns the keys of an entry with the type T, with their defaults if it has none.
func ServerKeys[T any](s Server) (keys T) {
	if v, ok := s.Keys[reflect.TypeFor[T]()]; ok {
		return v.(T)
	}
	setDefaults(reflect.ValueOf(&keys).Elem())
	return keys
}

// WithKeys returns the entry with keys, the value of a section's type.
func (s Server) WithKeys(keys any) Server {
	if s.Keys = maps.Clone(s.Keys); s.Keys == nil {
		s.Keys = map[reflect.Type]any{}
	}
	s.Keys[reflect.TypeOf(keys)] = keys
	return s
}

// Sections returns the keys of each section of the document.
func (c *Config) Sections() iter.Seq[any] { return maps.Values(c.sections) }

// WithKeys returns the config with keys, the value of a section's type.
func (c *Config) WithKeys(keys any) *Config {
	with := *c
	if with.sections = maps.Clone(c.sections); with.sections == nil {
		with.sections = map[reflect.Type]any{}
	}
	with.sections[reflect.TypeOf(keys)] = keys
	return &with
}

// entryKeys returns the keys of an entry, those of modules included.
func entryKeys(r *reading) []field {
	if r.ofServer == nil {
		r.ofServer = withSections(serverFields, r.known, true)
	}
	return r.ofServer
}

// decodeServerSections decodes the keys of modules in an entry. Those of which it has none are left out.
func decodeServerSections(r *reading, path string, n *syntax.Node, s *Server) {
	for _, section := range r.known {
		fields := fieldsOf(section.Type)
		if !section.Server || !slices.ContainsFunc(fields, func(f field) bool { return n.Has(f.key) }) {
			continue
		}
		v := reflect.New(section.Type).Elem()
		if had, ok := s.Keys[section.Type]; ok { // of the defaults
			v.Set(reflect.ValueOf(had))
		} else {
			setDefaults(v)
		}
		decodeSection(r, path, n, v)
		*s = s.WithKeys(v.Interface())
		usual := reflect.New(section.Type).Elem()
		if setDefaults(usual); reflect.DeepEqual(v.Interface(), usual.Interface()) { // as if it were not there
			delete(s.Keys, section.Type)
		}
		if len(s.Keys) == 0 {
			s.Keys = nil
		}
	}
}

// decodeSection decodes the keys of a section, which are in n, into v, and has them checked if they are of the
// right types.
func decodeSection(r *reading, path string, n *syntax.Node, v reflect.Value) {
	before := len(r.errs)
	r.members(path, n, v, fieldsOf(v.Type()))
	if checker, ok := v.Addr().Interface().(FormChecker); ok {
		checker.CheckForm(n, r.fail)
	}
	if checker, ok := v.Addr().Interface().(Checker); ok && len(r.errs) == before {
		checker.Check(func(what, hint string, at ...any) {
			below, inner := n.Below(at...)
			if path != "" {
				inner = path + "." + inner
			}
			r.fail(below.At, inner, what, hint)
		})
	}
}

// withSections returns fields, and the keys of those sections that belong to an entry, or do not.
func withSections(fields []field, sections []Section, server bool) []field {
	fields = slices.Clip(fields)
	for _, s := range sections {
		if s.Server == server {
			fields = append(fields, fieldsOf(s.Type)...)
		}
	}
	return fields
}

// decodeSections decodes the sections of a document.
func decodeSections(r *reading, root *syntax.Node) {
	for _, s := range r.known {
		if !s.Server && s.Type != nil {
			v := reflect.New(s.Type).Elem()
			setDefaults(v)
			decodeSection(r, "", root, v)
			r.sections = append(r.sections, v)
		}
	}
}

// setSections merges the sections of files, the nearest first.
func (c *Config) setSections(layers []*reading) {
	c.sections = map[reflect.Type]any{}
	last := len(layers) - 1
	for i, farthest := range layers[last].sections {
		v := reflect.New(farthest.Type()).Elem()
		v.Set(farthest)
		for _, r := range slices.Backward(layers[:last]) {
			overlay(v, r.sections[i], r.root)
		}
		c.sections[v.Type()] = v.Interface()
	}
}
