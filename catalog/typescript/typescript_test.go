package typescript

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/tokens"
)

// canonical writes a schema in a normal form, the same for schemas of the same meaning. It
// follows references for so many steps.
type canonical struct {
	root  any
	steps int
}

func (c canonical) of(s any, property string) string {
	switch s := s.(type) {
	case bool:
		if s {
			return "any"
		}
		return "never"
	case map[string]any:
		groups, said := c.groups(s, property)
		sort.Strings(groups)
		groups = slices.Compact(groups)
		text := strings.Join(groups, " & ")
		if text == "" {
			text = "any"
		}
		if said != "" {
			text = closed("(" + text + " : " + said + ")")
		}
		return text
	}
	return "?"
}

// groups returns the parts that all hold, and the keywords of the whole.
func (c canonical) groups(s map[string]any, property string) (groups []string, said string) {
	rest := map[string]any{}
	for k, v := range s {
		rest[k] = v
	}
	take := func(k string) any { v := rest[k]; delete(rest, k); return v }
	for _, k := range []string{"$schema", "$defs", "definitions", "$comment", "x-mcp-header"} {
		delete(rest, k)
	}
	if take("never") != nil {
		groups = append(groups, "never")
	}
	if ref, ok := rest["$ref"].(string); ok {
		delete(rest, "$ref")
		groups = append(groups, closed("ref("+c.target(ref)+")"))
	}
	values, isEnum := rest["enum"].([]any)
	if v, ok := rest["const"]; ok && !isEnum {
		values, isEnum = []any{v}, true
	}
	types := typeList(rest["type"])
	var literal []string
	for _, v := range values {
		raw, _ := json.Marshal(v)
		if raw[0] == '{' || raw[0] == '[' {
			isEnum = false
		}
		is := "=" + string(raw)
		if is == "=null" {
			is = "null"
		}
		literal = append(literal, is)
	}
	if isEnum && len(values) > 0 {
		delete(rest, "enum")
		if _, both := s["enum"]; !both || s["const"] == nil || len(s) < 2 || s["enum"] == nil {
			delete(rest, "const")
		}
		groups = append(groups, alternatives(literal))
		if !slices.ContainsFunc(literal, func(v string) bool { return !literalIs(v, types) }) {
			delete(rest, "type")
			types = nil
		}
	}
	if types != nil {
		delete(rest, "type")
		var all []string
		for _, t := range types {
			all = append(all, c.structure(t, rest))
		}
		for _, k := range []string{"properties", "required", "additionalProperties", "propertyNames"} {
			if slices.Contains(types, "object") {
				delete(rest, k)
			}
		}
		if slices.Contains(types, "array") {
			_, listed := rest["items"].([]any)
			if tuple := rest["prefixItems"] != nil || listed; tuple {
				delete(rest, "minItems")
				if listed {
					delete(rest, "additionalItems")
				}
			}
			delete(rest, "items")
			delete(rest, "prefixItems")
		}
		groups = append(groups, alternatives(all))
	}
	for _, k := range []string{"anyOf", "oneOf"} { // with one member it is that member
		if members, ok := rest[k].([]any); ok && len(members) == 1 {
			delete(rest, k)
			groups = append(groups, c.spread(members[0])...)
		}
	}
	if members, ok := rest["anyOf"].([]any); ok && len(members) > 0 {
		delete(rest, "anyOf")
		var all []string
		for _, m := range members {
			all = append(all, c.spliced(m)...)
		}
		groups = append(groups, alternatives(all))
	}
	if members, ok := rest["oneOf"].([]any); ok && len(members) > 0 {
		delete(rest, "oneOf")
		var all []string
		for _, m := range members {
			all = append(all, "["+c.of(m, "")+"]")
		}
		sort.Strings(all)
		groups = append(groups, closed("one"+strings.Join(all, "^")))
	}
	if members, ok := rest["allOf"].([]any); ok && len(members) > 0 {
		delete(rest, "allOf")
		for _, m := range members {
			groups = append(groups, c.spread(m)...)
		}
	}
	if d, ok := rest["description"].(string); ok {
		d = strings.TrimSpace(display.Clean(strings.ReplaceAll(d, "\r\n", "\n")))
		if rest["description"] = d; d == "" {
			delete(rest, "description")
		}
	}
	fold := strings.NewReplacer(" ", "", "_", "", "-", "")
	if title, ok := rest["title"].(string); ok && property != "" && strings.EqualFold(fold.Replace(title), fold.Replace(property)) {
		delete(rest, "title")
	}
	if len(rest) > 0 {
		raw, _ := json.Marshal(rest)
		said = string(raw)
	}
	groups = slices.DeleteFunc(groups, func(g string) bool { return g == "any" })
	return groups, said
}

// closed returns a text in which unions are not split.
func closed(text string) string { return strings.ReplaceAll(text, " | ", " |\u00a0") }

// spread returns the parts of a member of allOf.
func (c canonical) spread(m any) []string {
	if inner, ok := m.(map[string]any); ok {
		if groups, said := c.groups(inner, ""); said == "" {
			return groups
		}
	}
	return []string{c.of(m, "")}
}

// spliced returns the alternatives of a member of anyOf, several if it is itself a union.
func (c canonical) spliced(m any) []string {
	inner, ok := m.(map[string]any)
	if !ok {
		return []string{c.of(m, "")}
	}
	if groups, said := c.groups(inner, ""); said == "" && len(groups) == 1 {
		return strings.Split(groups[0], " | ")
	}
	return []string{c.of(m, "")}
}

func alternatives(all []string) string {
	all = slices.Clone(all)
	sort.Strings(all)
	return strings.Join(slices.Compact(all), " | ")
}

func typeList(v any) (types []string) {
	switch v := v.(type) {
	case string:
		types = []string{v}
	case []any:
		for _, t := range v {
			s, _ := t.(string)
			types = append(types, s)
		}
	}
	for _, t := range types {
		if !strings.Contains(" string number integer boolean null object array ", " "+t+" ") {
			return nil
		}
	}
	return types
}

func literalIs(literal string, types []string) bool {
	switch {
	case literal == "null":
		return slices.Contains(types, "null")
	case literal[1] == '"':
		return slices.Contains(types, "string")
	case literal == "=true" || literal == "=false":
		return slices.Contains(types, "boolean")
	case !strings.ContainsAny(literal, ".eE") && slices.Contains(types, "integer"):
		return true
	}
	return slices.Contains(types, "number")
}

// structure returns a type with the contents of objects and arrays.
func (c canonical) structure(t string, s map[string]any) string {
	parts := map[string]any{}
	switch t {
	case "object":
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			parts["."+name] = c.of(p, name)
		}
		if names, ok := s["required"].([]any); ok {
			for _, n := range names {
				name, _ := n.(string)
				if _, is := properties[name]; is {
					parts["!"+name] = true
				} else {
					parts["required"] = true
				}
			}
		}
		if others := s["additionalProperties"]; others != nil {
			if is := c.of(others, ""); is != "any" {
				parts["others"] = is
			}
		}
		if names := s["propertyNames"]; names != nil {
			if is := c.of(names, ""); is != "string" {
				parts["names"] = is
			}
		}
	case "array":
		items, first := s["items"], s["prefixItems"]
		if listed, ok := items.([]any); ok {
			items, first = s["additionalItems"], listed
		}
		if items != nil {
			if is := c.of(items, ""); is != "any" {
				parts["items"] = is
			}
		}
		if first, ok := first.([]any); ok {
			for i, e := range first {
				parts[strings.Repeat("i", i+1)] = c.of(e, "")
			}
			if least, _ := json.Marshal(s["minItems"]); string(least) != "0" && string(least) != "null" {
				parts["least"] = string(least)
			}
		}
	}
	if len(parts) == 0 {
		return t
	}
	raw, _ := json.Marshal(parts)
	return t + closed(string(raw))
}

// target returns the normal form of a reference.
func (c canonical) target(ref string) string {
	if c.steps == 0 {
		return "…"
	}
	at := c.root
	for _, token := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch here := at.(type) {
		case map[string]any:
			at = here[token]
		case []any:
			n := 0
			_ = json.Unmarshal([]byte(token), &n)
			at = here[n]
		}
	}
	return canonical{c.root, c.steps - 1}.of(at, "")
}

// decode reads JSON with its numbers as they are written.
func decode(raw []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// agree returns how the meaning of a text differs from its schema, "" if it does not.
func agree(schema json.RawMessage, text string) string {
	parsed, err := parse(text)
	if err != nil {
		return err.Error()
	}
	raw, err := json.Marshal(parsed)
	if err != nil {
		return err.Error()
	}
	want, _ := decode(schema).(map[string]any)
	if want["type"] == nil {
		want["type"] = "object"
	}
	read := decode(raw)
	for steps := range 3 {
		open := strings.NewReplacer("\u00a0", " ")
		if w, g := open.Replace(canonical{want, steps}.of(want, "")), open.Replace(canonical{read, steps}.of(read, "")); w != g {
			return "want " + w + "\ngot  " + g
		}
	}
	return ""
}

// corpus is the directory of real catalogues, beside the repository.
const corpus = "../../../shared/corpus"

// realTools calls f with each tool of the real catalogues.
func realTools(t testing.TB, f func(server, name, description string, input, output json.RawMessage)) {
	files, _ := filepath.Glob(corpus + "/servers/*.json")
	if len(files) == 0 {
		t.Skip("no real catalogues: " + corpus + "/servers is missing")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var listed struct {
			Tools []struct {
				Name, Description         string
				InputSchema, OutputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(text, &listed); err != nil {
			t.Fatal(err)
		}
		for _, tool := range listed.Tools {
			f(strings.TrimSuffix(filepath.Base(file), ".json"), tool.Name, tool.Description, tool.InputSchema, tool.OutputSchema)
		}
	}
}

// The type of every real schema says all that the schema says.
func TestRealSchemasAreWhole(t *testing.T) {
	var before, after []int
	incomplete, wrong := 0, 0
	realTools(t, func(server, name, _ string, input, output json.RawMessage) {
		was, is := 0, 0
		for _, schema := range []json.RawMessage{input, output} {
			if schema == nil {
				continue
			}
			text, complete := Type(schema)
			if !complete {
				incomplete++
				text = string(schema)
				t.Logf("%s/%s stays JSON", server, name)
			} else if problem := agree(schema, text); problem != "" {
				if wrong++; wrong <= 5 {
					t.Errorf("%s/%s: %s\n%s\n%s", server, name, problem, schema, text)
				}
			}
			was += tokens.Count(display.JSON(schema))
			is += tokens.Count(text)
		}
		before, after = append(before, was), append(after, is)
	})
	slices.Sort(before)
	slices.Sort(after)
	n := len(before)
	t.Logf("%d tools, %d schemas stay JSON, %d are wrong; tokens of the schemas: median %d → %d, 95th percentile %d → %d",
		n, incomplete, wrong, before[n/2], after[n/2], before[n*95/100], after[n*95/100])
	if incomplete > 0 || after[n/2] > before[n/2]*3/4 {
		t.Errorf("%d schemas stay JSON; median %d of %d tokens", incomplete, after[n/2], before[n/2])
	}
}

// every is a schema with everything that schemas of tools have.
const every = `{"type":"object","description":"About all.","properties":{
"text":{"type":"string","description":"A text.","minLength":1,"pattern":"^a*/b$","default":"x","title":"Text"},
"count":{"type":["integer","null"],"minimum":1,"exclusiveMaximum":10.0},
"kind":{"type":"string","enum":["a","b c"],"title":"Which kind"},
"mixed":{"enum":["a",1,null,true]},
"odd":{"type":"string","enum":["a",null]},
"fixed":{"const":7},
"either":{"anyOf":[{"type":"string","format":"date-time"},{"type":"array","items":{"type":"number"}},{"type":"null"}],"default":null},
"one":{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"enum":["x","y"]}]},
"both":{"allOf":[{"$ref":"#/$defs/node"},{"description":"And this.","required":["z"]}]},
"tree":{"$ref":"#/$defs/node","description":"A tree."},
"part":{"$ref":"#/properties/pairs/items"},
"pairs":{"type":"array","items":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false,"minItems":1},"maxItems":3},
"map":{"type":"object","additionalProperties":{"type":"integer","description":"How many."},"propertyNames":{"pattern":"^x-"}},
"any":{},"never":false,"free":{"type":"object"},"none":{"type":"object","additionalProperties":false},
"x-quoted name":{"type":"boolean","description":"Lines:\n- one\n- two @nobody said */"},
"loose":{"properties":{"q":{"type":"string"}},"not":{"type":"null"}},
"nested":{"type":"object","properties":{"deep":{"type":"object","description":"Deep.\nTwo lines.","properties":{"x":{"type":"string","examples":["a"]}},"additionalProperties":false}},"required":["deep"]}
},"required":["text","tree","elsewhere"],"additionalProperties":true,"$defs":{"node":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/$defs/node"}},"value":{"type":"string"}},"required":["value"]},"unused":{"type":"string"}}}`

func TestType(t *testing.T) {
	got, complete := Type(json.RawMessage(every))
	if problem := agree(json.RawMessage(every), got); !complete || problem != "" {
		t.Errorf("complete: %t. %s", complete, problem)
	}
	golden := "testdata/every.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// agree detects every word that is missing.
func TestAgreeSeesEveryWord(t *testing.T) {
	text, _ := Type(json.RawMessage(every))
	for _, at := range regexp.MustCompile(`[^\s{}()\[\]|&;:/*\\]+`).FindAllStringIndex(text, -1) {
		less := text[:at[0]] + text[at[1]:]
		if agree(json.RawMessage(every), less) == "" {
			t.Errorf("agree accepts a text without %q before %q", text[at[0]:at[1]], text[at[1]:min(len(text), at[1]+20)])
		}
	}
}

// A schema that cannot be expressed is not reported as complete.
func TestIncomplete(t *testing.T) {
	for _, schema := range []string{
		``, `[]`, `true`, `{"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}`, `{"$ref":"#"}`, `{"$ref":"#/$defs/none"}`,
		`{"type":"object","properties":{"a":{},"a":{"type":"string"}}}`, `{"type":"object","not":{"$ref":"#/$defs/a"},"$defs":{"a":{}}}`,
		`{"type":"object","$dynamicRef":"#a"}`, `{"type":"object","properties":{"\ud800":{}}}`, `{"oneOf":[]}`, `{"properties":{"a":7}}`,
	} {
		if text, complete := Type(json.RawMessage(schema)); complete {
			t.Errorf("%s is complete: %s", schema, text)
		}
	}
}

func TestSignature(t *testing.T) {
	for _, c := range []struct{ input, output, want string }{
		{`{"type":"object"}`, ``, "/* Does *\\/ it. */\nfunction do_it(input: object)"},
		{`{"type":"object","properties":{"a":{"$ref":"#/$defs/T"}},"$defs":{"T":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/T"}},"$defs":{"T":{"type":"number","minimum":1}},"additionalProperties":false}`,
			"/* Does *\\/ it. */\nfunction do_it(input: { a?: T; ... }): { a?: T2 }\ntype T = string\ntype T2 = number // @minimum 1"},
	} {
		got, complete := Signature("do_it", " Does */ it.\u200b\n", json.RawMessage(c.input), json.RawMessage(c.output))
		if got != c.want || !complete {
			t.Errorf("got %s, complete: %t, want %s", got, complete, c.want)
		}
	}
	if _, complete := Signature("x", "", nil, nil); complete {
		t.Error("a tool without a schema is complete")
	}
}

// anySchema generates schemas of at most this depth.
func anySchema(r *rapid.T, depth int) any {
	text := rapid.SampledFrom([]string{"", "Words.", "Lines\nof it", "a @tag here", "a*/b", "x \" y", "\u200bé", "me@example.com", " // "})
	s := map[string]any{}
	some := func(key string, value any) {
		if rapid.IntRange(0, 3).Draw(r, key) == 0 {
			s[key] = value
		}
	}
	some("description", text.Draw(r, "description"))
	some("default", rapid.SampledFrom([]any{nil, 1, "a", "*/", []any{1, "x"}, map[string]any{"a": true}}).Draw(r, "default"))
	some("title", text.Draw(r, "title"))
	kinds := []string{"string", "types", "enum", "const", "any", "bool"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "array", "tuple", "anyOf", "oneOf", "allOf", "ref")
	}
	inner := func() any { return anySchema(r, depth-1) }
	switch kind := rapid.SampledFrom(kinds).Draw(r, "kind"); kind {
	case "string":
		s["type"] = rapid.SampledFrom([]string{"string", "number", "integer", "boolean", "null", "strange"}).Draw(r, "type")
		some("pattern", "^a */ \"b")
		some("minimum", rapid.IntRange(-5, 5).Draw(r, "minimum"))
		some("x-odd key", []any{1, "a"})
	case "types":
		s["type"] = rapid.SampledFrom([][]any{{"string", "null"}, {"object", "array"}, {"integer", "number"}}).Draw(r, "types")
	case "enum":
		s["enum"] = rapid.SampledFrom([][]any{{"a"}, {"a", nil}, {1, 2.5}, {true}, {map[string]any{}}, {}}).Draw(r, "values")
		some("type", rapid.SampledFrom([]string{"string", "integer", "number", "boolean"}).Draw(r, "type"))
	case "const":
		s["const"] = rapid.SampledFrom([]any{"a", nil, 1, []any{}}).Draw(r, "value")
	case "bool":
		return rapid.Bool().Draw(r, "bool")
	case "object":
		properties := map[string]any{}
		var required []any
		for range rapid.IntRange(0, 3).Draw(r, "properties") {
			name := rapid.SampledFrom([]string{"a", "b_1", "a-b", "", "1", "...", "é", "[key: ", "x\ny"}).Draw(r, "name")
			properties[name] = inner()
			required = append(required, name)
		}
		s["type"] = "object"
		some("properties", properties)
		some("required", required)
		some("additionalProperties", inner())
		some("propertyNames", inner())
	case "array":
		s["type"] = "array"
		some("items", inner())
		some("minItems", 2)
	case "tuple":
		s["type"] = "array"
		s["prefixItems"] = []any{inner(), inner()}
		some("items", inner())
		some("minItems", rapid.IntRange(0, 3).Draw(r, "minItems"))
	case "ref":
		s["$ref"] = rapid.SampledFrom([]string{"#/$defs/string", "#/$defs/a-b", "#/$defs/ab"}).Draw(r, "ref")
	case "anyOf", "oneOf", "allOf":
		members := []any{}
		for range rapid.IntRange(0, 3).Draw(r, "members") {
			members = append(members, inner())
		}
		s[kind] = members
		some("type", "object")
		some("anyOf", []any{inner()})
	}
	return s
}

// The type of any schema says all that the schema says.
func TestAnySchemaIsWhole(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		root, ok := anySchema(r, 4).(map[string]any)
		if !ok {
			return
		}
		defs := map[string]any{}
		for _, name := range []string{"string", "a-b", "ab"} {
			defs[name] = anySchema(r, 2)
		}
		root["$defs"] = defs
		schema, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		if text, complete := Type(schema); complete {
			if problem := agree(schema, text); problem != "" {
				r.Fatalf("%s\n%s\n%s", problem, schema, text)
			}
		}
	})
}

// Any bytes are accepted, and a complete type can be parsed.
func FuzzType(f *testing.F) {
	f.Add([]byte(every))
	f.Add([]byte(`{"type":"object","properties":{"a":{"enum":[1.0]}}}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		text, complete := Type(schema)
		if !complete || !json.Valid(schema) {
			return
		}
		if _, err := parse(text); err != nil {
			t.Errorf("%v\n%s\n%s", err, schema, text)
		}
	})
}
