package jsonquery

import (
	"encoding/json"
	"slices"
	"testing"
)

// Members are found in the order of the text, although Go maps have no order.
func TestMembersComeInTheOrderOfTheText(t *testing.T) {
	q, err := Parse(`$..*`)
	if err != nil {
		t.Fatal(err)
	}
	text := json.RawMessage(`{"z":{"b":1,"a":[2,{"d":3,"c":4}]},"y":5,"x":6,"w":7}`)
	var first []string
	for range 20 {
		var got []string
		for _, part := range q.Find(text) {
			got = append(got, string(part.Raw))
		}
		if first == nil {
			first = got
		}
		if !slices.Equal(got, first) {
			t.Fatalf("got %q, then %q", first, got)
		}
	}
	want := []string{`{"b":1,"a":[2,{"d":3,"c":4}]}`, `1`, `[2,{"d":3,"c":4}]`, `2`, `{"d":3,"c":4}`, `3`, `4`, `5`, `6`, `7`}
	if !slices.Equal(first, want) {
		t.Errorf("got %q, want %q", first, want)
	}
}
