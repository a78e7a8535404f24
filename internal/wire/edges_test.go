package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// lastMembers returns the complete members of a line that is cut anywhere.
func TestLastMembersOfACutLine(t *testing.T) {
	text := []byte(`{"a":[1,{"x":"},{"},[]] , "b":"q\"uo\\te,\\\\","c":{"d":{"e":[[2,3],{}]},"f":"\\"}, "id":"x\\\\\"y" }` + " \r\n")
	var commas []int // before each member but the first
	for key := range Spans(text) {
		if comma := bytes.LastIndexByte(text[:key.Off], ','); comma > 0 {
			commas = append(commas, comma)
		}
	}
	if len(commas) != 3 {
		t.Fatalf("commas at %d", commas)
	}
	whole := bytes.TrimRight(text, " \r\n")
	for cut := range len(text) - 3 {
		want := ""
		for _, comma := range commas {
			if comma >= cut {
				want = string(text[comma:len(whole)])
				break
			}
		}
		got := string(bytes.TrimRight(lastMembers(text[cut:]), " \r\n"))
		if got != want {
			t.Errorf("of %s: got %s, want %s", text[cut:], got, want)
		}
	}
	for _, none := range []string{"", "}", "{}", "1", `"id":7`, `,"id":7`, `,"id":tru}`, `,"id" 7}`, `,7}`} {
		if got := lastMembers([]byte(none)); len(got) > 0 {
			t.Errorf("of %q: got %q", none, got)
		}
	}
}

// GetStrict refuses a duplicate member, and one whose name other readers confuse with a
// wanted name.
func TestMembersThatOthersTakeForAnother(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"key":1,"skin":2}`:               true,
		`{"k\u0065y":1}`:                   true,
		`{"ke":1,"kex":2,"keys":3}`:        true,
		`{"":1,"k":2,"\u00e9":3}`:          true,
		`{"é":1}`:                          true,
		`{"KEY":1}`:                        false,
		`{"\u212aey":1}`:                   false, // the Kelvin sign
		"{\"\u212aey\":1}":                 false,
		"{\"\u017fkin\":1}":                false, // a long s
		`{"key\u0000":1}`:                  false,
		`{"key\u0000x":1}`:                 false,
		`{"key":1,"key":2}`:                false,
		`{"skin":1,"key":2,"skin":3}`:      false,
		`{"skin":1,"key":2,"s\u006bin":3}`: false,
		`[]`:                               false,
	} {
		if _, _, err := GetStrict([]byte(text), "key", "skin"); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Ids and escapes accept every digit, and no neighbour of the digits in ASCII.
func TestDigitsOfAllKinds(t *testing.T) {
	for _, digit := range "0123456789" {
		for _, id := range []string{string(digit), "-" + string(digit), "1" + string(digit)} {
			if !ValidID([]byte(id)) {
				t.Errorf("%s is no id", id)
			}
		}
	}
	for _, other := range []string{"/", ":", "+1", "1.0", "1e3", ""} {
		if ValidID([]byte(other)) {
			t.Errorf("%q is an id", other)
		}
	}
	for c := range 128 {
		text := `"\u` + strings.Repeat(string(rune(c)), 4) + `"`
		if hex := strings.ContainsRune("0123456789abcdefABCDEF", rune(c)); Valid([]byte(text)) != hex {
			t.Errorf("%s is valid: %t", text, !hex)
		}
	}
}

// Parse allows messages and their parts the same depth as Valid.
func TestMessagesNestAsDeeplyAsTheirText(t *testing.T) {
	for depth := maxDepth - 4; depth <= maxDepth+2; depth++ {
		for _, before := range []string{`"params":`, `"params":{"_meta":`, `"params":{"arguments":`, `"x":`, `"x":{"y":`} {
			text := `{"jsonrpc":"2.0","id":1,"method":"m",` + before + strings.Repeat("[", depth) + strings.Repeat("]", depth) + strings.Repeat("}", strings.Count(before, "{")+1)
			_, err := Parse([]byte(text))
			if valid := Valid([]byte(text)); (err == nil) != valid {
				t.Errorf("%s %d deep: valid is %t, parsed with %v", before, depth, valid, err)
			}
		}
	}
}

// The limit of depth holds for each part of a message, with and without an Outline.
func TestMessagesNestAsDeeplyAsIsAllowed(t *testing.T) {
	for _, members := range []string{
		``, `,"x":{}`, `,"x":[]`, `,"x":{"y":[]}`, `,"result":{}`, `,"result":{"x":{}}`, `,"result":{"arguments":[[]]}`, `,"error":{"data":{}}`,
		`,"params":[]`, `,"params":{}`, `,"params":{"x":1}`, `,"params":{"x":{}}`, `,"params":{"x":[[]]}`,
		`,"params":{"arguments":{}}`, `,"params":{"arguments":{"x":[]}}`, `,"params":{"arguments":{"x":{"y":{}}}}`,
		`,"params":{"arguments":{"tool_input":{}}}`, `,"params":{"arguments":{"tool_input":{"x":[{}]}}}`,
	} {
		text := []byte(`{"jsonrpc":"2.0","method":"m"` + members + `}`)
		deep, _ := Nesting(text)
		for limit := 1; limit < 8; limit++ {
			r := NewReader(bytes.NewReader(text), 1000)
			r.MaxDepth = limit
			_, read := r.Next()
			_, parsed := ParseWithin(text, limit)
			if refused := deep > limit; errors.Is(read, ErrTooDeep) != refused || errors.Is(parsed, ErrTooDeep) != refused || !refused && (read != nil || parsed != nil) {
				t.Errorf("%s of depth %d within %d: read with %v, parsed with %v", text, deep, limit, read, parsed)
			}
		}
	}
}

// Edits at one offset are made in the order given.
func TestEditsOfOnePlace(t *testing.T) {
	got := Replace([]byte(`{"a":1}`), Edit{Span{5, 1}, []byte("2")}, Edit{Span{1, 0}, []byte(`"x":0,`)}, Edit{Span{1, 0}, []byte(`"y":0,`)})
	if want := `{"x":0,"y":0,"a":2}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// An error says where the text is wrong, or where it ends.
func TestWhereATextIsWrong(t *testing.T) {
	for text, want := range map[string]int{"tru": 3, "trux": 3, `"\`: 2, `"\x"`: 2, `"\u12`: 5, "12.": 3, "[1,": 3} {
		end, err := Skip([]byte(text), 0)
		if wrong := (*SyntaxError)(nil); err == nil || end != want || errors.As(err, &wrong) && wrong.Offset != want {
			t.Errorf("%s: got %d, %v, want %d", text, end, err, want)
		}
	}
}
