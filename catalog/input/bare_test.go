package input

import "testing"

func TestBareKeepsAllButWordsOfOptionalArguments(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"string","description":"A."},"b":{"description":"B.","enum":["x"]}},"required":["a"]}`:             `{"type":"object","properties":{"a":{"type":"string","description":"A."},"b":{"enum":["x"]}},"required":["a"]}`,
		`{"properties":{"description":{"type":"string","description":"D."},"o":{"properties":{"description":{"description":"P.","type":"integer"}}}}}`: `{"properties":{"description":{"type":"string"},"o":{"properties":{"description":{"type":"integer"}}}}}`,
		`{"properties":{"u":{"anyOf":[{"type":"null","description":"N."},{"default":{"description":"kept"}}]}}}`:                                       `{"properties":{"u":{"anyOf":[{"type":"null"},{"default":{"description":"kept"}}]}}}`,
		`{"type":"object"}`: `{"type":"object"}`, `true`: `true`, ``: ``,
	} {
		if got := string(Bare([]byte(schema))); got != want {
			t.Errorf("%s: got %s, want %s", schema, got, want)
		}
	}
}
