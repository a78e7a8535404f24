package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/schema"
)

const searchTool = `{"x-first": 1.0, "name" : "search", "title":"Search it",
 "description":"Searches.\nTakes its time.", "inputSchema":{"type":"object","properties":{"q":{"type":"string","const":9007199254740993}}},
 "outputSchema":{"type":"object"}, "annotations":{"title":"T","readOnlyHint":true,"openWorldHint":false}, "_meta":{"name":"inner"}}`

func TestDetailsShowDefinitionSchemasAndHints(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "s"}, &Listing{Tools: raws(searchTool)})
	found, _ := v.Tool("s/search")
	golden(t, "details", v.Texts().Details(found))
}

// Schemas are written as types if the config says so. A schema that a type cannot express
// stays JSON.
func TestDetailsWithTypes(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "s", Types: true}, &Listing{Tools: raws(searchTool, `{"name":"odd","inputSchema":{"type":"object","$ref":"other.json"}}`)})
	found, _ := v.Tool("s/search")
	odd, _ := v.Tool("s/odd")
	golden(t, "details_types", v.Texts().Details(found)+"\n\n"+v.Texts().Details(odd))
	if short := found.shortDefinition(useTool, shortTokens, descriptionTokens, found.bareInput()); !strings.Contains(short, found.VisibleInput()) {
		t.Error(short)
	}
	equal(t, found.VisibleInput(), "{ q?: 9007199254740993 & string; ... }")
}

func TestDetailsOmitWhatIsAbsent(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "s", Single: true}, &Listing{Tools: raws(
		`{"name":"plain","inputSchema":{"type":"object","x":"\u202e ` + "\u202e \U000e0041" + `"},"outputSchema":null,"annotations":null}`)})
	golden(t, "details_plain", v.Texts().Details(v.Tools()[0]))
}

func TestDefinitionChangesOnlyTheName(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "s"}, &Listing{Tools: raws(searchTool)})
	golden(t, "definition", string(v.Tools()[0].Definition()))
	equal(t, string(v.Tools()[0].define(v.Tools()[0].typed, "search")), searchTool)
}

func TestDefinitionCarriesOverride(t *testing.T) {
	t.Parallel()
	s := Server{Name: "s", Overrides: map[string]schema.ToolOverride{
		"a": {Description: "The operator's \"own\" <words>"},
		"b": {Description: "Added"},
		"c": {Summary: "Only the line changes"},
		"d": {Summary: "Of nothing"},
	}}
	v := one(s, &Listing{Tools: raws(`{"name":"a","description":"x","z":1,"inputSchema":{}}`, `{ "name":"b","inputSchema":{}}`, `{"name":"c","description":"stays","inputSchema":{}}`)})
	equal(t, v.Warnings(), []string{`s: override is for tool "d", which does not exist`})
	var got []string
	for _, tool := range v.Tools() {
		got = append(got, string(tool.Definition()), tool.line(display.LineWidth))
	}
	equal(t, got, []string{
		`{"name":"s/a","description":"The operator's \"own\" <words>","z":1,"inputSchema":{}}`, `- s/a: The operator's "own" &lt;words&gt;`,
		`{"description":"Added", "name":"s/b","inputSchema":{}}`, `- s/b: Added`,
		`{"name":"s/c","description":"stays","inputSchema":{}}`, `- s/c: Only the line changes`,
	})
}

func TestSetTextReplacesEveryOneOfThatName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"name":1}`:                             `{"name":"n"}`,
		`{"name":"a","name":"b"}`:                `{"name":"n","name":"n"}`,
		`{"n\u0061me":{"name":[]}, "a":[1,{}] }`: `{"n\u0061me":"n", "a":[1,{}] }`,
		`{"a":"}\"{","name":null}`:               `{"a":"}\"{","name":"n"}`,
		` {"b":1}`:                               ` {"name":"n","b":1}`,
	} {
		if got := string(setText(json.RawMessage(in), "name", "n")); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func FuzzDefinition(f *testing.F) {
	f.Add([]byte(searchTool), "s/search")
	f.Add([]byte(`{"name":"a","x":[{"name":"b"},"\"}"],"name":-1e5}`), "é\u2028<")
	f.Add([]byte(`{"na\u006de":"a" , "d" :"\ud800"}`), "")
	f.Fuzz(func(t *testing.T, raw []byte, name string) {
		var before map[string]json.RawMessage
		if json.Unmarshal(raw, &before) != nil || len(before) == 0 {
			return
		}
		out := setText(raw, "name", name)
		if !json.Valid(out) {
			t.Fatalf("%s became %s", raw, out)
		}
		// The readers of encoding/json and ours must see the same members.
		var after map[string]json.RawMessage
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatal(err)
		}
		if string(after["name"]) != display.Quote(name) {
			t.Fatalf("name is %s, want %s", after["name"], display.Quote(name))
		}
		delete(before, "name")
		delete(after, "name")
		equal(t, after, before)
		again := setText(out, "name", name)
		if string(again) != string(out) {
			t.Fatalf("not stable: %s, then %s", out, again)
		}
		(&entry.Reader{}).Tools([]json.RawMessage{raw})
	})
}

func TestVisibleKeepsTheMeaning(t *testing.T) {
	t.Parallel()
	in := json.RawMessage("{\n\t\"a\u200b\": \"x\U000e0041\u202e\u007f\", \"b\": \"é😀漢\"\n}")
	out := display.JSON(in)
	equal(t, out, "{\n\t\"a\\u200b\": \"x\\udb40\\udc41\\u202e\\u007f\", \"b\": \"é😀漢\"\n}")
	var a, b any
	if json.Unmarshal(in, &a) != nil || json.Unmarshal([]byte(out), &b) != nil {
		t.Fatal("not JSON")
	}
	equal(t, b, a)
}
