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

// The params, their arguments, the tool_input in those, and the result are noted, other objects
// are not.
func TestObjectsThatAreNoted(t *testing.T) {
	o, m := outlineOf(t, `"x":{"a":1},"error":{"a":1},"params":{"x":{"a":1},"arguments":{"x":{"a":1},"tool_input":{"tool_input":{"a":1}}},"tool_input":{}},"result":{"arguments":{"a":1}}`)
	for path, want := range map[string]bool{
		"params": true, "params arguments": true, "params arguments tool_input": true, "result": true,
		"x": false, "error": false, "params x": false, "params tool_input": false, "params arguments x": false,
		"params arguments tool_input tool_input": false, "result arguments": false,
	} {
		if got := o.find(Get(m.Raw, strings.Fields(path)...)) >= 0; got != want {
			t.Errorf("%s: noted is %t", path, got)
		}
	}
}

// Objects inside others are noted up to fewer members, so that there is room for those around
// them.
func TestHowManyMembersAreNoted(t *testing.T) {
	for path, most := range map[string]int{"params": 32, "params arguments": 24, "params arguments tool_input": 16, "result": 32} {
		for n, want := range map[int]bool{most: true, most + 1: false} {
			names := strings.Fields(path)
			before := `"` + strings.Join(names, `":{"`) + `":`
			o, m := outlineOf(t, before+`{"m":1`+strings.Repeat(`,"m":1`, n-1)+strings.Repeat("}", len(names)))
			if got := o.find(Get(m.Raw, names...)) >= 0; got != want {
				t.Errorf("%s with %d members: noted is %t", path, n, got)
			}
			if len(names) > 1 && o.find(m.Params) < 0 {
				t.Errorf("the params around %s with %d members are not noted", path, n)
			}
		}
	}
}

// outlineOf reads a message with these members.
func outlineOf(t *testing.T, members string) (*Outline, Message) {
	t.Helper()
	m, err := NewReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"m",`+members+"}\n"), 1<<20).Next()
	if err != nil {
		t.Fatal(err)
	}
	return m.Outline, m
}
