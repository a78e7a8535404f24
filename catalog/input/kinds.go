package input

import "maps"

// kinds are types of JSON values.
type kinds uint8

const (
	null kinds = 1 << iota
	boolean
	integer
	fraction // a number that is not whole
	text
	list
	object

	anything = null | boolean | integer | fraction | text | list | object
)

var namedKinds = map[string]kinds{
	"null": null, "boolean": boolean, "integer": integer, "number": integer | fraction, "string": text, "array": list, "object": object,
}

// maxPlaceDepth bounds references and alternatives in each other: they may be circles.
const maxPlaceDepth = 16

// takes returns the kinds of values that a schema may allow. What it does not understand
// allows everything: a kind that it leaves out is certainly invalid.
func (s *Schema) takes(schema any, depth int) kinds {
	of, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			return 0
		}
		return anything
	}
	if depth > maxPlaceDepth || of["$id"] != nil && depth > 0 { // its references have another base
		return anything
	}
	all := kinds(anything)
	if ref, is := of["$ref"].(string); is {
		if target, found := s.target(ref); found {
			all &= s.takes(target, depth+1)
		}
		if s.refAlone {
			return all
		}
	}
	if types, has := of["type"]; has {
		all &= kindsNamed(types)
	}
	if values, is := of["enum"].([]any); is {
		all &= kindsOf(values...)
	}
	if value, has := of["const"]; has {
		all &= kindsOf(value)
	}
	for _, part := range parts(of, "allOf") {
		all &= s.takes(part, depth+1)
	}
	for _, key := range alternatives {
		some := kinds(0)
		for _, part := range parts(of, key) {
			some |= s.takes(part, depth+1)
		}
		if len(parts(of, key)) > 0 {
			all &= some
		}
	}
	return all
}

var alternatives = []string{"anyOf", "oneOf"}

func parts(schema map[string]any, key string) []any {
	list, _ := schema[key].([]any)
	return list
}

// kindsNamed returns the kinds of the keyword type.
func kindsNamed(types any) kinds {
	names, ok := types.([]any)
	if !ok {
		names = []any{types}
	}
	all := kinds(0)
	for _, name := range names {
		name, _ := name.(string)
		kind, known := namedKinds[name]
		if !known {
			return anything
		}
		all |= kind
	}
	return all
}

func kindsOf(values ...any) kinds {
	all := kinds(0)
	for _, value := range values {
		switch value.(type) {
		case nil:
			all |= null
		case bool:
			all |= boolean
		case float64:
			all |= integer | fraction
		case string:
			all |= text
		case []any:
			all |= list
		default:
			all |= object
		}
	}
	return all
}

// member returns the schema of a member of the objects that a schema allows, true if it may be
// anything. element does so for the elements of lists.
func (s *Schema) member(schema any, name string, depth int) any {
	return s.inside(schema, object, depth, func(of map[string]any) any {
		properties, _ := of["properties"].(map[string]any)
		if property, has := properties[name]; has {
			return property
		}
		if more, has := of["additionalProperties"]; has && of["patternProperties"] == nil {
			return more
		}
		return true
	})
}

func (s *Schema) element(schema any, depth int) any {
	return s.inside(schema, list, depth, func(of map[string]any) any {
		if items, has := of["items"]; has && of["prefixItems"] == nil && kindsOf(items) != list {
			return items
		}
		return true
	})
}

// inside returns the schema of a part of the values of a kind, which own finds in one schema
// without those that this refers to.
func (s *Schema) inside(schema any, kind kinds, depth int, own func(map[string]any) any) any {
	of, ok := schema.(map[string]any)
	if !ok || depth > maxPlaceDepth || of["$id"] != nil && depth > 0 {
		return true
	}
	var all []any
	add := func(schema any) {
		if schema != true {
			all = append(all, schema)
		}
	}
	ref, isRef := of["$ref"].(string)
	if target, found := s.target(ref); isRef && found {
		add(s.inside(target, kind, depth+1, own))
	}
	if !isRef || !s.refAlone {
		add(own(of))
		for _, part := range parts(of, "allOf") {
			add(s.inside(part, kind, depth+1, own))
		}
		for _, key := range alternatives {
			add(s.either(parts(of, key), kind, depth+1, own))
		}
	}
	switch len(all) {
	case 0:
		return true
	case 1:
		return all[0]
	}
	return map[string]any{"allOf": all}
}

// either is inside for alternatives: those that allow no value of the kind do not count.
func (s *Schema) either(schemas []any, kind kinds, depth int, own func(map[string]any) any) any {
	var some []any
	for _, schema := range schemas {
		if s.takes(schema, depth)&kind == 0 {
			continue
		}
		part := s.inside(schema, kind, depth, own)
		if part == true {
			return true
		}
		some = append(some, part)
	}
	switch len(some) {
	case 0:
		return true
	case 1:
		return some[0]
	}
	return map[string]any{"anyOf": some}
}

// part returns a part of the schema so that the local references in it are found.
func (s *Schema) part(schema any) any {
	of, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	of = maps.Clone(of)
	for _, shared := range []string{"$defs", "definitions", "$schema"} {
		if s.root[shared] != nil {
			of[shared] = s.root[shared]
		}
	}
	return of
}
