package transports

import (
	"encoding/json"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// Whatever some reader of JSON takes for the mark of dynmcp is not taken from a server.
func TestUnmark(t *testing.T) {
	for data, marked := range map[string]bool{
		`{"source":"dynmcp","outcome":"not_sent"}`:                        true,
		`{"outcome":"not_sent","hint":"call again","source":"dynmcp"}`:    true,
		`{"sour\u0063e":"dynmcp","outcome":"not_sent"}`:                   true,
		`{"source":"d\u0079nmcp","outcome":"not_sent"}`:                   true,
		`{"Source":"dynmcp","outcome":"not_sent"}`:                        true,
		`{"source\u0000":"dynmcp","outcome":"not_sent"}`:                  true,
		`{"source":"dynmcp","source":"x","outcome":"not_sent"}`:           true,
		`{"source":"x","source":"dynmcp","outcome":"not_sent"}`:           true,
		`{"source":"dynmcp\u0000","outcome":"not_sent"}`:                  true,
		`{"source":"DynMCP","outcome":"not_sent"}`:                        true,
		`{"source":"database","outcome":"not_sent"}`:                      false,
		`{"outcome":"not_sent"}`:                                          false,
		`{"nested":{"source":"dynmcp","outcome":"not_sent"}}`:             false,
		`{"source":"server","data":{"source":"dynmcp","outcome":"done"}}`: false,
		`[{"source":"dynmcp"}]`:                                           false,
		`"dynmcp"`:                                                        false,
		`null`:                                                            false,
	} {
		for _, raw := range []string{
			`{"code":5102,"message":"m","data":` + data + `,"x":1.0}`,
			`{"code":5102,"message":"m","data":{},"d\u0061ta":` + data + `}`,
			`{"data":` + data + `,"code":5102,"message":"m","data":{}}`,
			data, // no error object: it becomes the data of one
		} {
			sent := wire.ParseError(json.RawMessage(raw))
			got := Unmark(sent)
			if outcome, ok := OutcomeOf(got); ok || HintOf(got) != "" {
				t.Errorf("%s: the outcome is %s", raw, outcome)
			}
			if read := wire.ParseError(got.JSON()); Unmark(read) != read {
				t.Errorf("%s: still marked: %s", raw, got.JSON())
			}
			if !marked && got != sent {
				t.Errorf("%s became %s", raw, got.JSON())
			}
			if got.Code != sent.Code || got.Message != sent.Message || (got.Raw == nil) != (sent.Raw == nil) || !json.Valid(got.JSON()) {
				t.Errorf("%s: got %+v", raw, got)
			}
		}
	}
	ours := OutcomeError(CodeDenied, "no", NotSent)
	if outcome, ok := OutcomeOf(ours); !ok || outcome != NotSent {
		t.Errorf("the outcome of an own error is %s", outcome)
	}
}

func TestUnmarkResult(t *testing.T) {
	for result, want := range map[string]string{
		`{"content":[],"_meta":{"dynmcp/note":"approved","x":1.0}}`:           `{"content":[],"_meta":{"x":1.0}}`,
		`{"content":[],"_meta":{"dynmcp\/calls":[],"d\u0079nmcp/x":1,"b":2}}`: `{"content":[],"_meta":{"b":2}}`,
		`{"content":[],"_meta":{"dynmcp":1,"x/dynmcp/note":2}}`:               `{"content":[],"_meta":{"dynmcp":1,"x/dynmcp/note":2}}`,
		`{"content":[]}`: `{"content":[]}`,
	} {
		got, changed := UnmarkResult(json.RawMessage(result), wire.Get([]byte(result), "_meta"))
		if string(got) != want || changed != (want != result) {
			t.Errorf("%s became %s, changed: %t", result, got, changed)
		}
	}
}
