package wire

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestGet(t *testing.T) {
	obj := []byte(` {"a" : 1.0,"b":{"a":2},"\u0063":"x","a":3,"d":null} `)
	for name, want := range map[string]string{"a": "3", "b": `{"a":2}`, "c": `"x"`, "d": "null", "e": "", "": ""} {
		if got := Get(obj, name); string(got) != want || (got == nil) != (want == "") {
			t.Errorf("Get(%q): got %q, want %q", name, got, want)
		}
	}
	for _, text := range []string{``, `null`, `[{"a":1}]`, `"a"`, `{`, `{"a"`, `{"a":`} {
		if got := Get([]byte(text), "a"); got != nil {
			t.Errorf("Get of %q: got %q", text, got)
		}
	}
}

func TestMembersOfBrokenObject(t *testing.T) {
	for text, want := range map[string][]pair{
		`{"a":1,"b":[2],"c":{"d`: {{"a", "1"}, {"b", "[2]"}},
		`{"a":1`:                 {{"a", "1"}},
		`{"a":"x"`:               {{"a", `"x"`}},
		`{"a":1 "b":2}`:          {{"a", "1"}},
		`{"a":,"b":2}`:           nil,
		`{"a":1,"b":}`:           {{"a", "1"}},
	} {
		if got := pairs(text); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestElements(t *testing.T) {
	for text, want := range map[string][]string{
		` [1, {"a":[2]} ,"x]" ]`: {`1`, `{"a":[2]}`, `"x]"`},
		`[]`:                     nil, `{}`: nil, ``: nil, `[1,]`: {`1`}, `[1 2]`: {`1`}, `[1`: {`1`}, `[,1]`: nil,
	} {
		var got []string
		for element := range Elements([]byte(text)) {
			got = append(got, string(element))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	for element := range Elements([]byte(`[1,2]`)) {
		if string(element) != "1" {
			t.Error("went on after break")
		}
		break
	}
}

func TestGetStrict(t *testing.T) {
	name, arguments, err := GetStrict([]byte(`{"x":1,"n\u0061me":"n"}`), "name", "arguments")
	if err != nil || string(name) != `"n"` || arguments != nil {
		t.Errorf("got %q, %q, %v", name, arguments, err)
	}
	for _, text := range []string{`{"name":1,"name":2}`, `{"name":1,"\u006eame":2}`, `{"arguments":1,"arguments":1}`, `[]`, `null`, ``} {
		if _, _, err := GetStrict([]byte(text), "name", "arguments"); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	if _, _, err := GetStrict([]byte(`{"_Meta":1}`), "name", "_meta"); err == nil {
		t.Error("_Meta: no error")
	}
	for name, refused := range map[string]bool{
		`Name`: true, `NAME`: true, `name\u0000`: true, `nAme\u0000x`: true, `\u004eame`: true, `name\u0000name`: true,
		`argument\u017f`: true, `argumentſ`: true, `Arguments`: true,
		`nam`: false, `names`: false, `name `: false, `_name`: false, `ñame`: false, `\u0000name`: false, `xname`: false, ``: false,
	} {
		if _, _, err := GetStrict([]byte(`{"name":1,"`+name+`":2}`), "name", "arguments"); (err != nil) != refused {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestEqualStringTakesStringsOnly(t *testing.T) {
	for text, want := range map[string]bool{`"a"`: true, `"\u0061"`: true, `a`: false, `5`: false, ``: false, `"`: false, `"b"`: false} {
		if got := EqualString([]byte(text), "a"); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
}

func TestSet(t *testing.T) {
	for _, test := range [][3]string{
		{`{}`, `1`, `{"n":1}`},
		{` { } `, `1`, ` { "n":1} `},
		{`{"a":1.0}`, `{"x":2}`, `{"a":1.0,"n":{"x":2}}`},
		{`{"n": "}" ,"a":"n"}`, `null`, `{"n": null ,"a":"n"}`},
		{`{"\u006e":1}`, `2`, `{"\u006e":2}`},
		{`{"a":{"n":1}}`, `2`, `{"a":{"n":1},"n":2}`},
		{`[{}]`, `1`, `[{}]`},
		{`"}"`, `1`, `"}"`},
		{`null`, `1`, `null`},
		{``, `1`, ``},
	} {
		if got := string(Set([]byte(test[0]), "n", []byte(test[1]))); got != test[2] {
			t.Errorf("Set(%s, n, %s): got %s, want %s", test[0], test[1], got, test[2])
		}
	}
}

func TestDelete(t *testing.T) {
	for text, want := range map[string]string{
		`{"n":1}`:                            `{}`,
		` { "n" : 1 } `:                      `{}`,
		`{"n":1,"n":2}`:                      `{}`,
		`{"n":1,"a":2}`:                      `{"a":2}`,
		`{"a":2,"n":1}`:                      `{"a":2}`,
		`{ "a" : 2 , "n" : 1 , "b" : 1.0 }`:  `{ "a" : 2 , "b" : 1.0 }`,
		`{ "n":1 , "n":2 , "b":3 , "n":4 }`:  `{ "b":3 }`,
		`{"a":{"n":1},"\u006e":2,"b":"n\""}`: `{"a":{"n":1},"b":"n\""}`,
		`{"a":1}`:                            `{"a":1}`,
		`{ }`:                                `{ }`,
		`[1]`:                                `[1]`,
		``:                                   ``,
	} {
		if got := string(Delete([]byte(text), "n")); got != want {
			t.Errorf("Delete(%s): got %s, want %s", text, got, want)
		}
	}
	text := `{ "n":1, "a":1.0 ,"m":2 , "\u006e":3,"b":4,"m":5 }`
	if got, want := string(Delete([]byte(text), "m", "n")), `{ "a":1.0,"b":4 }`; got != want {
		t.Errorf("Delete of two from %s: got %s, want %s", text, got, want)
	}
}

type pair struct{ name, value string }

func pairs(obj string) []pair {
	var all []pair
	for key, value := range Members([]byte(obj)) {
		name, _ := Text(key)
		all = append(all, pair{name, string(value)})
	}
	return all
}

// Set and Delete change the named member; all others keep their bytes and their order, and
// the result is JSON.
func TestSetAndDeleteKeepTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj := jsonObject(2).Draw(t, "obj")
		name := rapid.SampledFrom([]string{"a", "b", "_meta", "new"}).Draw(t, "name")
		value := jsonValue(1).Draw(t, "value")
		before := strings.Clone(obj)
		set := string(Set([]byte(obj), name, []byte(value)))
		deleted := string(Delete([]byte(obj), name))
		if obj != before || !json.Valid([]byte(set)) || !json.Valid([]byte(deleted)) {
			t.Fatalf("of %s: Set makes %s, Delete makes %s", obj, set, deleted)
		}

		var without []pair
		with, last := pairs(obj), -1
		for i, m := range with {
			if m.name != name {
				without = append(without, m)
			} else {
				last = i
			}
		}
		if last < 0 {
			with = append(with, pair{name, value})
		} else {
			with[last].value = value // as encoding/json reads it, the last counts
		}
		if got := pairs(set); !slices.Equal(got, with) {
			t.Errorf("Set(%s, %s, %s): got %s", obj, name, value, set)
		}
		if got := pairs(deleted); !slices.Equal(got, without) {
			t.Errorf("Delete(%s, %s): got %s", obj, name, deleted)
		}
		if last < 0 && deleted != obj {
			t.Errorf("Delete(%s, %s) changes what it need not: %s", obj, name, deleted)
		}
		if at := strings.LastIndex(obj, "}"); last < 0 && (set[:at] != obj[:at] || !strings.HasSuffix(set, obj[at:])) {
			t.Errorf("Set(%s, %s, %s) changes what it need not: %s", obj, name, value, set)
		}
	})
}

// Every value, however deep, is found, can be replaced and put back, and no other
// byte changes.
func TestFindAndReplace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj := []byte(jsonObject(3).Draw(t, "obj"))
		var path []string
		for part := obj; ; {
			var names []string
			for name := range Members(part) {
				text, _ := Text(name)
				names = append(names, text)
			}
			if len(names) == 0 || len(path) > 0 && rapid.Bool().Draw(t, "enough") {
				break
			}
			path = append(path, rapid.SampledFrom(names).Draw(t, "name"))
			part = Get(part, path[len(path)-1])
		}
		at := Find(obj, path...)
		old := string(at.In(obj))
		if got := Get(obj, path...); string(got) != old || !json.Valid(got) {
			t.Fatalf("%q in %s: found %s, got %s", path, obj, old, got)
		}
		value := []byte(jsonValue(1).Draw(t, "value"))
		with := Replace(obj, Edit{at, value})
		if want := string(obj[:at.Off]) + string(value) + string(obj[at.Off+at.Len:]); string(with) != want {
			t.Fatalf("%q in %s replaced by %s: %s", path, obj, value, with)
		}
		if got := Get(with, path...); string(got) != string(value) {
			t.Errorf("%q in %s: got %s, want %s", path, with, got, value)
		}
		if back := Replace(with, Edit{Find(with, path...), []byte(old)}); string(back) != string(obj) {
			t.Errorf("%q in %s and back: %s", path, with, back)
		}
	})
}

func TestFind(t *testing.T) {
	obj := []byte(` {"a": {"b" : 1, "\u0062":{"c":[2]}}, "a\"":3} `)
	for _, test := range []struct {
		want string
		path []string
	}{
		{`{"b" : 1, "\u0062":{"c":[2]}}`, []string{"a"}},
		{`{"c":[2]}`, []string{"a", "b"}}, // the last one
		{`[2]`, []string{"a", "b", "c"}},
		{`3`, []string{`a"`}},
		{string(obj), nil},
		{``, []string{"b"}},
		{``, []string{"b", "c"}},
		{``, []string{"a", "b", "c", "d"}},
	} {
		if got := string(Find(obj, test.path...).In(obj)); got != test.want {
			t.Errorf("%q: got %s, want %s", test.path, got, test.want)
		}
	}
	if at := Find(obj, "a", "x"); at != (Span{}) || at.In(obj) != nil {
		t.Errorf("got %v for what is not there", at)
	}
}

// Appending to a value does not overwrite the text after it.
func TestValuesHaveNoCapacity(t *testing.T) {
	obj := []byte(`{"a":[1],"b":2}`)
	_ = append(Get(obj, "a"), "xxxx"...)
	for _, value := range Members(obj) {
		_ = append(value, "xxxx"...)
	}
	if string(obj) != `{"a":[1],"b":2}` {
		t.Errorf("got %s", obj)
	}
}

// Several edits, in any order, give the same as one after the other.
func TestReplaceMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj := []byte(jsonObject(2).Draw(t, "obj"))
		var edits []Edit
		for _, at := range Spans(obj) {
			edits = append(edits, Edit{at, []byte(jsonValue(1).Draw(t, "value"))})
		}
		edits = append(edits, Edit{Span{}, []byte(" ")}, Edit{Span{Off: len(obj)}, []byte("\n")})
		want := obj
		for _, e := range slices.Backward(edits[:len(edits)-2]) {
			want = Replace(want, e)
		}
		want = []byte(" " + string(want) + "\n")
		shuffled := rapid.Permutation(edits).Draw(t, "shuffled")
		if got := Replace(obj, shuffled...); string(got) != string(want) {
			t.Errorf("of %s: got %s, want %s", obj, got, want)
		}
	})
}

func FuzzMembers(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text), "a", []byte("1"))
	}
	f.Add([]byte(`{"a":1,"a":2, "b" : {"a":"}"} }`), "a", []byte(`{"x":1.0}`))
	f.Fuzz(func(t *testing.T, obj []byte, name string, value []byte) {
		if !isPlain(name) || !json.Valid(value) || len(value) != len(strings.TrimSpace(string(value))) {
			return
		}
		set, deleted := Set(obj, name, value), Delete(obj, name)
		if !json.Valid(obj) || !IsObject(obj) {
			return // no panic is all that is promised
		}
		checked := Members(obj)
		next, stop := iter.Pull2(checked)
		defer stop()
		_, err := eachMember(obj, space(obj, 0), 1, func(key []byte, i int) (int, error) {
			end, err := skip(obj, i, 1)
			if k, v, ok := next(); !ok || !bytes.Equal(k, key) || !bytes.Equal(v, obj[i:end]) {
				t.Errorf("%s: got member %s: %s, want %s: %s", obj, k, v, key, obj[i:end])
			}
			return end, err
		})
		if _, _, more := next(); more || err != nil {
			t.Errorf("%s: got more members than there are (%v)", obj, err)
		}
		if !json.Valid(set) || string(Get(set, name)) != string(value) {
			t.Errorf("Set(%s, %s, %s): %s", obj, name, value, set)
		}
		if !json.Valid(deleted) || Get(deleted, name) != nil {
			t.Errorf("Delete(%s, %s): %s", obj, name, deleted)
		}
	})
}

func TestJoinLines(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"{\"a\":1}":            "{\"a\":1}",
		"{\n\"a\":\r\n1\r}\n":  "{ \"a\": 1 } ",
		"[1,\n\n2,\r\r3\n\r]":  "[1,  2,  3  ]",
		"\r\n\r\n":             "  ",
		"{\"a\":\"b\\n\\rc\"}": "{\"a\":\"b\\n\\rc\"}",
		"\n{}":                 " {}", "\r{}": " {}", "{\r}": "{ }", "{\r\n}": "{ }", "{\n\r}": "{  }", "{}\r": "{} ", "{}": "{}",
	} {
		if got := string(JoinLines([]byte(text))); got != want {
			t.Errorf("JoinLines(%q): got %q, want %q", text, got, want)
		}
	}
}

func FuzzJoinLines(f *testing.F) {
	for _, text := range append(texts, "{\r\n\"a\"\r:\n\n[1,\r2]}\r\n") {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := string(text)
		joined := string(JoinLines(text))
		if strings.ContainsAny(joined, "\r\n") {
			t.Errorf("%q still has breaks", joined)
		}
		if joined != strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ").Replace(before) {
			t.Errorf("%q became %q", before, joined)
		}
		if json.Valid([]byte(before)) != json.Valid([]byte(joined)) && json.Valid([]byte(before)) {
			t.Errorf("%q became %q, which is no JSON", before, joined)
		}
	})
}

func TestTypeNameAndText(t *testing.T) {
	for value, want := range map[string]string{
		`{}`: "an object", ` []`: "an array", `"x"`: "a string", `true`: "a boolean", `false`: "a boolean", `null`: "null", `-1`: "a number", ``: "nothing",
	} {
		if got := TypeName([]byte(value)); got != want {
			t.Errorf("TypeName(%s): got %s, want %s", value, got, want)
		}
	}
	for value, want := range map[string]string{`"a"`: "a", `""`: "", `"\u00e9\n\"\\"`: "é\n\"\\", `"\ud83c\udf89"`: "🎉"} {
		if got, ok := Text([]byte(value)); !ok || got != want {
			t.Errorf("Text(%s): got %q, %t", value, got, ok)
		}
	}
	for _, value := range []string{``, `"`, `1`, `null`, `{"a":"b"}`} {
		if _, ok := Text([]byte(value)); ok {
			t.Errorf("Text(%s) is a string", value)
		}
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{
		"": `""`, "tools/call": `"tools/call"`, `a"b\c`: `"a\"b\\c"`, "<&>": `"<&>"`, "é\n": `"é\n"`,
		`\`: `"\\"`, `\\`: `"\\\\"`, `"`: `"\""`, "\x00": `"\u0000"`, "\x1f": `"\u001f"`, " ": `" "`, "~": `"~"`, "\x7f": "\"\x7f\"",
		"\xff": `"\ufffd"`, "é": `"é"`, "\u2028": `"\u2028"`, "a\\b": `"a\\b"`,
	} {
		if got := string(Quote(s)); got != want {
			t.Errorf("Quote(%q): got %s, want %s", s, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if got, ok := Text(Quote(s)); !ok || got != s || !Valid(Quote(s)) {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}

// Text and Quote agree with encoding/json, whatever the bytes.
func TestTextReadsAsEncodingJSONDoes(t *testing.T) {
	for _, value := range []string{"\"a\xff\xfeb\"", "\"\\n\xc3\"", "\"\xed\xa0\x80é\"", `"é\ud800"`} {
		var want string
		if err := json.Unmarshal([]byte(value), &want); err != nil {
			t.Fatal(err)
		}
		if got, ok := Text([]byte(value)); !ok || got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}

func TestNesting(t *testing.T) {
	for text, want := range map[string][2]int{
		`1`: {0, 0}, `"{[\"{"`: {0, 0}, `{}`: {1, 1}, `[]`: {1, 0}, ``: {0, 0},
		`{"a":[{"}":{}},{}],"b":[[[]]]}`: {4, 4},
	} {
		if depth, objects := Nesting([]byte(text)); depth != want[0] || objects != want[1] {
			t.Errorf("%s: got depth %d and %d objects, want %v", text, depth, objects, want)
		}
	}
}
