package openapi

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A keyword converts the value of a keyword of JSON Schema; false leaves it out.
type keyword func(c *converter, v any, depth int) (any, bool)

func isWord(_ *converter, v any, _ int) (any, bool) {
	s, ok := v.(string)
	return s, ok && s != ""
}

func isBool(_ *converter, v any, _ int) (any, bool) {
	b, ok := v.(bool)
	return b, ok && b
}

func isNumber(_ *converter, v any, _ int) (any, bool) {
	n, ok := v.(json.Number)
	return n, ok
}

func isCount(_ *converter, v any, _ int) (any, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return nil, false
	}
	i, err := n.Int64()
	return n, err == nil && i >= 0
}

func isAny(_ *converter, v any, _ int) (any, bool) { return v, true }

func isPattern(_ *converter, v any, _ int) (any, bool) {
	s, ok := v.(string)
	return s, ok && portable(s)
}

func isSchema(c *converter, v any, depth int) (any, bool) {
	switch v.(type) {
	case object, bool:
		return c.schema(v, depth+1), true
	}
	return nil, false
}

// isItems takes the list of older drafts for prefixItems, too: its elements may be anything then.
func isItems(c *converter, v any, depth int) (any, bool) {
	if list, ok := v.([]any); ok && len(list) == 1 {
		v = list[0]
	}
	return isSchema(c, v, depth)
}

func isSchemas(c *converter, v any, depth int) (any, bool) {
	list, _ := v.([]any)
	var out []any
	for _, item := range list {
		out = append(out, c.schema(item, depth+1))
	}
	return out, len(out) > 0 && c.budget >= 0
}

func isEnum(c *converter, v any, _ int) (any, bool) {
	list, _ := v.([]any)
	var out []any
	seen := map[string]bool{}
	for _, item := range list {
		if text, err := json.Marshal(item); err == nil && !seen[string(text)] {
			seen[string(text)] = true
			out = append(out, item)
		}
	}
	return out, len(out) > 0
}

func isNames(_ *converter, v any, _ int) (any, bool) {
	all := texts(v)
	slices.Sort(all)
	return slices.Compact(all), len(all) > 0
}

func isType(_ *converter, v any, _ int) (any, bool) {
	all := texts(v)
	if s, ok := v.(string); ok {
		all = []string{s}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s string) bool {
		return !slices.Contains([]string{"array", "boolean", "integer", "null", "number", "object", "string"}, s)
	})
	switch len(all) {
	case 0:
		return nil, false
	case 1:
		return all[0], true
	}
	slices.Sort(all)
	return slices.Compact(all), true
}

func isProperties(c *converter, v any, depth int) (any, bool) {
	o, ok := v.(object)
	out := make(object, len(o))
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if c.budget >= 0 && !c.hides(o[name]) {
			c.spend(len(name) + 4)
			out[name] = c.schema(o[name], depth+1)
		}
	}
	return out, ok
}

func isPatternProperties(c *converter, v any, depth int) (any, bool) {
	o, _ := v.(object)
	out := object{}
	for _, pattern := range slices.Sorted(maps.Keys(o)) {
		if !portable(pattern) {
			return nil, false // the rest would be refused by additionalProperties
		}
		out[pattern] = c.schema(o[pattern], depth+1)
	}
	return out, len(out) > 0
}

// hides reports whether a property is only in messages of the other direction.
func (c *converter) hides(property any) bool {
	o, err := c.doc.follow(property)
	return err == nil && (c.answer && o["writeOnly"] == true || !c.answer && o["readOnly"] == true)
}

// briefKeywords are kept of a schema that is left open.
var briefKeywords = map[string]keyword{"type": isType, "description": isWord}

// keywords are those that are kept. Others are not of JSON Schema, or say nothing about values.
var keywords map[string]keyword

func init() { // not in its declaration, because it refers to itself
	keywords = map[string]keyword{
		"type": isType, "enum": isEnum, "const": isAny, "default": isAny, "examples": isEnum,
		"title": isWord, "description": isWord, "format": isWord, "contentEncoding": isWord, "contentMediaType": isWord,
		"deprecated": isBool, "uniqueItems": isBool, "readOnly": isBool, "writeOnly": isBool,
		"minimum": isNumber, "maximum": isNumber, "exclusiveMinimum": isNumber, "exclusiveMaximum": isNumber, "multipleOf": isNumber,
		"minLength": isCount, "maxLength": isCount, "minItems": isCount, "maxItems": isCount, "minProperties": isCount, "maxProperties": isCount,
		"minContains": isCount, "maxContains": isCount,
		"pattern": isPattern, "required": isNames,
		"items": isItems, "additionalProperties": isSchema, "not": isSchema, "contains": isSchema, "propertyNames": isSchema,
		"if": isSchema, "then": isSchema, "else": isSchema, "unevaluatedProperties": isSchema, "unevaluatedItems": isSchema,
		"allOf": isSchemas, "anyOf": isSchemas, "oneOf": isSchemas, "prefixItems": isSchemas,
		"properties": isProperties, "patternProperties": isPatternProperties,
	}
}

// portable reports whether a pattern means the same to Go and, with the flag u, to JavaScript.
// Others are left out: one that cannot be compiled makes hosts lose a whole list of tools.
func portable(pattern string) bool {
	if _, err := regexp.Compile(pattern); err != nil || len(pattern) > 500 {
		return false
	}
	class := false
	for i := 0; i < len(pattern); i++ {
		switch rest := pattern[i:]; {
		case rest[0] == '\\':
			i++
			if escaped := pattern[i]; !strings.ContainsRune(`dDwWsSnrtfv^$\.*+?()[]{}|/`, rune(escaped)) && !(class && escaped == '-') && !(!class && (escaped == 'b' || escaped == 'B')) {
				return false
			}
		case class:
			if class = rest[0] != ']'; rest[0] == '[' {
				return false // of POSIX, or a set of the flag v
			}
		case rest[0] == '[':
			class = true
			if strings.HasPrefix(rest, "[]") || strings.HasPrefix(rest, "[^]") {
				return false
			}
		case strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:"), rest[0] == ']':
			return false
		case rest[0] == '{':
			end := strings.IndexByte(rest, '}')
			if end < 2 || strings.Trim(rest[1:end], "0123456789,") != "" || rest[1] == ',' {
				return false
			}
			i += end
		case rest[0] == '}':
			return false
		}
	}
	return true
}
