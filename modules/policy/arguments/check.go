package arguments

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A checker checks that a schema judges what it names.
type checker struct {
	root     *jsonschema.Schema
	into     *Schema
	mistakes Mistakes
	done     map[visit]bool
}

// A visit is of a schema that applies to the values of a place.
type visit struct{ schema, place *jsonschema.Schema }

func (c *checker) fail(at []string, hint, format string, args ...any) {
	c.mistakes = append(c.mistakes, Mistake{Path: slices.Clone(at), Text: fmt.Sprintf(format, args...), Hint: hint})
}

// place checks the schema of a place for values: a member, an element, the name of a member. It has
// to name the type of a value that it judges, unless typed says that there is one type alone.
func (c *checker) place(s *jsonschema.Schema, at []string, typed bool) {
	if s == nil {
		return
	}
	if !typed && judges(s) && !c.typed(s) {
		c.fail(at, "", "the type is missing: a value of another type would not be judged")
		c.mistakes[len(c.mistakes)-1].Type = c.suggested(s)
	}
	c.same(s, at, []*jsonschema.Schema{s}, nil)
}

// same checks a schema for the values of a place. place holds the schemas that apply to these values
// too, that of the place first, and above those that lead to s.
func (c *checker) same(s *jsonschema.Schema, at []string, place, above []*jsonschema.Schema) {
	if s == nil {
		return
	}
	if slices.Contains(above, s) {
		c.fail(at, "remove the reference", "a value would be judged by this schema without end")
		return
	}
	if c.done[visit{s, place[0]}] {
		return
	}
	c.done[visit{s, place[0]}] = true
	above = append(slices.Clone(above), s)
	place = slices.Concat(place, c.together(s))
	c.keywords(s, at)
	c.names(s, at, place)
	below, others := places(s), alternatives(s)
	for _, key := range slices.Sorted(maps.Keys(below)) {
		c.place(below[key], join(at, key), key == "propertyNames")
	}
	for _, key := range slices.Sorted(maps.Keys(others)) {
		c.same(others[key], join(at, key), place, above)
	}
	if s.Ref != "" {
		target, path := c.target(s.Ref)
		if target == nil {
			c.fail(join(at, "$ref"), `put the schema into "$defs" of these arguments, and write "$ref": "#/$defs/NAME"`,
				"a schema of a rule refers to its own $defs alone: nothing is fetched")
		}
		c.same(target, path, place, above)
	}
}

// join returns the path of a key below another one; the key may hold an index or a name after a NUL.
func join(at []string, key string) []string {
	return append(slices.Clone(at), strings.Split(key, "\x00")...)
}

// places returns the schemas in s for members and elements, by their keys.
func places(s *jsonschema.Schema) map[string]*jsonschema.Schema {
	all := map[string]*jsonschema.Schema{
		"items": s.Items, "contains": s.Contains, "unevaluatedItems": s.UnevaluatedItems, "propertyNames": s.PropertyNames,
		"additionalProperties": s.AdditionalProperties, "unevaluatedProperties": s.UnevaluatedProperties,
	}
	addList(all, "prefixItems", s.PrefixItems)
	addNamed(all, "properties", s.Properties)
	addNamed(all, "patternProperties", s.PatternProperties)
	return all
}

// alternatives returns the schemas in s for the same value, by their keys.
func alternatives(s *jsonschema.Schema) map[string]*jsonschema.Schema {
	all := map[string]*jsonschema.Schema{"not": s.Not, "if": s.If, "then": s.Then, "else": s.Else}
	addList(all, "allOf", s.AllOf)
	addList(all, "anyOf", s.AnyOf)
	addList(all, "oneOf", s.OneOf)
	addNamed(all, "dependentSchemas", s.DependentSchemas)
	return all
}

func addList(to map[string]*jsonschema.Schema, key string, list []*jsonschema.Schema) {
	for i, s := range list {
		to[key+"\x00"+strconv.Itoa(i)] = s
	}
}

func addNamed(to map[string]*jsonschema.Schema, key string, named map[string]*jsonschema.Schema) {
	for name, s := range named {
		to[key+"\x00"+name] = s
	}
}

// target returns the schema of a reference and its path, nil unless it is in $defs of the root.
func (c *checker) target(ref string) (*jsonschema.Schema, []string) {
	for key, in := range map[string]map[string]*jsonschema.Schema{"$defs": c.root.Defs, "definitions": c.root.Definitions} {
		if name, ok := strings.CutPrefix(ref, "#/"+key+"/"); ok && !strings.ContainsAny(name, "%~/") {
			return in[name], []string{key, name}
		}
	}
	return nil, nil
}

// together returns the schemas of which all hold where s holds.
func (c *checker) together(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s}
	for i := 0; i < len(all); i++ {
		of := all[i].AllOf
		if target, _ := c.target(all[i].Ref); target != nil {
			of = append(slices.Clone(of), target)
		}
		for _, other := range of {
			if !slices.Contains(all, other) {
				all = append(all, other)
			}
		}
	}
	return all
}

// typed reports whether all values that satisfy s are of types that it names.
func (c *checker) typed(s *jsonschema.Schema) bool {
	return slices.ContainsFunc(c.together(s), func(s *jsonschema.Schema) bool {
		return s.Type != "" || s.Types != nil || c.allTyped(s.AnyOf) || c.allTyped(s.OneOf)
	})
}

// allTyped does not follow references: a cycle of them is a mistake that same finds.
func (c *checker) allTyped(list []*jsonschema.Schema) bool {
	return list != nil && !slices.ContainsFunc(list, func(s *jsonschema.Schema) bool {
		target, _ := c.target(s.Ref)
		return s.Type == "" && s.Types == nil && (target == nil || target.Type == "" && target.Types == nil)
	})
}

// judges reports whether a schema accepts some values and refuses others.
func judges(s *jsonschema.Schema) bool {
	bare := *s
	bare.Comment, bare.Defs, bare.Definitions = "", nil, nil
	bare.Title, bare.Description, bare.Default, bare.Examples = "", "", nil, nil
	bare.Deprecated, bare.ReadOnly, bare.WriteOnly, bare.PropertyOrder = false, false, false, nil
	return !reflect.DeepEqual(bare, jsonschema.Schema{}) && !never(s)
}

// never reports whether a schema is false.
func never(s *jsonschema.Schema) bool {
	return s.Not != nil && reflect.DeepEqual(*s.Not, jsonschema.Schema{})
}

// keywords checks the keywords of a schema that the library ignores, or reads from elsewhere.
func (c *checker) keywords(s *jsonschema.Schema, at []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Extra)) {
		c.fail(at, "correct or remove it", "there is no keyword %q in JSON Schema", name)
	}
	for _, kind := range append(slices.Clone(s.Types), s.Type) {
		if !slices.Contains([]string{"", "null", "boolean", "object", "array", "number", "integer", "string"}, kind) {
			c.fail(join(at, "type"), "write null, boolean, object, array, number, integer or string", "there is no type %q in JSON Schema", kind)
		}
	}
	if s.Types != nil && len(s.Types) == 0 {
		c.fail(join(at, "type"), "name the types", "no value has one of no types")
	}
	for key, there := range map[string]bool{
		"format": s.Format != "", "contentEncoding": s.ContentEncoding != "", "contentMediaType": s.ContentMediaType != "", "contentSchema": s.ContentSchema != nil,
		"$id": s.ID != "", "$anchor": s.Anchor != "", "$dynamicAnchor": s.DynamicAnchor != "", "$dynamicRef": s.DynamicRef != "", "$vocabulary": s.Vocabulary != nil,
		"additionalItems": s.AdditionalItems != nil, "dependencies": s.DependencySchemas != nil || s.DependencyStrings != nil,
		"$schema": s.Schema != "" && !strings.HasPrefix(s.Schema, "https://json-schema.org/draft/2020-12/schema"),
	} {
		if there {
			c.fail(join(at, key), `write it in keywords of JSON Schema 2020-12 that judge values, such as "pattern"`, "%s is not checked here", key)
		}
	}
	if s.ItemsArray != nil {
		c.fail(join(at, "items"), `write "prefixItems" in place of "items"`, "a list of items is not checked here")
	}
}

// names checks the members that s names, and records the names. place are the schemas of the object.
func (c *checker) names(s *jsonschema.Schema, at []string, place []*jsonschema.Schema) {
	named := map[string]string{} // where
	for name := range s.Properties {
		named[name] = "properties"
	}
	for name := range s.DependentSchemas {
		named[name] = "dependentSchemas"
	}
	for name, others := range s.DependentRequired {
		for _, name := range append(slices.Clone(others), name) {
			named[name] = "dependentRequired"
		}
	}
	for _, name := range s.Required {
		named[name] = "required"
	}
	for name, key := range named {
		c.into.exact[name], c.into.names[lax(name)] = true, name
		if key != "properties" && !c.memberTyped(name, place) {
			c.fail(join(at, key), fmt.Sprintf(`write "properties": {%q: {"type": %q}} with its type`, name, "string"),
				"the type of %q is missing: a value of any type would pass", name)
		}
	}
	for name := range s.PatternProperties {
		exact, err := regexp.Compile(name)
		folded, foldErr := regexp.Compile("(?i:" + name + ")")
		if err != nil || foldErr != nil {
			c.fail(join(at, "patternProperties\x00"+name), "write a pattern of Go (RE2)", "this is not a pattern")
			continue
		}
		c.into.patterns = append(c.into.patterns, pattern{exact, folded})
	}
}

// memberTyped reports whether one of the schemas of an object names the type of a member, refuses
// it, or is known to be wrong about it.
func (c *checker) memberTyped(name string, place []*jsonschema.Schema) bool {
	return slices.ContainsFunc(place, func(s *jsonschema.Schema) bool {
		if m := s.Properties[name]; m != nil {
			return judges(m) || never(m)
		}
		for pattern, m := range s.PatternProperties {
			if exact, err := regexp.Compile(pattern); err != nil || exact.MatchString(name) {
				return judges(m) || never(m)
			}
		}
		other := cmp.Or(s.AdditionalProperties, s.UnevaluatedProperties)
		return other != nil && (judges(other) || never(other))
	})
}

// suggested returns the type that a schema without one most likely means.
func (c *checker) suggested(s *jsonschema.Schema) string {
	for _, s := range c.together(s) {
		if kind := meant(s); kind != "" {
			return kind
		}
	}
	return "string"
}

// meant returns the type of which the keywords of a schema are, "" if they are of any.
func meant(s *jsonschema.Schema) string {
	switch {
	case s.Const != nil:
		return typeOf(*s.Const)
	case len(s.Enum) > 0:
		return typeOf(s.Enum[0])
	case s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil || s.MultipleOf != nil:
		return "number"
	case s.MinLength != nil || s.MaxLength != nil || s.Pattern != "":
		return "string"
	case s.MinItems != nil || s.MaxItems != nil || s.UniqueItems:
		return "array"
	case s.MinProperties != nil || s.MaxProperties != nil || s.Required != nil || s.DependentRequired != nil:
		return "object"
	}
	for key, below := range places(s) {
		if strings.Contains(strings.ToLower(key), "propert") && below != nil {
			return "object"
		}
		if below != nil {
			return "array"
		}
	}
	others := alternatives(s)
	for _, key := range slices.Sorted(maps.Keys(others)) {
		if other := others[key]; other != nil && cmp.Or(other.Type, meant(other)) != "" {
			return cmp.Or(other.Type, meant(other))
		}
	}
	return ""
}

// typeOf returns the JSON type of a value that encoding/json decoded.
func typeOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case float64:
		if value == math.Trunc(value) {
			return "integer"
		}
		return "number"
	}
	return "object"
}
