package input

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFitChangesOnlyWhatCannotBeAString(t *testing.T) {
	schema := New(json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"f":{"type":"number"},"s":{"type":"string"},"b":{"type":"boolean"},` +
		`"either":{"type":["number","string"]},"maybe":{"type":["integer","null"]},"open":{"type":"integer","nullable":true},"word":{"type":"string","nullable":true,"enum":["a"]},"any":{},"of":{"anyOf":[{"type":"integer"},{"type":"string"}]},` +
		`"list":{"type":"array","items":{"type":"integer"}},"texts":{"type":"array","items":{"type":"string"}},"opt":{"anyOf":[{"type":"array","items":{}},{"type":"null"}]},` +
		`"deep":{"$ref":"#/$defs/deep"},"ref":{"$ref":"#/$defs/at"},"level":{"enum":[1,2,3]},` +
		`"map":{"type":"object","additionalProperties":{"type":"boolean"}},"a/b":{"type":"integer"},"both":{"allOf":[{"$ref":"#/$defs/at"},{"required":["x"]}]},` +
		`"shape":{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"size":{"type":"integer"}}},{"type":"object","properties":{"kind":{"const":"b"},"size":{"type":"number"}}}]},` +
		`"loose":{"anyOf":[{"type":"object","properties":{"v":{"type":"integer"}}},{"type":"object"}]},"odd":{"type":"file"},"loop":{"$ref":"#/$defs/loop"}},` +
		`"$defs":{"deep":{"type":"object","properties":{"n":{"type":"integer"},"again":{"$ref":"#/$defs/deep"}}},"at":{"type":"object","properties":{"x":{"type":"number"}}},"loop":{"$ref":"#/$defs/loop"}}}`))
	for _, tt := range []struct{ input, want, changed string }{
		{`{"n":"3"}`, `{"n":3}`, `n`},
		{`{ "n" : "3" , "x":[1.0,"3"] }`, `{ "n" : 3 , "x":[1.0,"3"] }`, `n`},
		{`{"\u006e":"-12","s":"3"}`, `{"\u006e":-12,"s":"3"}`, `n`},
		{`{"f":"1.50e3","maybe":"7"}`, `{"f":1.50e3,"maybe":7}`, `f maybe`},
		{`{"n":"9007199254740993","f":1}`, `{"n":9007199254740993,"f":1}`, `n`},
		{`{"b":"true","maybe":"null","opt":"null"}`, `{"b":true,"maybe":null,"opt":null}`, `b maybe opt`},
		{`{"open":"null","word":"null"}`, `{"open":null,"word":"null"}`, `open`},
		{`{"open":"3","word":null}`, `{"open":3,"word":null}`, `open`},
		{`{"level":"2","a/b":"1"}`, `{"level":2,"a/b":1}`, `level a~1b`},
		{`{"opt":"[\"x\", 1.0]","texts":"[\"3\"]"}`, `{"opt":["x", 1.0],"texts":["3"]}`, `opt texts`},
		{`{"list":["3",4,"x","5"]}`, `{"list":[3,4,"x",5]}`, `list/0 list/3`},
		{`{"list":"[\"3\",4]"}`, `{"list":[3,4]}`, `list list/0`},
		{`{"deep":{"n":"3","again":{"again":"{\"n\":\"4\"}"}}}`, `{"deep":{"n":3,"again":{"again":{"n":4}}}}`, `deep/n deep/again/again deep/again/again/n`},
		{`{"ref":"\n{\n\"x\": \"1.5\"}"}`, `{"ref":{ "x": 1.5}}`, `ref ref/x`},
		{`{"map":{"any":"false"},"both":{"x":"1"}}`, `{"map":{"any":false},"both":{"x":1}}`, `map/any both/x`},
		{`{"shape":{"kind":"b","size":"1.5"}}`, `{"shape":{"kind":"b","size":1.5}}`, `shape/size`},
	} {
		got, changed := schema.Fit(json.RawMessage(tt.input), nil)
		var paths []string
		for _, line := range changed {
			path, _, _ := strings.Cut(line, ": ")
			paths = append(paths, path)
		}
		if string(got) != tt.want || strings.Join(paths, " ") != tt.changed {
			t.Errorf("%s: got %s, %q, want %s, %s", tt.input, got, changed, tt.want, tt.changed)
		}
	}
	for _, input := range []string{
		`{}`, `{"n":3}`, `{"n":"three"}`, `{"n":""}`, `{"n":"3.5"}`, `{"n":"1e2"}`, `{"n":" 3"}`, `{"n":"3 "}`, `{"n":"0x3"}`, `{"n":"03"}`, `{"n":"+3"}`, `{"f":"NaN"}`,
		`{"s":"3"}`, `{"b":"1"}`, `{"b":"True"}`, `{"either":"3"}`, `{"any":"3"}`, `{"of":"3"}`, `{"N":"3"}`, `{"n":null}`, `{"n":["3"]}`, `{"n":"null"}`, `{"level":"4"}`,
		`{"s":"{\"a\":1}"}`, `{"any":"{\"a\":1}"}`, `{"texts":"[1]"}`, `{"texts":"[\"a\""}`, `{"deep":"[1]"}`, `{"deep":"\"{}\""}`, `{"list":"[\"x\"]"}`, `{"both":"{}"}`,
		`{"loose":{"v":"1"}}`, `{"odd":"1"}`, `{"loop":"{}"}`, `{"n":"\ud800"}`, `{"deep":{"n":"3","long":"` + strings.Repeat("x", maxNested) + `"}}`,
		`{"n":"` + strings.Repeat("3", maxNumber) + `"}`, `{"n":"3","long":"` + strings.Repeat("x", maxFit) + `"}`,
	} {
		if got, changed := schema.Fit(json.RawMessage(input), nil); string(got) != input || changed != nil {
			t.Errorf("%.60s: got %.60s, %q", input, got, changed)
		}
	}
	before7 := New(json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/s","type":"integer"}},"definitions":{"s":{"type":"string"}}}`))
	if got, _ := before7.Fit(json.RawMessage(`{"a":"1"}`), nil); string(got) != `{"a":"1"}` {
		t.Errorf("what is beside $ref of draft 7 counts: got %s", got)
	}
	for _, schema := range []string{``, `true`, `[]`, `{"$ref":"#x","x":{"properties":{"a":{"type":"integer"}}}}`, `{"$ref":"other"}`, `{"properties":{"a":{"$id":"o","$ref":"#/properties/b"},"b":{"type":"integer"}}}`} {
		if got, changed := New(json.RawMessage(schema)).Fit(json.RawMessage(`{"a":"1"}`), nil); string(got) != `{"a":"1"}` || changed != nil {
			t.Errorf("%s: got %s", schema, got)
		}
	}
}

func TestNoteNamesEachChange(t *testing.T) {
	schema := New(json.RawMessage(`{"properties":{"l":{"items":{"type":"integer"},"type":"array"}}}`))
	_, changed := schema.Fit(json.RawMessage(`{"l":["1"`+strings.Repeat(`,"2"`, maxNamed)+`]}`), nil)
	note := Note(changed)
	if !strings.Contains(note, `l/0: the string "1" became the number 1; l/1: `) || !strings.HasSuffix(note, "and 1 more]") || len(changed) != maxNamed+1 {
		t.Errorf("got %s of %d", note, len(changed))
	}
}

// schemaIn draws a schema with everything that Fit understands, and keywords that it does not.
func schemaIn(r *rapid.T, depth int) any {
	inner := func() any { return schemaIn(r, depth-1) }
	some := func() []any { return []any{inner(), inner()} }
	s := map[string]any{}
	for range rapid.IntRange(0, 2).Draw(r, "keywords") {
		forms := 6
		if depth > 0 {
			forms = 15
		}
		switch rapid.IntRange(0, forms).Draw(r, "form") {
		case 0, 1:
			s["type"] = rapid.SampledFrom([]string{"null", "boolean", "integer", "number", "string", "array", "object"}).Draw(r, "type")
		case 2:
			s["type"] = []any{"null", rapid.SampledFrom([]string{"integer", "string", "array", "object"}).Draw(r, "type")}
		case 3:
			s["enum"] = []any{rapid.SampledFrom([]any{1, "1", true, nil, "x", []any{}}).Draw(r, "value"), 2}
		case 4:
			s["const"] = rapid.SampledFrom([]any{1, "1", false, nil}).Draw(r, "value")
		case 5:
			s["minimum"] = 2
		case 6:
			s["$ref"] = rapid.SampledFrom([]string{"#/$defs/a", "#/$defs/b"}).Draw(r, "ref")
		case 7, 8:
			s["properties"] = map[string]any{"a": inner(), "b": inner()}
		case 9:
			s["additionalProperties"] = inner()
		case 10:
			s["items"] = inner()
		case 11:
			s["anyOf"] = some()
		case 12:
			s["oneOf"] = some()
		case 13:
			s["allOf"] = some()
		case 14:
			s["not"] = inner()
		case 15:
			s["prefixItems"] = some()
		}
	}
	return s
}

// inputIn draws a value, with texts of values in it.
func inputIn(r *rapid.T, depth int) any {
	forms := 5
	if depth > 0 {
		forms = 9
	}
	switch form := rapid.IntRange(0, forms).Draw(r, "value"); form {
	case 0:
		return rapid.SampledFrom([]any{nil, true, 1, 2.5, "x"}).Draw(r, "plain")
	case 1, 2, 3, 4, 5:
		return rapid.SampledFrom([]any{"1", "3", "2.5", "true", "null", "{}", "[]", `"1"`, " 1"}).Draw(r, "text")
	case 6:
		raw, _ := json.Marshal(inputIn(r, depth-1))
		return string(raw)
	case 7:
		return []any{inputIn(r, depth-1), inputIn(r, depth-1)}
	}
	return map[string]any{rapid.SampledFrom([]string{"a", "c"}).Draw(r, "name"): inputIn(r, depth-1), "b": inputIn(r, depth-1)}
}

// What is valid is never changed. What was changed was invalid, and stays so only for other reasons:
// every replacement is valid in its place. With only this one place wrong, the whole is valid.
func TestFitKeepsWhatIsValid(t *testing.T) {
	rapid.Check(t, fitKeepsWhatIsValid)
}

func FuzzFitKeepsWhatIsValid(f *testing.F) { f.Fuzz(rapid.MakeFuzz(fitKeepsWhatIsValid)) }

func fitKeepsWhatIsValid(r *rapid.T) {
	root := schemaIn(r, 3).(map[string]any)
	root["properties"] = map[string]any{"a": schemaIn(r, 3), "b": schemaIn(r, 2)}
	root["$defs"] = map[string]any{"a": schemaIn(r, 1), "b": map[string]any{"type": "integer"}}
	if defs := fmt.Sprint(root["$defs"]); strings.Contains(defs, "#/$defs/a") {
		root["$defs"] = map[string]any{"a": map[string]any{"type": "object"}, "b": map[string]any{"type": "integer"}}
	}
	raw, _ := json.Marshal(root)
	input, _ := json.Marshal(map[string]any{"a": inputIn(r, 3), "b": inputIn(r, 2)})
	s := New(raw)
	s.Check(input)
	if s.resolved == nil {
		r.Skip()
	}
	fitted, changed := s.Fit(input, nil)
	valid := func(input []byte) bool {
		var v any
		return json.Unmarshal(input, &v) == nil && s.resolved.Validate(v) == nil
	}
	if (string(fitted) != string(input)) != (changed != nil) {
		r.Fatalf("%s with %s: %s, but %q", input, raw, fitted, changed)
	}
	if changed == nil {
		return
	}
	if valid(input) {
		r.Fatalf("%s is valid with %s and became %s", input, raw, fitted)
	}
	if again, more := s.Fit(fitted, nil); more != nil {
		r.Fatalf("%s with %s became %s, then %s", input, raw, fitted, again)
	}
	at := New(fmt.Appendf(nil, `{"properties":{"a":%s},"$defs":%s}`, member(raw, "properties", "a"), member(raw, "$defs")))
	alone := func(input []byte) json.RawMessage { return fmt.Appendf(nil, `{"a":%s}`, member(input, "a")) }
	if slices.ContainsFunc(changed, func(line string) bool { return strings.HasPrefix(line, "a: ") }) && at.Check(alone(input)) != nil && at.Check(alone(fitted)) != nil {
		r.Fatalf("a of %s with %s became %s, which is not valid: %s", input, raw, fitted, at.Check(alone(fitted)))
	}
}

func member(raw json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		var of map[string]json.RawMessage
		json.Unmarshal(raw, &of)
		raw = of[name]
	}
	return raw
}
