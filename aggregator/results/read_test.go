package results

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/mcptest/viewtest"
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

func answerText(t *testing.T, answer json.RawMessage) (texts []string) {
	t.Helper()
	for item := range wire.Elements(wire.Get(answer, "content")) {
		text, ok := wire.Text(wire.Get(item, "text"))
		if !ok {
			t.Fatalf("got %s", answer)
		}
		texts = append(texts, text)
	}
	return texts
}

// The end of a text is no place to read on from.
func TestOffsetsEndBeforeTheText(t *testing.T) {
	result := Text("four")
	for offset, ok := range map[int]bool{3: true, 4: false, 5: false} {
		if answer, err := (Query{Offset: offset, Most: 10}).Read(result); (err == nil) != ok {
			t.Errorf("offset %d: %s, %v", offset, answer, err)
		}
	}
}

// Of long lines the text around each match is shown, in whole characters; short ones are shown whole.
func TestMatchesInLongLines(t *testing.T) {
	for _, length := range []int{longLine - 1, longLine, longLine + 1, 10 * longLine} {
		line := strings.Repeat("x", length-6) + "needle"
		answer, err := (Query{Grep: "needle", Most: 10_000}).Read(Text("first\n" + line + "\nlast"))
		if err != nil {
			t.Fatal(err)
		}
		found := answerText(t, answer)[0]
		if whole := found == "6: "+line; whole != (length <= longLine) || !strings.HasSuffix(found, "needle") || len(found) > longLine+10 {
			t.Errorf("a line of %d: got %q", length, found)
		}
	}
	for shift := range 6 {
		for _, line := range []string{strings.Repeat("é", 500) + strings.Repeat("y", shift) + "needle" + strings.Repeat("z", shift) + strings.Repeat("é😀", 500), "needle" + strings.Repeat("é", 500)} {
			answer, err := (Query{Grep: "needle", Most: 10_000}).Read(Text(line))
			if err != nil {
				t.Fatal(err)
			}
			at, found, _ := strings.Cut(answerText(t, answer)[0], ": ")
			before, _, ok := strings.Cut(line, found)
			if !ok || !utf8.ValidString(found) || strings.ContainsRune(found, utf8.RuneError) || fmt.Sprint(display.Units(before)) != at || len(found) > 3*aroundHit+12 {
				t.Errorf("shift %d: got %q at %s", shift, found, at)
			}
		}
	}
	twice := strings.Repeat("x", longLine) + "needle" + strings.Repeat("x", 3*longLine) + "needle, needle"
	answer, err := (Query{Grep: "needle", Most: 10_000}).Read(Text(twice))
	if texts := answerText(t, answer); err != nil || strings.Count(texts[0], "\n") != 1 || !strings.Contains(texts[1], "2 of 2 found") {
		t.Errorf("matches far from each other, and near: %q, %v", texts, err)
	}
}

// As many matches are shown as fit.
func TestMatchesFillTheAnswer(t *testing.T) {
	for most, shown := range map[int]int{7: 0, 8: 1, 15: 1, 16: 2, 100: 3} {
		answer, err := (Query{Grep: "a", Most: most}).Read(Text("aaaa\naaaa\naaaa")) // "0: aaaa\n", "5: aaaa\n", "10: aaaa\n"
		if shown == 0 {
			if err == nil {
				t.Errorf("most %d: %s", most, answer)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if texts := answerText(t, answer); strings.Count(texts[0], "aaaa") != shown || !strings.Contains(texts[1], fmt.Sprintf("%d of 3 found", shown)) {
			t.Errorf("most %d: got %q", most, texts)
		}
	}
}

// Images, sounds and blobs are selected as what they are.
func TestDataIsSelectedWhole(t *testing.T) {
	for _, item := range []string{
		`{"type":"image","data":"AAAA","mimeType":"image/png"}`, `{"type":"audio","data":"AAAA","mimeType":"audio/wav"}`,
		`{"type":"resource","resource":{"uri":"x:y","blob":"AA=="}}`,
	} {
		result := json.RawMessage(`{"content":[` + item + `]}`)
		if answer, err := (Query{JSONPath: "$.content[0]", Most: 1000}).Read(result); err != nil || string(answer) != string(result) {
			t.Errorf("got %s, %v", answer, err)
		}
	}
	for _, item := range []string{`{"type":"video","data":"AAAA"}`, `{"type":"image"}`, `{"type":"resource","resource":{"uri":"x:y","text":"AA=="}}`} {
		answer, err := (Query{JSONPath: "$.content[0]", Most: 1000}).Read(json.RawMessage(`{"content":[` + item + `]}`))
		if err != nil || !wire.EqualString(wire.Get(answer, "content", "0", "type"), "text") && len(answerText(t, answer)) == 0 {
			t.Errorf("%s: got %s, %v", item, answer, err)
		}
	}
}
