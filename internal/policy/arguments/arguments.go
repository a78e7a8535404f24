// Package arguments decides whether the arguments of a call satisfy a JSON Schema, as their
// server will read them. Arguments that two readers may interpret differently are neither
// accepted nor rejected: they are ambiguous.
package arguments

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Schema is a compiled schema for arguments.
type Schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
	exact    map[string]bool   // the names of members in it
	names    map[string]string // the exact names, by their form for lax readers
}

// Compile reads a schema. A keyword that cannot be checked is an error, because a rule that is
// not checked would let everything pass.
func Compile(raw json.RawMessage) (*Schema, error) {
	s := &Schema{exact: map[string]bool{}, names: map[string]string{}}
	if err := json.Unmarshal(raw, &s.root); err != nil {
		return nil, fmt.Errorf("this is no JSON Schema: %w", err)
	}
	if !wire.IsObject(raw) {
		return nil, errors.New("a schema is an object")
	}
	if err := s.note(s.root, map[*jsonschema.Schema]bool{}); err != nil {
		return nil, err
	}
	var err error
	if s.resolved, err = s.root.Resolve(nil); err != nil {
		return nil, fmt.Errorf("this schema cannot be used: %w", err)
	}
	if _, err := plain(raw); err != nil {
		return nil, err
	}
	return s, nil
}

// note records the names of members in a schema and those below it.
func (s *Schema) note(of *jsonschema.Schema, seen map[*jsonschema.Schema]bool) error {
	if of == nil || seen[of] {
		return nil
	}
	seen[of] = true
	for name := range of.Extra {
		return fmt.Errorf("there is no keyword %q in JSON Schema", name)
	}
	for _, kind := range append(slices.Clone(of.Types), of.Type) {
		if !slices.Contains([]string{"", "null", "boolean", "object", "array", "number", "integer", "string"}, kind) {
			return fmt.Errorf("there is no type %q in JSON Schema", kind)
		}
	}
	if of.Ref != "" && of.Ref[0] != '#' || of.DynamicRef != "" {
		return errors.New("a schema of a rule refers to itself alone (#/$defs/…): nothing is fetched")
	}
	names := slices.Clone(of.Required)
	for name := range of.Properties {
		names = append(names, name)
	}
	for _, name := range names {
		s.exact[name], s.names[lax(name)] = true, name
	}
	for _, below := range children(of) {
		if err := s.note(below, seen); err != nil {
			return err
		}
	}
	return nil
}

// children returns the schemas directly below a schema.
func children(of *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat(of.PrefixItems, of.ItemsArray, alternatives(of))
	all = append(all, of.Items, of.AdditionalItems, of.Contains, of.UnevaluatedItems, of.AdditionalProperties, of.PropertyNames, of.UnevaluatedProperties)
	for _, named := range []map[string]*jsonschema.Schema{of.Defs, of.Definitions, of.DependencySchemas, of.DependentSchemas, of.Properties, of.PatternProperties} {
		for _, below := range named {
			all = append(all, below)
		}
	}
	return all
}

// alternatives returns the schemas below a schema that apply to the same value.
func alternatives(of *jsonschema.Schema) []*jsonschema.Schema {
	return slices.Concat(of.AllOf, of.AnyOf, of.OneOf, []*jsonschema.Schema{of.Not, of.If, of.Then, of.Else})
}

// Fits reports whether the arguments of a call, raw JSON, satisfy the schema; no arguments are
// an empty object. The error says why they are ambiguous.
func (s *Schema) Fits(input json.RawMessage) (bool, error) {
	value, err := read(input)
	if err != nil {
		return false, err
	}
	if err := s.resembling(value); err != nil {
		return false, err
	}
	if err := s.converted("", s.root, value, 0); err != nil {
		return false, err
	}
	return s.resolved.Validate(value) == nil, nil
}

// resembling finds members that a lax reader confuses with one that the schema names.
func (s *Schema) resembling(value any) error {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			if err := s.resembling(element); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, member := range value {
			if meant, ok := s.names[lax(name)]; ok && !s.exact[name] {
				return fmt.Errorf("member %q can be taken for %q", name, meant)
			}
			if err := s.resembling(member); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxDepth limits how deep schemas are followed: they may refer to themselves.
const maxDepth = 64

// converted finds values that a lax reader converts to the type that the schema wants: a string
// that holds JSON, or a number where a string is wanted.
func (s *Schema) converted(at string, of *jsonschema.Schema, value any, depth int) error {
	if of == nil || depth > maxDepth {
		return nil
	}
	if becomes := conversion(wanted(of), value); becomes != "" {
		return fmt.Errorf("%s can be taken for %s", cmp.Or(at, "the value"), becomes)
	}
	for _, other := range alternatives(of) {
		if err := s.converted(at, other, value, depth+1); err != nil {
			return err
		}
	}
	if of.Ref != "" {
		if err := s.converted(at, s.target(of.Ref), value, depth+1); err != nil {
			return err
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			below, has := of.Properties[name]
			if !has {
				below = of.AdditionalProperties
			}
			if err := s.converted(at+"/"+name, below, member, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for i, element := range value {
			if err := s.converted(at+"/"+strconv.Itoa(i), of.Items, element, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// target returns the schema of a reference, from those in $defs or the root.
func (s *Schema) target(ref string) *jsonschema.Schema {
	for prefix, in := range map[string]map[string]*jsonschema.Schema{"#/$defs/": s.root.Defs, "#/definitions/": s.root.Definitions} {
		if len(ref) > len(prefix) && ref[:len(prefix)] == prefix {
			return in[ref[len(prefix):]]
		}
	}
	if ref == "#" {
		return s.root
	}
	return nil
}
