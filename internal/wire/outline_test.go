package wire

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// An Outline yields what a search finds, also with duplicate names and with more members than
// it has room for.
func TestOutlineIsWhatASearchFinds(t *testing.T) {
	long := `"` + strings.Repeat(`\"x`, outlined/3) + `"`
	rapid.Check(t, func(t *rapid.T) {
		object := func(name string) string {
			obj := jsonObject(2).Draw(t, name)
			more := rapid.SampledFrom([]string{`"long":` + long, `"name":"n","name":2`, `"tool_name":"n"`, `"arguments":1`, `"tool_input":{"n":1,"long":` + long + `}`, strings.Repeat(`"m":1,`, 30) + `"m":2`}).Draw(t, "more")
			if i := strings.IndexByte(obj, '{'); strings.TrimSpace(obj[i+1:])[0] != '}' {
				more += ","
			}
			return "{" + more + obj[strings.IndexByte(obj, '{')+1:]
		}
		params := object("arguments")
		params = `{"a":` + object("before") + `,"arguments":` + params + `,"b":[1,{"arguments":{"x":1}}],"pad":` + long + `}`
		line := `{"jsonrpc":"2.0","id":1,"params":` + params + `,"result":` + object("result") + `,"method":"x"}`
		m, err := NewReader(strings.NewReader(strings.ReplaceAll(line, "\n", " ")+"\n"), 1<<20).Next()
		if err != nil {
			t.Fatal(err)
		}
		if m.Outline.find(m.Params) < 0 && strings.Count(params, `"m":1`) == 0 {
			t.Error("the members of params are not noted")
		}
		arguments := Get(m.Params, "arguments")
		for _, obj := range [][]byte{m.Params, m.Result, arguments, Get(arguments, "tool_input"), Get(m.Params, "a"), Get(arguments, "a"), m.Raw, nil, []byte(`{"x":1}`)} {
			type pair struct{ name, value Span }
			var noted, found []pair
			for name, value := range m.Outline.Spans(obj) {
				noted = append(noted, pair{name, value})
			}
			for name, value := range Spans(obj) {
				found = append(found, pair{name, value})
			}
			if !slices.Equal(noted, found) {
				t.Fatalf("%.200s: noted %v, found %v", obj, noted, found)
			}
		}
		if got, want := string(m.Outline.Get(m.Params, "arguments", "long")), string(Get(m.Params, "arguments", "long")); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// An Outline applies only to the message that was read last.
func TestOutlineOfAnotherMessage(t *testing.T) {
	long := strings.Repeat("x", outlined)
	r := NewReader(strings.NewReader(`{"jsonrpc":"2.0","method":"a","params":{"x":1,"long":"`+long+`"}}`+"\n"+`{"jsonrpc":"2.0","method":"a","params":{"x":2}}`+"\n"), 1<<20)
	first, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	clone := first.Clone()
	if clone.Outline != nil {
		t.Error("the clone has the outline")
	}
	if first.Outline.find(clone.Params) >= 0 {
		t.Error("the outline is used for a copy")
	}
	if second, err := r.Next(); err != nil || string(second.Outline.Get(second.Params, "x")) != "2" || string(second.Outline.Get(clone.Params, "x")) != "1" {
		t.Errorf("got %s, %v", second.Raw, err)
	}
}
