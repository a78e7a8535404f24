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

func TestSketch(t *testing.T) {
	schema := `{"type":"object","properties":{"id":{"type":"string","description":"Which."},"filter":{"type":"object","properties":{"a":{"type":"string"}}},"any":{"description":"x"}},"required":["id"]}`
	want := `{"type":"object","properties":{"id":{"type":"string"},"filter":{"type":"object"},"any":{}},"required":["id"]}`
	if got := string(Sketch([]byte(schema))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
