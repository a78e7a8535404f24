package strictjson

import (
	"strings"
	"testing"
)

// Arguments that mean the same have one canonical form, and those that parsers read differently have none.
func TestCanonical(t *testing.T) {
	for input, want := range map[string]string{
		``: `{}`, `null`: `{}`, ` { } `: `{}`,
		`{"b":1,"a":[true,null,"\u0061<"]}`:                          `{"a":[true,null,"a<"],"b":1}`,
		`{ "a" : [ true, null, "a<" ], "b" : 1 }`:                    `{"a":[true,null,"a<"],"b":1}`,
		`{"n":9007199254740993,"m":18446744073709551615,"x":-0.5e1}`: `{"m":18446744073709551615,"n":9007199254740993,"x":-5}`,
	} {
		if got, err := Canonical([]byte(input)); string(got) != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", input, got, err, want)
		}
	}
	for input, want := range map[string]string{
		`{"a":1,"\u0061":2}`: "twice", `{"a":[{"b":1,"b":1}]}`: "twice", `{"a":18446744073709551616}`: "too large", `{"a":1e999}`: "too large",
		`{"a":"\ud800"}`: "half a character", "{\"a\":\"\xff\"}": "Unicode", `[]`: "not an object", `"{}"`: "not an object", `{"a":1`: "not an object",
	} {
		if got, err := Canonical([]byte(input)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %s, %v, want %q", input, got, err, want)
		}
	}
}
