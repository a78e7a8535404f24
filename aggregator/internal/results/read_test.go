package results

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/aggregator/internal/viewtest"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

func TestReadingOn(t *testing.T) {
	long := strings.Repeat("before 😀 ", 100) + "needle" + strings.Repeat(" behind", 100)
	lines := json.RawMessage(`{"content":[{"type":"text","text":"one\ntwo"},{"type":"resource","resource":{"uri":"x:y","text":"{\"rows\":[{\"n\":1.0},{\"n\":20000000000000000001}]}"}}]}`)
	onLong := json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, wire.Quote(long+"\nneedle too")))
	mixed := json.RawMessage(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"resource","resource":{"uri":"x:z","blob":"AA=="}}],"structuredContent":{"n":[1,2,3]}}`)
	var out strings.Builder
	for _, test := range []struct {
		result json.RawMessage
		q      Query
	}{
		{lines, Query{}},
		{lines, Query{Offset: 4}},
		{lines, Query{Offset: 2, Limit: 3}},
		{lines, Query{Offset: 100}},
		{lines, Query{Grep: "t.o|n"}},
		{lines, Query{JSONPath: "$.content[1].resource.text.rows[1].n"}},
		{lines, Query{JSONPath: "$.content[?(@.text contains 'tw')].text"}},
		{lines, Query{JSONPath: "$..nothing"}},
		{lines, Query{JSONPath: "content"}},
		{onLong, Query{Grep: "needle"}},
		{onLong, Query{Grep: "before"}},
		{onLong, Query{Grep: "needle", Most: 100}},
		{onLong, Query{Offset: 7, Limit: 1}},
		{mixed, Query{JSONPath: "$.content[1:]"}},
		{mixed, Query{JSONPath: "$.content[*].data"}},
		{mixed, Query{JSONPath: "$.content[1,0]"}},
		{mixed, Query{JSONPath: "$.structuredContent.n"}},
		{json.RawMessage(`{"content":[],"structuredContent":{"n":1.0}}`), Query{}},
		{json.RawMessage(`{"content":[{"type":"image","data":"AAAA"}]}`), Query{}},
	} {
		q := test.q
		q.Tool, q.Handle = "discover_tool", "h"
		if q.Most == 0 {
			q.Most = 1000
		}
		answer, err := q.Read(test.result)
		if err == nil && !wire.Valid(answer) {
			t.Errorf("%+v: no JSON: %s", q, answer)
		}
		fmt.Fprintf(&out, "offset %d limit %d grep %q jsonpath %q\n%s %v\n\n", q.Offset, q.Limit, q.Grep, q.JSONPath, answer, err)
	}
	viewtest.Golden(t, "rest", strings.TrimSpace(out.String()))
}

// The pages of a text are the whole text, wherever it is cut.
func TestPagesAreTheText(t *testing.T) {
	text := strings.Repeat("a😀é\n", 50) + "end"
	result := json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, wire.Quote(text)))
	for limit := 1; limit < 40; limit++ {
		var got strings.Builder
		for offset := 0; offset < display.Units(text); {
			answer, err := (Query{Offset: offset, Limit: limit, Most: 1000}).Read(result)
			if err != nil {
				t.Fatal(err)
			}
			var shown string
			for item := range wire.Elements(wire.Get(answer, "content")) {
				shown, _ = wire.Text(wire.Get(item, "text"))
				break
			}
			got.WriteString(shown)
			offset += display.Units(shown)
		}
		if got.String() != text {
			t.Fatalf("limit %d: got %q", limit, got.String())
		}
	}
}

func TestWhatIsThereIsSaid(t *testing.T) {
	left := json.RawMessage(`{"content":[],"x":1.0}`)
	var out strings.Builder
	for _, whole := range []string{
		`{"content":[{"type":"text","text":"é😀"},{"type":"image","data":"AAAA"}],"structuredContent":{"a":1}}`,
		`{"content":[{"type":"image","data":"AAAA"},{"type":"audio","data":"AA"},{"type":"x"},{"type":"x"},{"type":"x"}]}`,
	} {
		fmt.Fprintf(&out, "%s\n", Append(left, Note(json.RawMessage(whole), "discover_tool", "h")))
	}
	viewtest.Golden(t, "rest_note", strings.TrimSpace(out.String()))
}
