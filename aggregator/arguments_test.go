package aggregator

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/aggregator/surface"
)

func TestTextsAreAStringOrAList(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string][]string{
		`{}`:                        nil,
		`{"query":null}`:            nil,
		`{"query":""}`:              nil,
		`{"query":"a"}`:             {"a"},
		`{"query":["a","","b"]}`:    {"a", "b"},
		`{"query":"[\"a\",\"b\"]"}`: {"a", "b"},
		`{"query":"[draft] a"}`:     {"[draft] a"},
		`{"query":[]}`:              nil,
	} {
		in := surface.ReadArguments(json.RawMessage(arguments), "query")
		if got := in.Texts("query"); !slices.Equal(got, want) || in.Err() != nil {
			t.Errorf("%s: got %q, %v", arguments, got, in.Err())
		}
	}
	for _, arguments := range []string{`{"query":1}`, `{"query":["a",1]}`, `{"query":{}}`} {
		in := surface.ReadArguments(json.RawMessage(arguments), "query")
		if got := in.Texts("query"); got != nil || in.Err() == nil {
			t.Errorf("%s: got %q", arguments, got)
		}
	}
}
