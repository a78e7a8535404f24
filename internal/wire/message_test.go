package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		text string
		want Message // without Raw
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":1.0}}`, Message{ID: []byte("1"), Method: "tools/call", Params: []byte(`{"a":1.0}`)}},
		{` { "params" : [1] , "method" : "x\u002fy" , "id" : "s" , "jsonrpc" : "2.0" } `, Message{ID: []byte(`"s"`), Method: "x/y", Params: []byte(`[1]`)}},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, Message{Method: "notifications/initialized"}},
		{`{"result":{"big":9007199254740993},"jsonrpc":"2.0","id":7}`, Message{ID: []byte("7"), Result: []byte(`{"big":9007199254740993}`)}},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-1}}`, Message{ID: []byte("null"), Error: []byte(`{"code":-1}`)}},
		{`{"jsonrpc":"2.0","id":1,"result":null,"extra":{"id":2,"method":"no"}}`, Message{ID: []byte("1"), Result: []byte("null")}},
		{`{"jsonrpc":"2.0","\u0069d":3,"\u006dethod":"ping"}`, Message{ID: []byte("3"), Method: "ping"}},
	} {
		got, err := Parse([]byte(test.text))
		if err != nil {
			t.Errorf("Parse(%s): %v", test.text, err)
			continue
		}
		if want := strings.TrimSpace(test.text); string(got.Raw) != want {
			t.Errorf("Parse(%s).Raw: got %s", test.text, got.Raw)
		}
		if !sameParts(got, test.want) {
			t.Errorf("Parse(%s): got %+v", test.text, got)
		}
	}
}

// same tells nil from empty: an absent member is nil, null is not absent.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func sameParts(a, b Message) bool {
	return same(a.ID, b.ID) && a.Method == b.Method && same(a.Params, b.Params) && same(a.Result, b.Result) && same(a.Error, b.Error)
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]error{
		``:                                       ErrUnexpectedEnd,
		`{"jsonrpc":"2.0","id":1`:                ErrUnexpectedEnd,
		`[]`:                                     ErrEnvelope,
		`7`:                                      ErrEnvelope,
		`{}`:                                     ErrEnvelope,
		`{"foo":1}`:                              ErrEnvelope,
		`{"jsonrpc":"1.0","id":1,"method":"x"}`:  ErrEnvelope,
		`{"jsonrpc":2.0,"id":1,"method":"x"}`:    ErrEnvelope,
		`{"id":1,"method":"x"}`:                  ErrEnvelope,
		`{"jsonrpc":"2.0","id":1}`:               ErrEnvelope,
		`{"jsonrpc":"2.0","id":1,"method":""}`:   ErrEnvelope,
		`{"jsonrpc":"2.0","id":1,"method":null}`: ErrEnvelope,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`:                ErrEnvelope,
		`{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"x"}`:           ErrEnvelope,
		`{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`:          ErrEnvelope,
		`{"jsonrpc":"2.0","id":1,"method":"x","params":1,"params":2}`: ErrEnvelope,
	} {
		if _, err := Parse([]byte(text)); !errors.Is(err, want) {
			t.Errorf("Parse(%s): got %v, want %v", text, err, want)
		}
	}
	var syntax *SyntaxError
	for _, text := range []string{`x`, `{"a":1}{`, `{"a":1} x`, `{'a':1}`} {
		if _, err := Parse([]byte(text)); !errors.As(err, &syntax) {
			t.Errorf("Parse(%s): got %v, want a syntax error", text, err)
		}
	}
}

// An error can be sent under the id of an invalid message.
func TestParseKeepsTheID(t *testing.T) {
	m, err := Parse([]byte(`{"jsonrpc":"1.0","id":"a","method":"x"}`))
	if !errors.Is(err, ErrEnvelope) || string(m.ID) != `"a"` {
		t.Errorf("got id %s, %v", m.ID, err)
	}
}

func TestKinds(t *testing.T) {
	for text, want := range map[string][2]bool{
		`{"jsonrpc":"2.0","id":1,"method":"x"}`:            {true, false},
		`{"jsonrpc":"2.0","id":null,"method":"x"}`:         {true, false},
		`{"jsonrpc":"2.0","method":"x"}`:                   {false, true},
		`{"jsonrpc":"2.0","id":1,"result":1}`:              {false, false},
		`{"jsonrpc":"2.0","id":1,"method":"x","result":1}`: {true, false},
	} {
		m, err := Parse([]byte(text))
		if got := [2]bool{m.IsRequest(), m.IsNotification()}; err != nil || got != want {
			t.Errorf("%s: got %v, want %v (%v)", text, got, want, err)
		}
	}
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		`1`: true, `-5`: true, `0`: true, `"a"`: true, `""`: true, `123456789012345678901234567890`: true,
		``: false, `null`: false, `1.5`: false, `1e3`: false, `1E3`: false, `1.0`: false, `true`: false, `[1]`: false, `{}`: false,
	} {
		if got := ValidID([]byte(id)); got != want {
			t.Errorf("ValidID(%s): got %t, want %t", id, got, want)
		}
	}
}

func join(parts [][]byte) string { return string(bytes.Join(parts, nil)) }

func TestPieces(t *testing.T) {
	id, method, params := []byte(`"a"`), []byte(`"x"`), []byte(`{"k":1}`)
	for got, want := range map[string]string{
		join(Request(-7, "x")): `{"jsonrpc":"2.0","id":-7,"method":"x"}`,
		join(Request(7, "x\"", params[:3], params[3:4], params[4:])):                       `{"jsonrpc":"2.0","id":7,"method":"x\"","params":{"k":1}}`,
		join(Notification(method)):                                                         `{"jsonrpc":"2.0","method":"x"}`,
		join(Notification(method, params)):                                                 `{"jsonrpc":"2.0","method":"x","params":{"k":1}}`,
		join(Result(id, params)):                                                           `{"jsonrpc":"2.0","id":"a","result":{"k":1}}`,
		join(Failure(nil, &Error{Code: 5, Message: "m"})):                                  `{"jsonrpc":"2.0","id":null,"error":{"code":5,"message":"m"}}`,
		join(Failure(id, &Error{Code: -5, Message: `"`, Data: params})):                    `{"jsonrpc":"2.0","id":"a","error":{"code":-5,"message":"\"","data":{"k":1}}}`,
		join(Failure(id, ParseError(json.RawMessage(`{"message":"m","x":1.0,"code":1}`)))): `{"jsonrpc":"2.0","id":"a","error":{"message":"m","x":1.0,"code":1}}`,
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestParseErrorObject(t *testing.T) {
	for raw, want := range map[string]string{
		`{"code":-32042,"message":"m","data":{"n":1.0}}`: `{"code":-32042,"message":"m","data":{"n":1.0}}`,
		`{"code":1.0,"message":""}`:                      `{"code":1.0,"message":""}`,
		`"boom \u00e9"`:                                  `{"code":-32603,"message":"boom é","data":"boom \u00e9"}`,
		`""`:                                             `{"code":-32603,"message":"the answer is an error without a message","data":""}`,
		`{"message":"m"}`:                                `{"code":-32603,"message":"m","data":{"message":"m"}}`,
		`{"code":7}`:                                     `{"code":7,"message":"the answer is an error without a message","data":{"code":7}}`,
		`{"code":"7","message":"m"}`:                     `{"code":-32603,"message":"m","data":{"code":"7","message":"m"}}`,
	} {
		if got := string(ParseError(json.RawMessage(raw)).JSON()); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
	if e := ParseError(json.RawMessage(`{"code":-32042,"message":"m","data":[1]}`)); e.Code != -32042 || e.Error() != "m" || string(e.Data) != "[1]" {
		t.Errorf("got %+v", e)
	}
}

// within fails unless part is nil or a slice of whole's own bytes.
func within(t *testing.T, whole, part []byte, name string) {
	t.Helper()
	if part == nil {
		return
	}
	if at := cap(whole) - cap(part); at < 0 || at >= len(whole) || &whole[at] != &part[0] {
		t.Errorf("%s is a copy", name)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"t"},"name":"x"}}`,
		` {"result":{},"jsonrpc":"2.0","id":"é"} `, `{"jsonrpc":"2.0","error":{"code":1,"message":"m"},"id":null}`,
		`{"jsonrpc":"2.0","\u0069d":1,"method":"x"}`, `{"jsonrpc":"2.0","method":"\ud800"}`, `{"jsonrpc":"2.0","id":1,"id":2}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if valid := json.Valid(text); valid != (err == nil || errors.Is(err, ErrEnvelope)) {
			t.Fatalf("Parse(%q): %v, but valid JSON is %t", text, err, valid)
		}
		if m.Raw != nil {
			within(t, m.Raw, m.ID, "id")
			within(t, m.Raw, m.Params, "params")
			within(t, m.Raw, m.Result, "result")
			within(t, m.Raw, m.Error, "error")
		}
		if err == nil {
			roundTrip(t, m)
		}
	})
}

// roundTrip writes a message again and wants the same parts back.
func roundTrip(t *testing.T, m Message) {
	t.Helper()
	var again string
	want := m
	switch {
	case m.IsRequest():
		again, want.ID, want.Result, want.Error = join(Request(7, m.Method, m.Params)), []byte("7"), nil, nil
	case m.IsNotification():
		again, want.Result, want.Error = join(Notification(Quote(m.Method), m.Params)), nil, nil
	case m.ID != nil && m.Result != nil:
		again, want.Params, want.Error = join(Result(m.ID, m.Result)), nil, nil
	default:
		return
	}
	got, err := Parse([]byte(again))
	if err != nil || !json.Valid([]byte(again)) {
		t.Fatalf("%s does not parse again: %v", again, err)
	}
	// The encoder replaces bytes of a method that are not UTF-8.
	want.Method = strings.ToValidUTF8(want.Method, "\ufffd")
	got.Method = strings.ToValidUTF8(got.Method, "\ufffd")
	if !sameParts(got, want) && strings.Count(want.Method, "\ufffd") == 0 {
		t.Fatalf("%s came back as %+v", m.Raw, got)
	}
}
