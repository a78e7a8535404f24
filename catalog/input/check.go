// Package input compares the arguments of calls with the input schemas of tools: what
// does not fit (check.go), and which strings become values (schema.go).
package input

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dynmcp/dynmcp/internal/display"
)

// Compiled reports whether Check no longer has to compile the schema.
func (s *Schema) Compiled() bool { return s.compiled.Load() }

// Check returns everything in an input that does not fit the schema, a line for each,
// beginning with its JSON Pointer (RFC 6901). It returns nil if the input fits, or if the
// schema cannot be used: then only the server can check the input.
func (s *Schema) Check(input json.RawMessage) []string {
	s.compiling.Do(s.compile)
	var value any
	if s.resolved == nil || json.Unmarshal(input, &value) != nil {
		return nil
	}
	err := s.resolved.Validate(value)
	if err == nil {
		return nil
	}
	found := violations{schema: s}
	found.collect("", s.root, value, 0)
	if len(found.lines) == 0 {
		found.add("", errorText(err))
	}
	return found.lines
}

func (s *Schema) compile() {
	defer s.compiled.Store(true)
	if s.parsing.Do(s.parse); s.root != nil {
		s.resolved, _ = resolve(s.root)
	}
}

func (s *Schema) parse() {
	var value any
	if json.Unmarshal(s.raw, &value) != nil {
		return
	}
	root, ok := value.(map[string]any)
	if !ok {
		return
	}
	fitLibrary(root)
	switch version, _ := root["$schema"].(string); {
	case strings.Contains(version, "draft-04") || strings.Contains(version, "draft-06"):
		root["$schema"] = "http://json-schema.org/draft-07/schema#"
		s.refAlone = true
	case strings.Contains(version, "draft-07"):
		s.refAlone = true
	default:
		delete(root, "$schema")
	}
	s.root = root
}

// resolve prepares a schema for the library. It fails for references to other schemas:
// nothing is fetched.
func resolve(schema any) (*jsonschema.Resolved, error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// fitLibrary removes what the library does not support, so that the rest is checked: regular
// expressions with lookaround, and the boolean limits of draft 4. OpenAPI's nullable becomes a type.
func fitLibrary(schema any) {
	switch s := schema.(type) {
	case []any:
		for _, element := range s {
			fitLibrary(element)
		}
	case map[string]any:
		if pattern, ok := s["pattern"].(string); ok && !compiles(pattern) {
			delete(s, "pattern")
		}
		if byPattern, ok := s["patternProperties"].(map[string]any); ok {
			for pattern := range byPattern {
				if !compiles(pattern) {
					for _, key := range []string{"patternProperties", "additionalProperties", "unevaluatedProperties"} {
						delete(s, key)
					}
				}
			}
		}
		for _, limit := range []string{"exclusiveMinimum", "exclusiveMaximum"} {
			if _, is := s[limit].(bool); is {
				delete(s, limit)
			}
		}
		if name, ok := s["type"].(string); ok && s["nullable"] == true {
			s["type"] = []any{name, "null"}
			if values, ok := s["enum"].([]any); ok && !slices.Contains(values, nil) {
				s["enum"] = append(values, nil)
			}
		}
		for _, member := range s {
			fitLibrary(member)
		}
	}
}

func compiles(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}

// violations collects everything that is wrong with a value. The library reports only the
// first fault, so each part of the value is validated by itself, with its part of the schema.
type violations struct {
	schema *Schema
	lines  []string
}

// Limits for schemas that refer to themselves.
const (
	maxViolations     = 50
	maxViolationDepth = 64
)

func (v *violations) add(pointer, what string) {
	switch {
	case len(v.lines) < maxViolations:
		if pointer == "" {
			pointer = `""`
		}
		v.lines = append(v.lines, pointer+": "+what)
	case len(v.lines) == maxViolations:
		v.lines = append(v.lines, "and more")
	}
}

func (v *violations) collect(pointer string, schema, value any, depth int) {
	if len(v.lines) > maxViolations {
		return
	}
	whole, ok := schema.(map[string]any)
	if !ok || depth > maxViolationDepth {
		v.judge(pointer, schema, value)
		return
	}
	if types, has := whole["type"]; has && !v.fits(map[string]any{"type": types}, value) {
		v.add(pointer, "this is "+kindOf(value)+", want "+valuesOf(types))
		return
	}
	rest := maps.Clone(whole)
	delete(rest, "type")
	if options, has := rest["enum"]; has && !v.fits(map[string]any{"enum": options}, value) {
		v.add(pointer, "want one of "+valuesOf(options))
	}
	delete(rest, "enum")
	if ref, is := rest["$ref"].(string); is {
		if target, found := v.schema.target(ref); found {
			v.collect(pointer, target, value, depth+1)
			delete(rest, "$ref")
		}
	}
	if all, is := rest["allOf"].([]any); is {
		for _, part := range all {
			v.collect(pointer, part, value, depth+1)
		}
		delete(rest, "allOf")
	}
	switch value := value.(type) {
	case map[string]any:
		v.collectMembers(pointer, rest, value, depth)
	case []any:
		if items, is := rest["items"].(map[string]any); is && rest["prefixItems"] == nil {
			for i, element := range value {
				v.collect(fmt.Sprintf("%s/%d", pointer, i), items, element, depth+1)
			}
			delete(rest, "items")
		}
	}
	v.judge(pointer, rest, value)
}

// collectMembers checks the members of an object, and removes the keywords that it has
// checked from rest, the schema.
func (v *violations) collectMembers(pointer string, rest, value map[string]any, depth int) {
	if required, is := rest["required"].([]any); is {
		for _, name := range required {
			if name, is := name.(string); is {
				if _, has := value[name]; !has {
					v.add(pointer, display.Quote(name)+" is missing")
				}
			}
		}
		delete(rest, "required")
	}
	properties, _ := rest["properties"].(map[string]any)
	known := slices.Sorted(maps.Keys(properties))
	taken := map[string]any{}
	for _, name := range known {
		taken[name] = true
		if member, has := value[name]; has {
			v.collect(pointer+"/"+pointerStep(name), properties[name], member, depth+1)
		}
	}
	if properties != nil {
		rest["properties"] = taken
	}
	if rest["patternProperties"] != nil {
		return
	}
	switch more := rest["additionalProperties"].(type) {
	case bool:
		if more {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if taken[name] == nil {
				v.add(pointer+"/"+pointerStep(name), "there is no such member, only "+strings.Join(known, ", "))
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if taken[name] == nil {
				v.collect(pointer+"/"+pointerStep(name), more, value[name], depth+1)
			}
		}
	default:
		return
	}
	delete(rest, "additionalProperties")
}

// judge validates one part with the library.
func (v *violations) judge(pointer string, schema, value any) {
	if err := v.validate(schema, value); err != nil {
		v.add(pointer, errorText(err))
	}
}

func (v *violations) fits(schema, value any) bool { return v.validate(schema, value) == nil }

// validate returns nil also for a part that cannot be validated by itself.
func (v *violations) validate(schema, value any) error {
	resolved, err := resolve(v.schema.part(schema))
	if err != nil {
		return nil
	}
	return resolved.Validate(value)
}

// target returns the part of the schema that a local reference refers to.
func (s *Schema) target(ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, false
	}
	var at any = s.root
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		object, is := at.(map[string]any)
		if step == "" {
			continue
		}
		if at, ok = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; !is || !ok {
			return nil, false
		}
	}
	return at, true
}

// pointerStep returns the name of a member as a JSON Pointer has it (RFC 6901, 3).
func pointerStep(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// errorText returns an error of the library as a text for models.
func errorText(err error) string {
	text := err.Error()
	for strings.HasPrefix(text, "validating ") {
		_, text, _ = strings.Cut(text, ": ")
	}
	switch word, _, _ := strings.Cut(text, ":"); word {
	case "anyOf":
		return "it fits none of the alternatives of anyOf"
	case "oneOf":
		return "it does not fit exactly one of the alternatives of oneOf"
	}
	line, _, _ := strings.Cut(text, "\n")
	return display.Cut(display.Fold(line), display.LineWidth)
}

func kindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64:
		return "the number " + fmt.Sprint(value)
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}

// valuesOf returns the values of a keyword, one or a list, as text.
func valuesOf(values any) string {
	all, ok := values.([]any)
	if !ok {
		all = []any{values}
	}
	var shown []string
	for _, value := range all {
		if raw, err := json.Marshal(value); err == nil {
			shown = append(shown, string(raw))
		}
	}
	return display.Cut(strings.Join(shown, ", "), display.LineWidth)
}
