package input

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestFitNumbersChangesOnlyWantedNumbers(t *testing.T) {
	schema := New(json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"f":{"type":"number"},"s":{"type":"string"},"b":{"type":"boolean"},` +
		`"either":{"type":["number","string"]},"maybe":{"type":["integer","null"]},"any":{},"of":{"anyOf":[{"type":"integer"},{"type":"string"}]},` +
		`"list":{"type":"array","items":{"type":"integer"}},"deep":{"type":"object","properties":{"n":{"type":"integer"}}}}}`))
	for input, want := range map[string]string{
		`{"n":"3"}`:                      `{"n":3}`,
		`{ "n" : "3" , "x":[1.0,"3"] }`:  `{ "n" : 3 , "x":[1.0,"3"] }`,
		`{"\u006e":"-12","s":"3"}`:       `{"\u006e":-12,"s":"3"}`,
		`{"f":"1.50e3","maybe":"7"}`:     `{"f":1.50e3,"maybe":7}`,
		`{"n":"9007199254740993","f":1}`: `{"n":9007199254740993,"f":1}`,
	} {
		got, changed := schema.FitNumbers(json.RawMessage(input), nil)
		if string(got) != want || len(changed) == 0 {
			t.Errorf("%s: got %s, %q, want %s", input, got, changed, want)
		}
	}
	for _, input := range []string{
		`{}`, `{"n":3}`, `{"n":"three"}`, `{"n":""}`, `{"n":"3.5"}`, `{"n":"1e2"}`, `{"n":" 3"}`, `{"n":"3 "}`, `{"n":"0x3"}`, `{"n":"03"}`, `{"n":"+3"}`, `{"f":"NaN"}`,
		`{"s":"3"}`, `{"b":"1"}`, `{"either":"3"}`, `{"any":"3"}`, `{"of":"3"}`, `{"list":["3"]}`, `{"deep":{"n":"3"}}`, `{"N":"3"}`, `{"n":null}`, `{"n":["3"]}`,
		`{"n":"` + strings.Repeat("3", maxNumber) + `"}`, `{"n":"3","long":"` + strings.Repeat("x", maxFit) + `"}`,
	} {
		if got, changed := schema.FitNumbers(json.RawMessage(input), nil); string(got) != input || changed != nil {
			t.Errorf("%.60s: got %.60s, %q", input, got, changed)
		}
	}
}
