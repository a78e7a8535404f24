package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// texts are JSON and nearly JSON, the seeds of the fuzz targets.
var texts = []string{
	``, ` `, `null`, `true`, `false`, `nul`, `nulll`, `truf`, `0`, `-0`, `-`, `01`, `1.`, `1.5`, `.5`, `1e`, `1e+`, `1e+9`, `1E-9`, `1e9.`,
	`9007199254740993`, `1.0`, `1e400`, `"`, `""`, `"a`, `"\n"`, "\"\n\"", `"\u00e9"`, `"\u00g0"`, `"\u12`, `"\ud800"`, `"\x"`, `"\`, "\"\x7f\"", "\"\xff\xfe\"",
	`12345678`, `123456789012345678.5e-12345678`, `1234567x`, `"12345678"`, `"1234567\"8"`, "\"12345678\x1f\"", "\"#\x01\x02\"", `"!!!!!!!!"`, `{}`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{"a" :1}`,
	`{a:1}`, `{"a":1}}`, `[]`, `[`, `[1,]`, `[,]`, `[1 2]`, `[[[]]]`, `[}`, ` [1] `, "\t{\n}\r", "\v1", "\ufeff1", `{"jsonrpc":"2.0","id":1,"result":{"x":[1.0,1e2,"é"]}}`,
}

func TestValid(t *testing.T) {
	for _, text := range texts {
		if got, want := Valid([]byte(text)), json.Valid([]byte(text)); got != want {
			t.Errorf("Valid(%q): got %t, want %t", text, got, want)
		}
	}
}

// The scan of strings takes 8 bytes at a time and then 64: every byte must be seen at
// every offset within them, alone and behind others that have to be looked at.
func TestValidStringBytes(t *testing.T) {
	for c := range 256 {
		for before := range 200 {
			for _, escape := range []string{"", `\\`, `\u00e9`} {
				text := `"` + escape + strings.Repeat("~", before) + string([]byte{byte(c)}) + `!#" `
				if got, want := Valid([]byte(text)), json.Valid([]byte(text)); got != want {
					t.Fatalf("Valid(%q): got %t, want %t", text, got, want)
				}
			}
		}
	}
}

// Escapes may cross the borders of the blocks that are scanned, and a text may end in one.
func TestValidEscapesAtBorders(t *testing.T) {
	for _, escape := range []string{`\"`, `\\`, `\n`, `\u00e9`, `\ud83d\ude00`, `\\\"`, `\x`, `\u00g0`, "\\\n", `\"\"\"\"`} {
		for before := range 140 {
			text := `"` + strings.Repeat("~", before) + escape + strings.Repeat("~", 140-before) + `\"~"`
			for _, end := range []int{len(text), before + 1 + len(escape)/2, before + 1 + len(escape), 70, 130} {
				part := []byte(text[:end])
				if got, want := Valid(part), json.Valid(part); got != want {
					t.Fatalf("Valid(%q): got %t, want %t", part, got, want)
				}
				_, err := Skip(part, 0)
				if unfinished := errors.Is(err, ErrUnexpectedEnd); end < len(text) && !unfinished != errors.As(err, new(*SyntaxError)) {
					t.Fatalf("Skip(%q): got %v", part, err)
				}
			}
		}
	}
}

func TestValidDepth(t *testing.T) {
	for _, deep := range []int{maxDepth - 1, maxDepth, maxDepth + 1, 1_000_000} {
		for _, nested := range [][3]string{{"[", "[]", "]"}, {"[", "{}", "]"}, {`{"a":`, "[]", "}"}, {`{"a":`, "{}", "}"}} {
			text := strings.Repeat(nested[0], deep-1) + nested[1] + strings.Repeat(nested[2], deep-1)
			if got, want := Valid([]byte(text)), deep <= maxDepth; got != want {
				t.Errorf("%s %d deep: got %t, want %t", nested, deep, got, want)
			}
		}
	}
}

func TestUnexpectedEnd(t *testing.T) {
	for text, unfinished := range map[string]bool{
		``: true, `{`: true, `{"a`: true, `{"a"`: true, `{"a":`: true, `{"a":1`: true, `{"a":1,`: true, `[`: true, `[1`: true, `[1,`: true,
		`"\`: true, `"\u`: true, `"\u12`: true, `-`: true, `1.`: true, `1e`: true, `tr`: true,
		`{a`: false, `{"a":1]`: false, `[1}`: false, `x`: false, `trx`: false, "\"\n": false, `"\x`: false, `{"a" 1`: false,
	} {
		_, err := Skip([]byte(text), space([]byte(text), 0))
		var syntax *SyntaxError
		if got := errors.Is(err, ErrUnexpectedEnd); got != unfinished || got == errors.As(err, &syntax) {
			t.Errorf("Skip(%q): got %v, unexpected end wanted: %t", text, err, unfinished)
		}
	}
}

// A text is checked alone, and inside a long string at any offset.
func FuzzValid(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text), uint8(0))
		f.Add([]byte(text), uint8(61))
	}
	f.Fuzz(func(t *testing.T, text []byte, before uint8) {
		inString := append(append([]byte(`["`+strings.Repeat("x", int(before))), text...), strings.Repeat("x", 64)+`",1]`...)
		for _, text := range [][]byte{text, inString} {
			if got, want := Valid(text), json.Valid(text); got != want {
				t.Errorf("Valid(%q): got %t, want %t", text, got, want)
			}
		}
	})
}

// jsonValue draws JSON as others write it: space anywhere, escapes, numbers
// that no float64 holds.
func jsonValue(depth int) *rapid.Generator[string] {
	scalar := rapid.OneOf(
		rapid.SampledFrom([]string{`null`, `true`, `false`, `0`, `-0`, `1.0`, `1e2`, `9007199254740993`, `-1.5E-7`, `123456789012345678901234567890`, `""`, `"\u00e9\n\"}{"`, `"},{\"id\":1"`}),
		rapid.Map(rapid.String(), func(s string) string { return string(Quote(s)) }),
	)
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(scalar, jsonObject(depth-1), rapid.Custom(func(t *rapid.T) string {
		return "[" + gap(t) + strings.Join(rapid.SliceOfN(jsonValue(depth-1), 0, 3).Draw(t, "elements"), gap(t)+","+gap(t)) + gap(t) + "]"
	}))
}

// jsonObject draws objects, sometimes with a name twice.
func jsonObject(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		name := rapid.SampledFrom([]string{`"a"`, `"b"`, `"c"`, `"\u0061"`, `"_meta"`, `"x-\"y"`, `""`})
		var members []string
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			members = append(members, name.Draw(t, "name")+gap(t)+":"+gap(t)+jsonValue(depth).Draw(t, "value"))
		}
		return "{" + gap(t) + strings.Join(members, gap(t)+","+gap(t)) + gap(t) + "}"
	})
}

func gap(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "", " ", "\t ", "\n", "\r\n"}).Draw(t, "gap")
}

func TestValidTakesAllJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := jsonValue(3).Draw(t, "text")
		if !json.Valid([]byte(text)) {
			t.Fatalf("the generator drew %q", text)
		}
		if !Valid([]byte(text)) {
			t.Errorf("Valid(%q) is false", text)
		}
	})
}
