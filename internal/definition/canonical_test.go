package definition

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The examples of RFC 8785: the data of 3.2.2, the order of 3.2.3.
func TestCanonicalFormOfTheRFC(t *testing.T) {
	for _, c := range [][2]string{
		{
			`{ "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
			   "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false] }`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		},
		{
			`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}",
		},
		{` [ { } , [ ] , "" ] `, `[{},[],""]`},
	} {
		if got := string(appendCanonical(nil, []byte(c[0]))); got != c[1] {
			t.Errorf("%s\ngot  %s\nwant %s", c[0], got, c[1])
		}
	}
}

// Doubles of appendix B of RFC 8785.
func TestCanonicalNumbersOfTheRFC(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0", 0x8000000000000000: "0", 0x0000000000000001: "5e-324", 0x7fefffffffffffff: "1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992", 0x4430000000000000: "295147905179352830000", 0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23", 0x44b52d02c7e14af7: "1.0000000000000001e+23", 0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef50: "1e+21", 0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7", 0x3eb0c6f7a0b5ed8d: "0.000001", 0x41b3de4355555554: "333333333.33333325",
		0xbecbf647612f3696: "-0.0000033333333333333333", 0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		f := math.Float64frombits(bits)
		if got := canonicalNumber(strconv.FormatFloat(f, 'g', -1, 64)); got != want {
			t.Errorf("%x: got %s, want %s", bits, got, want)
		}
	}
}

// Values that some readers distinguish have different canonical forms.
func TestDifferentValuesDoNotCollide(t *testing.T) {
	seen := map[string]string{}
	for _, value := range []string{
		`9007199254740992`, `9007199254740993`, `9007199254740994`, `18446744073709551615`, `18446744073709551616`, `123456789012345678901234567890`, `123456789012345678901234567891`,
		`1e400`, `1e401`, `-1e400`, `"\ud800"`, `"\ud801"`, `"\ufffd"`, `"\\ud800"`, `{"a":1,"a":2}`, `{"a":2,"a":1}`, `{"a":2}`, `{"a":1}`,
		`null`, `{}`, `[]`, `""`, `"\u0000"`, `"\u200b"`, `true`, `"true"`,
	} {
		form := string(appendCanonical(nil, []byte(value)))
		if other, twice := seen[form]; twice {
			t.Errorf("%s and %s are both %s", value, other, form)
		}
		seen[form] = value
	}
}

func TestEqualValuesHaveOneForm(t *testing.T) {
	for _, same := range [][]string{
		{`1`, `1.0`, `1e0`, `10e-1`, `0.1e1`}, {`100`, `1e2`, `1E+2`, `100.000`}, {`0`, `-0`, `0.0e5`}, {`9007199254740993`, `9007199254740993.0`, `9.007199254740993e15`},
		{`"a"`, `"\u0061"`}, {`"😀"`, `"\ud83d\ude00"`, `"\uD83D\uDE00"`}, {`"\ud800"`, `"\uD800"`}, {`"/"`, `"\/"`}, {`"\n"`, `"\u000a"`}, {`{"a":1,"b":2}`, `{ "\u0062" : 2, "a": 1.0 }`},
	} {
		want := string(appendCanonical(nil, []byte(same[0])))
		for _, text := range same[1:] {
			if got := string(appendCanonical(nil, []byte(text))); got != want {
				t.Errorf("%s is %s, and %s is %s", same[0], want, text, got)
			}
		}
	}
}

// A canonical form is JSON of the same value, and its own canonical form.
func TestCanonicalFormIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyJSON(3).Draw(t, "text")
		form := appendCanonical(nil, []byte(text))
		if again := appendCanonical(nil, form); string(again) != string(form) {
			t.Fatalf("%s\nis  %s\nand %s", text, form, again)
		}
		var before, after any
		if json.Unmarshal([]byte(text), &before) != nil || json.Unmarshal(form, &after) != nil {
			t.Fatalf("%s is %s", text, form)
		}
		a, _ := json.Marshal(before)
		b, _ := json.Marshal(after)
		if string(a) != string(b) {
			t.Fatalf("%s\nis %s", a, b)
		}
	})
}

func anyJSON(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 4
		}
		switch kind {
		case 0:
			return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal")
		case 1:
			return strconv.FormatFloat(rapid.Float64().Draw(t, "number")+0, 'g', -1, 64) // RFC 8785 has no -0
		case 2:
			return strconv.FormatInt(rapid.Int64().Draw(t, "integer"), 10)
		case 3:
			text, _ := json.Marshal(rapid.String().Draw(t, "string"))
			return string(text)
		case 4:
			return "[" + strings.Join(rapid.SliceOfN(anyJSON(depth-1), 0, 4).Draw(t, "elements"), " ,") + "]"
		}
		var members []string
		for _, name := range rapid.SliceOfNDistinct(rapid.String(), 0, 4, rapid.ID[string]).Draw(t, "names") {
			quoted, _ := json.Marshal(name)
			members = append(members, string(quoted)+": "+anyJSON(depth-1).Draw(t, "value"))
		}
		return "{ " + strings.Join(members, ",") + "}"
	})
}
