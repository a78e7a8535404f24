package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The most bytes of the schemas of a tool. What nests deeper than fits is left open. A schema of
// answers is for the few hosts that check them, and costs tokens like any other.
const (
	maxInput  = 24 << 10
	maxOutput = 6 << 10
)

// levels are how many levels of a schema are kept, the most that fit.
var levels = []int{48, 8, 5, 4, 3, 2, 1}

// A converter makes JSON Schemas of those of a document. Schemas that are referred to are in $defs,
// each once, so that neither recursion nor many references make them large.
type converter struct {
	doc    *document
	answer bool // without what is only written; otherwise without what is only read
	level  int
	budget int // bytes left
	names  map[string]string
	defs   map[string]any
	queue  []pendingDef
	err    error
}

// A pendingDef is a schema that was referred to and is not converted yet.
type pendingDef struct {
	name  string
	at    any
	depth int
}

// schemaOf returns the schema that make makes with a converter, with its $defs, in at most max
// bytes. make may be called repeatedly.
func (d *document) schemaOf(answer bool, max int, make func(*converter) object) (object, error) {
	for _, level := range levels {
		c := &converter{doc: d, answer: answer, level: level, budget: max, names: map[string]string{}, defs: map[string]any{}}
		root := make(c)
		for len(c.queue) > 0 && c.budget >= 0 {
			next := c.queue[0]
			c.queue = c.queue[1:]
			c.defs[next.name] = c.schema(next.at, next.depth)
		}
		if c.err != nil {
			return nil, c.err
		}
		if c.budget >= 0 || level == 1 {
			return c.withDefs(root), nil
		}
	}
	panic("unreachable")
}

// withDefs returns a schema with the $defs that it uses. One that is used once stands in its place.
func (c *converter) withDefs(root object) object {
	uses := map[string]int{}
	countRefs(root, uses)
	for _, def := range c.defs {
		countRefs(def, uses)
	}
	root, _ = c.inlined(root, uses).(object)
	defs := object{}
	for _, name := range slices.Sorted(maps.Keys(c.defs)) {
		if uses[name] > 1 {
			defs[name] = c.inlined(c.defs[name], uses)
		}
	}
	if len(defs) > 0 {
		root["$defs"] = defs
	}
	return root
}

func countRefs(v any, uses map[string]int) {
	switch v := v.(type) {
	case object:
		if name, ok := strings.CutPrefix(textOf(v["$ref"]), "#/$defs/"); ok {
			uses[name]++
		}
		for _, inner := range v {
			countRefs(inner, uses)
		}
	case []any:
		for _, inner := range v {
			countRefs(inner, uses)
		}
	}
}

// inlined returns a schema without references to what is used once, which is not recursive: a
// schema within itself is used from there, and from where it was found.
func (c *converter) inlined(v any, uses map[string]int) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		name, isRef := strings.CutPrefix(textOf(v["$ref"]), "#/$defs/")
		isRef = isRef && uses[name] == 1
		if isRef {
			target, _ := c.inlined(c.defs[name], uses).(object)
			maps.Copy(out, target)
		}
		for key, inner := range v {
			if !(isRef && key == "$ref") {
				out[key] = c.inlined(inner, uses)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = c.inlined(inner, uses)
		}
		return out
	}
	return v
}

// spend counts what a part of a schema takes.
func (c *converter) spend(n int) { c.budget -= n }

// fail records why the operation cannot be read.
func (c *converter) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// root converts a schema that must not be a reference, because it is the schema of a tool.
func (c *converter) root(v any) object {
	o, err := c.doc.follow(v)
	if err != nil {
		c.fail(err)
		return object{}
	}
	out, _ := c.schema(o, 0).(object)
	return out
}

// schema converts a schema.
func (c *converter) schema(v any, depth int) any {
	o, ok := v.(object)
	if !ok {
		if v == false {
			return object{"not": object{}}
		}
		return object{}
	}
	c.spend(8)
	if c.budget < 0 || c.err != nil {
		return object{}
	}
	if depth > c.level {
		return c.keywords(o, object{}, briefKeywords, depth)
	}
	if ref, ok := o["$ref"].(string); ok {
		return c.reference(ref, o, depth)
	}
	out := c.keywords(o, object{}, keywords, depth)
	c.tidy(o, out)
	return out
}

// reference converts a reference. Of what stands beside it, a description is kept.
func (c *converter) reference(ref string, o object, depth int) any {
	name, known := c.names[ref]
	if !known {
		target, err := c.doc.at(ref)
		if _, loop := c.doc.follow(o); errors.Is(loop, errLoop) {
			return object{}
		}
		if err != nil {
			c.fail(err)
			return object{}
		}
		if depth+1 > c.level {
			return c.schema(target, depth+1)
		}
		name = c.newName(ref)
		c.names[ref] = name
		c.queue = append(c.queue, pendingDef{name, target, depth + 1})
	}
	out := object{"$ref": "#/$defs/" + name}
	if description := textOf(o["description"]); description != "" && !c.doc.v30 && !c.doc.v2 {
		out["description"] = description
		c.spend(len(description))
	}
	c.spend(len(name) + 16)
	return out
}

// newName returns the name of a definition: the last part of the reference.
func (c *converter) newName(ref string) string {
	base := cleaned(unescaped(ref[strings.LastIndexByte(ref, '/')+1:]), 40)
	if base == "" {
		base = "schema"
	}
	name := base
	for i := 2; slices.Contains(slices.Collect(maps.Values(c.names)), name); i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	return name
}

// keywords converts the keywords of a schema.
func (c *converter) keywords(o, out object, known map[string]keyword, depth int) object {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		convert := known[name]
		if convert == nil {
			continue
		}
		v, ok := convert(c, o[name], depth)
		if !ok {
			continue
		}
		out[name] = v
		c.spend(len(name) + 4)
		switch v := v.(type) {
		case object:
		case string:
			c.spend(len(v))
		default:
			if name != "allOf" && name != "anyOf" && name != "oneOf" && name != "prefixItems" {
				text, _ := json.Marshal(v)
				c.spend(len(text))
			}
		}
	}
	return out
}

// tidy adapts what OpenAPI means otherwise than JSON Schema does.
func (c *converter) tidy(o, out object) {
	if o["additionalProperties"] == false {
		delete(out, "additionalProperties")
		if c.budget >= 0 { // otherwise properties may be missing
			out["additionalProperties"] = false
		}
	}
	if properties, ok := o["properties"].(object); ok {
		c.tidyRequired(properties, out)
	}
	for _, bound := range [][2]string{{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}} {
		if limit, ok := out[bound[1]]; ok && o[bound[0]] == true { // before 3.1
			out[bound[0]] = limit
			delete(out, bound[1])
		}
	}
	if multiple, ok := out["multipleOf"].(json.Number); ok {
		if f, err := multiple.Float64(); err != nil || f <= 0 {
			delete(out, "multipleOf")
		}
	}
	if example, ok := o["example"]; ok && out["examples"] == nil {
		if text, err := json.Marshal(example); err == nil && len(text) <= 100 {
			out["examples"] = []any{example}
			c.spend(len(text) + 12)
		}
	}
	if o["type"] == "file" { // 2.0
		out["type"], out["format"] = "string", "binary"
	}
	if discriminator, ok := o["discriminator"].(object); ok {
		if name := textOf(discriminator["propertyName"]); name != "" {
			out["description"] = strings.TrimSpace(textOf(out["description"]) + " (" + name + " says which kind it is)")
		}
	}
	if o["nullable"] == true || o["x-nullable"] == true {
		allowNull(out)
	}
}

// tidyRequired leaves out of required what properties does not show.
func (c *converter) tidyRequired(properties, out object) {
	required, _ := out["required"].([]string)
	required = slices.DeleteFunc(slices.Clone(required), func(name string) bool { return c.hides(properties[name]) })
	if len(required) == 0 {
		delete(out, "required")
	} else {
		out["required"] = required
	}
}

// allowNull lets a schema allow null, too.
func allowNull(out object) {
	for _, name := range []string{"allOf", "anyOf", "oneOf", "not", "const"} {
		if _, has := out[name]; has {
			inner := maps.Clone(out)
			clear(out)
			for _, kept := range []string{"title", "description", "default", "deprecated"} {
				if v, ok := inner[kept]; ok {
					out[kept] = v
					delete(inner, kept)
				}
			}
			out["anyOf"] = []any{inner, object{"type": "null"}}
			return
		}
	}
	switch t := out["type"].(type) {
	case string:
		if t != "null" {
			out["type"] = []string{t, "null"}
		}
	case []string:
		if !slices.Contains(t, "null") {
			out["type"] = append(t, "null")
		}
	}
	if enum, ok := out["enum"].([]any); ok && !slices.Contains(enum, any(nil)) {
		out["enum"] = append(enum, nil)
	}
}
