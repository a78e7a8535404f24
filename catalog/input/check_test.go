package input

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check reports all faults of an input, each with its place.
func TestInputIsCheckedAgainstItsSchema(t *testing.T) {
	const order = `{"type":"object","properties":{"owner":{"type":"string","minLength":2},"count":{"type":"integer","minimum":1},` +
		`"mode":{"enum":["fast","slow"]},"tags":{"type":"array","items":{"type":"string"}},"to":{"$ref":"#/$defs/place"},"any":{"anyOf":[{"type":"string"},{"type":"null"}]},` +
		`"a/b~c":{"type":["number","null"]}},"required":["owner","repo"],"additionalProperties":false,` +
		`"$defs":{"place":{"type":"object","properties":{"zip":{"type":"string","pattern":"^[0-9]+$"}},"required":["zip"]}}}`
	for _, tt := range []struct{ name, schema, input, want string }{
		{"fits", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":"x"}`, ""},
		{"not known", order, `{"owner":"me","repo":"x"}`, `/repo: there is no such member, only a/b~c, any, count, mode, owner, tags, to`},
		{"everything", order, `{"owner":"m","count":0.5,"mode":"odd","tags":["a",1,{}],"to":{"zip":"x1"},"any":5,"a/b~c":"1","new":1}`,
			`"": "repo" is missing
/a~1b~0c: this is a string, want "number", "null"
/any: it fits none of the alternatives of anyOf
/count: this is the number 0.5, want "integer"
/mode: want one of "fast", "slow"
/owner: minLength: "m" contains 1 Unicode code points, fewer than 2
/tags/1: this is the number 1, want "string"
/tags/2: this is an object, want "string"
/to/zip: pattern: "x1" does not match regular expression "^[0-9]+$"
/new: there is no such member, only a/b~c, any, count, mode, owner, tags, to`},
		{"no object", `{"type":"object"}`, `[1]`, `"": this is an array, want "object"`},
		{"extra members have a schema", `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"a":1,"b":"x"}`, `/b: this is a string, want "integer"`},
		{"all of several", `{"type":"object","allOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, "\"\": \"a\" is missing\n\"\": \"b\" is missing"},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/definitions/n"}},"definitions":{"n":{"type":"integer"}}}`, `{"a":"x"}`, `/a: this is a string, want "integer"`},
		{"draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, `{"a":0}`, `/a: minimum: 0/1 is less than 1.000000`},
		{"2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","required":["a"]}`, `{}`, `"": "a" is missing`},
		{"only what a schema of itself allows", `{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}`, `{"next":{"next":{"x":1}}}`, `/next/next/x: there is no such member, only next`},
		{"an expression that looks ahead is not checked", `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)"}}}`, `{"a":"x"}`, ""},
		{"a schema elsewhere is not fetched", `{"$ref":"https://example.com/schema.json"}`, `{"a":"x"}`, ""},
		{"an invalid schema is for the server", `{"type":"object","properties":{"a":5}}`, `{"a":"x"}`, ""},
		{"big integers", `{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"a":9007199254740993}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			schema := New(json.RawMessage(tt.schema))
			if diff := cmp.Diff(tt.want, strings.Join(schema.Check(json.RawMessage(tt.input)), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A list of faults that is cut says so.
func TestChecksAreBounded(t *testing.T) {
	schema := New(json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}`))
	got := schema.Check(json.RawMessage(`{"a":[` + strings.Repeat(`"x",`, 5000) + `1]}`))
	if len(got) != maxViolations+1 || got[maxViolations] != "and more" {
		t.Errorf("got %d violations, the last %q", len(got), got[len(got)-1])
	}
}
