package syntax

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// places lists the values below n with their kinds and positions.
func places(path string, n *Node) []string {
	lines := []string{fmt.Sprintf("%d:%d %s: %s", n.At.Line, n.At.Col, path, n.Compact())}
	for _, m := range n.Members {
		lines = append(lines, places(Below(path, m.Key), m.Value)...)
	}
	for i, item := range n.Items {
		lines = append(lines, places(Item(path, i), item)...)
	}
	return lines
}

// JSON and YAML give the same values, each with its position.
func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a.json": {"{\"a b\": [1, -2.5e3, true],\n \"é\": {\"c\": null}, \"d\": \"\\u00e9\",}", []string{
			`1:1 : {"a b":[1,-2.5e3,true],"é":{"c":null},"d":"é"}`,
			`1:9 ["a b"]: [1,-2.5e3,true]`, `1:10 ["a b"][0]: 1`, `1:13 ["a b"][1]: -2.5e3`, `1:21 ["a b"][2]: true`,
			`2:7 ["é"]: {"c":null}`, `2:13 ["é"].c: null`, `2:25 d: "é"`,
		}},
		"comments.jsonc": {"// nothing else", []string{"1:1 : null"}},
		"a.yml": {"x: &x {é: 1, b: ' 2'}\ny:\n  <<: *x\n  b: 0x1F\n  c: !!str 12\nz: [.inf, ~, yes, false]\n5: 1_000\n", []string{
			`1:1 : {"x":{"é":1,"b":" 2"},"y":{"b":31,"c":"12","é":1},"z":[".inf",null,"yes",false],"5":1000}`,
			`1:7 x: {"é":1,"b":" 2"}`, `1:11 x["é"]: 1`, `1:17 x.b: " 2"`,
			`3:3 y: {"b":31,"c":"12","é":1}`, `4:6 y.b: 31`, `5:11 y.c: "12"`, `1:11 y["é"]: 1`,
			`6:4 z: [".inf",null,"yes",false]`, `6:5 z[0]: ".inf"`, `6:11 z[1]: null`, `6:14 z[2]: "yes"`, `6:19 z[3]: false`,
			`7:4 5: 1000`,
		}},
		"two merged": {"a: &a {k: 1, l: 2}\nb: &b {k: 3, m: 4}\nc: {<<: [*a, *b]}\n", []string{
			`1:1 : {"a":{"k":1,"l":2},"b":{"k":3,"m":4},"c":{"k":1,"l":2,"m":4}}`,
			`1:7 a: {"k":1,"l":2}`, `1:11 a.k: 1`, `1:17 a.l: 2`, `2:7 b: {"k":3,"m":4}`, `2:11 b.k: 3`, `2:17 b.m: 4`,
			`3:4 c: {"k":1,"l":2,"m":4}`, `1:11 c.k: 1`, `1:17 c.l: 2`, `2:17 c.m: 4`,
		}},
		"nothing.yaml": {"# nothing else", []string{"1:1 : null"}},
	} {
		root, err := (&Source{Name: name, Data: []byte(c.text)}).Parse()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, places("", root)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A parse error has a position, and mostly a hint.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "1:1: the file is empty; " + EmptyHint,
		" \n":                        "1:1: the file is empty; " + EmptyHint,
		"\xff\xfe{":                  "1:1: the file is UTF-16; save it as UTF-8",
		"\xfe\xff{":                  "1:1: the file is UTF-16; save it as UTF-8",
		"{\"a\": \"\x00\"}":          "1:1: the file is not text; a config is JSON or YAML in UTF-8",
		"{\"a\": \"\xff\"}":          "1:1: the file is not text; a config is JSON or YAML in UTF-8",
		strings.Repeat("[", 201):     "1:1: the file nests too deeply; a config needs at most 200 brackets inside one another",
		strings.Repeat(" ", 1<<20+1): "1:1: the file is larger than 1 MiB; is this the config?",

		"{\"a\": 1,\n\"b\" 2}": `2:5: malformed JSON: invalid character '2' after object name`,
		"{\"a\": 1 \"b\": 2}":  `1:9: malformed JSON: invalid character '"' after object value (expecting ',' or '}'); is there a comma missing before it?`,
		"{\"a\": [1}":          `1:9: malformed JSON: invalid character '}' after array value (expecting ',' or ']')`,
		"{\"é\": 'x'}":         `1:7: malformed JSON: text in single quotes; use double quotes`,
		"{\"a\": \"\n\"}":      `1:7: malformed JSON: text that JSON does not allow; write line breaks as \n and backslashes as \\`,
		"{\"a\": word}":        `1:7: malformed JSON: a word or number that is not JSON; put keys and texts in double quotes`,
		"{\"a\": \"x\"":        `1:10: malformed JSON: the file ends too early; close every {, [ and "`,
		"// c\n/x":             `2:1: malformed JSON: invalid character '/' at start of value`,

		"a: *b":           `1:4: malformed YAML: an alias of an unknown anchor; put &NAME on the value before *NAME refers to it`,
		"a: &a [*a]":      `1:8: malformed YAML: an alias inside its own value; write the value out`,
		"a: !x 1":         `1:4: malformed YAML: a tag that configs do not use; remove it`,
		"a: 1\n---\nb: 1": `3:1: malformed YAML: a second YAML document; a config is one document; remove what follows ---`,
		"a:\n  <<: 1":     `2:7: malformed YAML: << without a mapping to merge; write <<: *NAME, with &NAME on a mapping`,
		"? [a]\n: 1":      `2:1: malformed YAML: found an invalid key for this map`,
		"a: \"b\n":        `1:4: malformed YAML: could not find end character of double-quoted text`,
		"a: [1":           `1:4: malformed YAML: sequence end token ']' not found`,
		"a: &a [" + strings.Repeat("1,", 1000) + "]\nb: [" + strings.Repeat("*a,", 100) + "]": `1:1604: malformed YAML: aliases make the document too large; write fewer aliases of aliases`,
	} {
		_, err := (&Source{Name: "f", Data: []byte(text)}).Parse()
		if err == nil || err.Error() != "Invalid config file:\nf:"+want {
			t.Errorf("%.60q:\n got %v\nwant %s", text, err, want)
		}
	}
}
