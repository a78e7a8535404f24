package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dynmcp/dynmcp/internal/strictjson"
)

// reached are the ways in which a schema reaches a value: %[1]s is the schema of the value, and
// with holds arguments in which %s is the value.
var reached = map[string]struct{ schema, with string }{
	"properties":            {`{"properties":{"a":%[1]s}}`, `{"a":%s}`},
	"below a member":        {`{"properties":{"o":{"type":"object","properties":{"a":%[1]s}}}}`, `{"o":{"a":%s}}`},
	"patternProperties":     {`{"patternProperties":{"^a$":%[1]s}}`, `{"a":%s}`},
	"additionalProperties":  {`{"properties":{"b":{"type":"string"}},"additionalProperties":%[1]s}`, `{"a":%s}`},
	"unevaluatedProperties": {`{"properties":{"b":{"type":"string"}},"unevaluatedProperties":%[1]s}`, `{"a":%s}`},
	"items":                 {`{"properties":{"l":{"type":"array","items":%[1]s}}}`, `{"l":[%s]}`},
	"prefixItems":           {`{"properties":{"l":{"type":"array","prefixItems":[{"type":"null"},%[1]s]}}}`, `{"l":[null,%s]}`},
	"contains":              {`{"properties":{"l":{"type":"array","contains":%[1]s}}}`, `{"l":[%s]}`},
	"unevaluatedItems":      {`{"properties":{"l":{"type":"array","prefixItems":[{"type":"null"}],"unevaluatedItems":%[1]s}}}`, `{"l":[null,%s]}`},
	"$ref to a member":      {`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":%[1]s}}`, `{"a":%s}`},
	"$ref to all":           {`{"$ref":"#/$defs/all","$defs":{"all":{"properties":{"a":%[1]s}}}}`, `{"a":%s}`},
	"definitions":           {`{"properties":{"a":{"$ref":"#/definitions/a"}},"definitions":{"a":%[1]s}}`, `{"a":%s}`},
	"allOf":                 {`{"allOf":[{"properties":{"b":{"type":"null"}}},{"properties":{"a":%[1]s}}]}`, `{"a":%s}`},
	"allOf of the member":   {`{"properties":{"a":{"allOf":[%[1]s]}}}`, `{"a":%s}`},
	"anyOf":                 {`{"anyOf":[{"properties":{"a":%[1]s}},false]}`, `{"a":%s}`},
	"anyOf of the member":   {`{"properties":{"a":{"anyOf":[%[1]s,%[1]s]}}}`, `{"a":%s}`},
	"oneOf":                 {`{"oneOf":[{"properties":{"a":%[1]s}},false]}`, `{"a":%s}`},
	"oneOf of the member":   {`{"properties":{"a":{"oneOf":[%[1]s]}}}`, `{"a":%s}`},
	"then":                  {`{"if":true,"then":{"properties":{"a":%[1]s}}}`, `{"a":%s}`},
	"else":                  {`{"if":false,"else":{"properties":{"a":%[1]s}}}`, `{"a":%s}`},
	"dependentSchemas":      {`{"properties":{"b":{"type":"null"}},"dependentSchemas":{"b":{"properties":{"a":%[1]s}}}}`, `{"b":null,"a":%s}`},
}

// Keywords that judge a value, with one that they accept; the type is missing. Those of places for
// other values are tried in reached.
var judging = map[string]string{
	`{"maximum":100}`:                                 `50`,
	`{"minimum":1}`:                                   `50`,
	`{"exclusiveMaximum":100}`:                        `50`,
	`{"exclusiveMinimum":1}`:                          `50`,
	`{"multipleOf":10}`:                               `50`,
	`{"pattern":"^ok$"}`:                              `"ok"`,
	`{"minLength":2}`:                                 `"ok"`,
	`{"maxLength":2}`:                                 `"ok"`,
	`{"const":false}`:                                 `false`,
	`{"const":null}`:                                  `null`,
	`{"const":7}`:                                     `7`,
	`{"enum":["x","ok"]}`:                             `"ok"`,
	`{"enum":[0.5]}`:                                  `0.5`,
	`{"not":{"const":true}}`:                          `false`,
	`{"not":{"pattern":"^/etc/"}}`:                    `"ok"`,
	`{"if":{"minimum":100},"then":false}`:             `50`,
	`{"minItems":1}`:                                  `["ok"]`,
	`{"maxItems":1}`:                                  `["ok"]`,
	`{"uniqueItems":true}`:                            `["ok"]`,
	`{"items":{"type":"string"}}`:                     `["ok"]`,
	`{"prefixItems":[{"type":"string"}]}`:             `["ok"]`,
	`{"contains":{"type":"string"}}`:                  `["ok"]`,
	`{"minProperties":1}`:                             `{"ok":1}`,
	`{"maxProperties":1}`:                             `{"ok":1}`,
	`{"properties":{"ok":{"type":"integer"}}}`:        `{"ok":1}`,
	`{"patternProperties":{"ok":{"type":"integer"}}}`: `{"ok":1}`,
	`{"additionalProperties":{"type":"integer"}}`:     `{"ok":1}`,
	`{"propertyNames":{"enum":["ok"]}}`:               `{"ok":1}`,
}

// Values of every type, and spellings of others that a server may convert.
var values = []string{
	`null`, `true`, `false`, `0`, `1`, `-1.5`, `""`, `"ok"`, `"Infinity"`, `"inf"`, `"NaN"`, `"500"`, `"0x1F4"`, `"5e2"`, `" 7 "`, `"true"`, `"t"`, `"y"`, `"null"`,
	`"[\"ok\"]"`, `"{\"ok\":1}"`, `[]`, `[50]`, `["ok"]`, `[false]`, `[[50]]`, `{}`, `{"valueOf":500}`, `{"toString":"ok"}`, `{"0":"ok"}`, `{"ok":1}`,
}

// A value that is judged has a type, however the schema reaches it: without one the schema has the
// mistake, which proposes the type; with it no value of another type fits.
func TestEveryPlaceNamesItsType(t *testing.T) {
	for way, place := range reached {
		for untyped, good := range judging {
			_, err := Compile([]byte(fmt.Sprintf(place.schema, untyped)))
			mistakes, _ := errors.AsType[Mistakes](err)
			if len(mistakes) == 0 || mistakes[0].Type == "" {
				t.Errorf("%s of %s: got %v, want a mistake with a type", way, untyped, err)
				continue
			}
			kind := mistakes[0].Type
			typed := fmt.Sprintf(`{"type":%q,%s`, kind, untyped[1:])
			s, err := Compile([]byte(fmt.Sprintf(place.schema, typed)))
			if err != nil {
				t.Errorf("%s of %s: %v", way, typed, err)
				continue
			}
			if fits, err := s.Fits([]byte(fmt.Sprintf(place.with, good))); !fits || err != nil {
				t.Errorf("%s of %s: %s: got %v, %v", way, typed, good, fits, err)
			}
			for _, value := range values {
				if kind == kindOf(value) || kind == "number" && kindOf(value) == "integer" {
					continue
				}
				if fits, _ := s.Fits([]byte(fmt.Sprintf(place.with, value))); fits {
					t.Errorf("%s of %s: %s fits", way, typed, value)
				}
			}
		}
	}
}

func kindOf(value string) string {
	var v any
	_ = json.Unmarshal([]byte(value), &v)
	return typeOf(v)
}

// Every keyword of the library is either known to judge, which TestEveryPlaceNamesItsType tries, or
// to say nothing about values, or is refused. A new one has to be put into a list.
func TestEveryKeywordIsKnown(t *testing.T) {
	silent := strings.Fields("$schema $comment $defs definitions title description default deprecated readOnly writeOnly examples")
	refused := map[string]string{
		"$id": `"x"`, "$anchor": `"x"`, "$dynamicAnchor": `"x"`, "$dynamicRef": `"#x"`, "$vocabulary": `{"x":true}`, "format": `"uri"`,
		"contentEncoding": `"x"`, "contentMediaType": `"x"`, "contentSchema": `{}`, "additionalItems": `{}`, "dependencies": `{"a":["b"]}`,
		"maximun": `1`, "Maximum": `1`, "discriminator": `{}`,
	}
	tried := fmt.Sprint(reached, judging) + `"minContains" "maxContains" "required" "dependentRequired" "type"` // with "contains", and in TestNamedMembersHaveTypes
	for i := range reflect.TypeFor[jsonschema.Schema]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[jsonschema.Schema]().Field(i).Tag.Get("json"), ",")
		if name == "-" { // "type", "items" and "dependencies" in several forms
			continue
		}
		if refused[name] == "" && !strings.Contains(tried, fmt.Sprintf("%q", name)) && !strings.Contains(fmt.Sprint(silent), name) {
			t.Errorf("the keyword %q is in no list", name)
		}
	}
	for name, value := range refused {
		text := fmt.Sprintf(`{"properties":{"a":{"type":"string",%q:%s}}}`, name, value)
		if _, err := Compile([]byte(text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	for _, text := range []string{
		`{"properties":{"a":{"title":"a","description":"b","examples":[1],"default":1,"deprecated":true,"readOnly":true,"writeOnly":true,"$comment":"c"}}}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"a":true,"b":false,"c":{}},"additionalProperties":false}`,
		`{"properties":{"a":{"type":["string","null"],"minLength":1,"anyOf":[{"const":"x"},{"not":{"pattern":"y"}}]}},"required":["a"]}`,
		`{"properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"object","properties":{"t":{"$ref":"#/$defs/t"}}}}}`,
		`{"propertyNames":{"pattern":"^x"},"minProperties":1}`,
	} {
		if _, err := Compile([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Mistakes say where they are, and what to write.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		`{"properties":{"a":{"items":{"maximum":3},"type":"array"}}}`:                                                  `properties.a.items: the type is missing`,
		`{"anyOf":[{"properties":{"a":{"const":1}}}]}`:                                                                 `anyOf.0.properties.a: the type`,
		`{"allOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"properties":{"a":{"enum":[1]}}}}}`:                             `$defs.x.properties.a: the type`,
		`{"properties":{"a":{"anyOf":[{"type":"string"},{"minimum":1}]}}}`:                                             `properties.a: the type is missing`,
		`{"properties":{"a":{"not":{"type":"string"}}}}`:                                                               `properties.a: the type is missing`,
		`{"properties":{"p":{"$ref":"#/properties/q"},"q":{"type":"number"}}}`:                                         `properties.p.$ref: a schema of a rule refers to its own $defs`,
		`{"properties":{"p":{"$ref":"#/$defs/q%71"}},"$defs":{"q%71":{},"qq":{}}}`:                                     `own $defs`,
		`{"properties":{"p":{"$ref":"https://example.com/s"}}}`:                                                        `nothing is fetched`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`:                                          `without end`,
		`{"not":{"$ref":"#/$defs/a"},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`: `without end`,
		`{"properties":{"a":{"type":"objekt"}}}`:                                                                       `properties.a.type: there is no type "objekt"`,
		`{"properties":{"a":{"type":[]}}}`:                                                                             `properties.a.type: no value`,
		`{"properties":{"a":{"type":"array","items":[{"type":"string"}]}}}`:                                            `properties.a.items: a list of items`,
		`{"$schema":"http://json-schema.org/draft-07/schema#"}`:                                                        `$schema`,
		`{"patternProperties":{"(?=x)":{"type":"string"}}}`:                                                            `patternProperties.(?=x): this is not a pattern`,
		`{"properties":{"a":{"type":"string","pattern":"(?=x)"}}}`:                                                     `cannot be used`,
		`{"properties":{"a":{"type":"integer","const":9007199254740992}}}`:                                             `too large`,
		`{"properties":{"a":{"type":"integer","enum":[[-9007199254740992]]}}}`:                                         `too large`,
		`{"properties":{"a":{"type":"integer","const":9223372036854775808}}}`:                                          `too large`,
		`{"properties":{"a":{"type":"number"},"a":{"type":"string"}}}`:                                                 `twice`,
		`{"properties":{"a":{"minimum":"5"}}}`:                                                                         `no JSON Schema`,
		`true`:                                                                                                         `a schema is an object`,
		`null`:                                                                                                         `a schema is an object`,
	} {
		if _, err := Compile([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if _, err := Compile([]byte(`{"properties":{"a":{"type":"integer","enum":[9007199254740991,-9007199254740991]}}}`)); err != nil {
		t.Error(err)
	}
}

// A member that has to be there, or on which others depend, has a type too.
func TestNamedMembersHaveTypes(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"required":["a"]}`:                                                                                           false,
		`{"required":["a"],"properties":{"a":true}}`:                                                                   false,
		`{"required":["a"],"properties":{"a":{"type":"string"}}}`:                                                      true,
		`{"required":["a"],"properties":{"a":false}}`:                                                                  true,
		`{"required":["a"],"patternProperties":{"^a":{"type":"string"}}}`:                                              true,
		`{"required":["a"],"patternProperties":{"^b":{"type":"string"}}}`:                                              false,
		`{"required":["a"],"additionalProperties":{"type":"string"}}`:                                                  true,
		`{"required":["a"],"additionalProperties":false}`:                                                              true,
		`{"required":["a"],"additionalProperties":true}`:                                                               false,
		`{"required":["a"],"unevaluatedProperties":{"type":"string"}}`:                                                 true,
		`{"required":["a"],"allOf":[{"properties":{"a":{"type":"string"}}}]}`:                                          true,
		`{"required":["a"],"anyOf":[{"properties":{"a":{"type":"string"}}}]}`:                                          false,
		`{"anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`: true,
		`{"anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"string"}}}`:                       false,
		`{"not":{"required":["a"]},"properties":{"a":{"type":"string"}}}`:                                              true,
		`{"not":{"anyOf":[{"required":["a"]}]},"properties":{"a":{"type":"string"}}}`:                                  true,
		`{"not":{"required":["a"]}}`:                                                                                   false,
		`{"dependentRequired":{"a":["b"]},"properties":{"a":{"type":"string"}}}`:                                       false,
		`{"dependentRequired":{"a":["b"]},"properties":{"b":{"type":"string"}}}`:                                       false,
		`{"dependentRequired":{"a":["b"]},"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`:                 true,
		`{"dependentSchemas":{"a":{"properties":{"b":{"type":"string"}}}}}`:                                            false,
		`{"properties":{"l":{"type":"array","contains":{"type":"string"},"minContains":1,"maxContains":2}}}`:           true,
	} {
		_, err := Compile([]byte(text))
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "type of ") {
			t.Errorf("%s: got %v, want %v", text, err, ok)
		}
	}
}

// Members that the schema does not name pass, unless a parser may take them for one that it does.
func TestNamesThatResemble(t *testing.T) {
	const named, patterns = `{"properties":{"my_repo":{"type":"string"}}}`, `{"patternProperties":{"^amount(_.*)?$":{"type":"number"}}}`
	for _, tt := range []struct {
		schema, name string
		ok           bool
	}{
		{named, "my_repo", true}, {named, "path", true}, {named, "MY_REPO", false}, {named, "myRepo", false}, {named, "my-repo", false}, {named, "my repo", false},
		{named, "my_repo ", false}, {named, `my_repo\u0000x`, false}, {named, `m\u0079_repo`, true}, {named, "my_repos", true},
		{patterns, "amount", true}, {patterns, "Amount", false}, {patterns, "AMOUNT_X", false}, {patterns, "my_amount", true},
	} {
		s, err := Compile([]byte(tt.schema))
		if err != nil {
			t.Fatal(err)
		}
		value := `"x"`
		if tt.schema == patterns {
			value = `1`
		}
		for _, with := range []string{`{"%s":%s}`, `{"o":[{"%s":%s}]}`} {
			fits, err := s.Fits([]byte(fmt.Sprintf(with, tt.name, value)))
			if ok := fits && err == nil; ok != tt.ok || !ok && !strings.Contains(err.Error(), "can be taken for") {
				t.Errorf("%s, %s: got %v, %v", tt.schema, tt.name, fits, err)
			}
		}
	}
}

// Numbers are compared as they are written, and those of equal value are equal.
func TestNumbers(t *testing.T) {
	const small, other, ratio = `{"properties":{"n":{"type":"integer","maximum":9007199254740991}}}`, `{"properties":{"n":{"type":"integer","not":{"const":9007199254740991}}}}`, `{"properties":{"n":{"type":"number","exclusiveMaximum":1}}}`
	for _, tt := range []struct {
		schema, n string
		fits      bool
	}{
		{small, `9007199254740991`, true}, {small, `9007199254740992`, false}, {small, `9007199254740993`, false}, {small, `18446744073709551615`, false},
		{small, `-9223372036854775808`, true}, {small, `7.0`, true}, {small, `7.5`, false}, {small, `1e2`, true}, {small, `1e300`, false},
		{other, `9007199254740991`, false}, {other, `9007199254740991.0`, false}, {other, `9007199254740993`, true}, {other, `9007199254740990`, true},
		{ratio, `0.99999999999999999999999999`, false}, {ratio, `0.9`, true}, {ratio, `-0`, true},
	} {
		s, err := Compile([]byte(tt.schema))
		if err != nil {
			t.Fatal(err)
		}
		if fits, err := s.Fits([]byte(`{"n":` + tt.n + `}`)); fits != tt.fits || err != nil {
			t.Errorf("%s: %s: got %v, %v", tt.schema, tt.n, fits, err)
		}
	}
}

// Arguments that parsers read in two ways are ambiguous, and others are not.
func TestAmbiguousArguments(t *testing.T) {
	s, err := Compile([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string]string{
		``: ``, `null`: ``, `{"a":0,"b":[0.5,-1,9],"c":true}`: ``, `{"a":"\ufffd \uFFFD �"}`: ``, `{"a":"\ud83d\ude00"}`: ``,
		`{"a":"\ud800"}`: "half a character", `{"a":"\ufffd \ud800 �"}`: "half a character", `{"\ud800":1}`: "half a character", "{\"a\":\"\xff\"}": "Unicode",
		`{"a":1,"\u0061":2}`: "twice", `{"a":[{"b":1,"b":1}]}`: "twice", `{"a":18446744073709551616}`: "too large", `{"a":1e999}`: "too large",
		`[]`: "not an object", `"{}"`: "not an object", `{"a":1`: "not an object", `5`: "not an object",
	} {
		fits, err := s.Fits([]byte(input))
		if want == "" && (!fits || err != nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, %v, want %q", input, fits, err, want)
		}
		if _, again := strictjson.Canonical([]byte(input)); (again == nil) != (err == nil) {
			t.Errorf("%s: got %v and %v", input, err, again)
		}
	}
}

// A schema, and arguments, of any text are an answer.
func FuzzFits(f *testing.F) {
	for _, place := range reached {
		f.Add(fmt.Sprintf(place.schema, `{"type":"number","maximum":3}`), fmt.Sprintf(place.with, `5`))
	}
	f.Add(`{"$ref":"#/$defs/a","$defs":{"a":{"not":{"$ref":"#/$defs/a"}}}}`, `{}`)
	f.Add(`{"properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}}}}}`, `{"a":{"a":{}}}`)
	f.Fuzz(func(t *testing.T, schema, input string) {
		s, err := Compile([]byte(schema))
		if err != nil {
			if _, ok := errors.AsType[Mistakes](err); !ok {
				t.Fatalf("%T", err)
			}
			return
		}
		if fits, err := s.Fits([]byte(input)); fits && err != nil {
			t.Fatalf("%s fits %s: %v", input, schema, err)
		}
	})
}
