package results

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// A result within its limit is not changed.
func TestResultsWithinTheirLimitAreNotTouched(t *testing.T) {
	const odd = `{"content":[{"type":"text","text":"a\u00e9","x":1.0},{"type":"hologram","n":9007199254740993}],"structuredContent":{"n":1e2},"_meta":{"x":1.0}}`
	for name, tool := range map[string]catalog.Tool{
		"json within":  {MaxOutputChars: 1000},
		"one text":     {RenderMode: schema.RenderJSON, MaxOutputChars: 1000},
		"a raw result": {RenderMode: schema.RenderRaw, MaxOutputChars: 1},
	} {
		if tool.RenderMode == schema.RenderRaw {
			if tool.Shaped() {
				t.Errorf("%s: shaped", name)
			}
			continue
		}
		if got, _ := Shape(json.RawMessage(odd), &tool, false); string(got) != odd {
			t.Errorf("%s: got %s", name, got)
		}
	}
	task := json.RawMessage(`{"task":{"taskId":"` + strings.Repeat("x", 100) + `"}}`)
	if got, _ := Shape(task, &catalog.Tool{MaxOutputChars: 10}, false); string(got) != string(task) {
		t.Errorf("got %s", got)
	}
}

func withText(text string) json.RawMessage {
	return fmt.Appendf(nil, `{"content":[%s],"isError":false,"_meta":{"x":1.0}}`, TextItem(text))
}

func TestLongResultsAreShortenedWithTheirStructure(t *testing.T) {
	long := strings.Repeat("word ", 100)
	numbers := make([]string, 200)
	for n := range numbers {
		numbers[n] = fmt.Sprint(n)
	}
	for _, tt := range []struct {
		name   string
		tool   catalog.Tool
		result string
		want   []string // parts of the answer
		lacks  []string
	}{
		{"the longest strings first", catalog.Tool{MaxOutputChars: 300},
			string(withText(`{"id":9007199254740993,"name":"short","body":"` + long + `","f":1.0}`)),
			[]string{`{\"truncated\":true,\"original_chars\":`, `\"result\":{\"id\":9007199254740993,\"name\":\"short\",\"body\":\"word word`, `more characters)\",\"f\":1.0}`, `"_meta":{"x":1.0}`}, nil},
		{"then long lists", catalog.Tool{MaxOutputChars: 300}, string(withText(`{"all":[` + strings.Join(numbers, ",") + `],"last":true}`)),
			[]string{`\"result\":{\"all\":[0,1,2`, `elements are left out …\",`, `,198,199],\"last\":true}`}, nil},
		{"a plain text", catalog.Tool{MaxOutputChars: 200}, string(withText(long)), []string{`\"original_chars\":500,`, `\"result\":\"word word`, "more characters)"}, nil},
		{"two texts", catalog.Tool{MaxOutputChars: 300}, `{"content":[` + string(TextItem(long)) + `,{"type":"resource","resource":{"uri":"x://y","text":"` + long + `"}}]}`,
			[]string{`\"result\":[\"word`, `{\"uri\":\"x://y\",\"text\":\"word`}, nil},
		{"an image is dropped whole", catalog.Tool{MaxOutputChars: 300}, `{"content":[{"type":"text","text":"See:"},{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("A", 400) + `"},{"type":"resource_link","uri":"x://y","name":"y"}]}`,
			[]string{`{"type":"text","text":"See:"}`, `[image image/png is left out: its 400 characters are too many for max_output_chars, 300]`, `"x://y"`}, []string{"AAAA", "truncated"}},
		{"a small image stays when the text is shortened", catalog.Tool{MaxOutputChars: 400}, `{"content":[` + string(TextItem(long)) + `,{"type":"resource","resource":{"uri":"x://y","blob":"` + strings.Repeat("A", 450) + `"}}]}`,
			[]string{`\"truncated\":true`, "[resource x://y is left out: its 450 characters"}, []string{"AAAA"}},
		{"what is structured is no text twice", catalog.Tool{MaxOutputChars: 120}, `{"content":[{"type":"text","text":"{\"b\": [1, 2], \"a\": \"` + strings.Repeat("x", 80) + `\"}"}],"structuredContent":{"a":"` + strings.Repeat("x", 80) + `","b":[1,2]}}`,
			[]string{`"structuredContent"`}, []string{"truncated"}},
		{"and is not left beside a shortened text", catalog.Tool{MaxOutputChars: 200}, `{"content":[{"type":"text","text":"{\"a\":\"` + strings.Repeat("x", 300) + `\"}"}],"structuredContent":{"a":"` + strings.Repeat("x", 300) + `"}}`,
			[]string{`\"truncated\":true`}, []string{`"structuredContent"`}},
		{"structure that the text does not have counts", catalog.Tool{MaxOutputChars: 200}, `{"content":[{"type":"text","text":"done"}],"structuredContent":{"a":"` + strings.Repeat("x", 300) + `"}}`,
			[]string{`\"result\":[\"done\",{\"a\":\"xxx`}, []string{`"structuredContent"`}},
		{"text joins", catalog.Tool{RenderMode: schema.RenderText}, `{"content":[{"type":"text","text":"a"},{"type":"image","data":"AA","mimeType":"image/png"},{"type":"text","text":"b"}],"structuredContent":{}}`,
			[]string{`[{"type":"text","text":"a\nb"},{"type":"image","data":"AA","mimeType":"image/png"}]`}, []string{`"structuredContent"`}},
		{"text that is too long", catalog.Tool{RenderMode: schema.RenderText, MaxOutputChars: 200}, `{"content":[` + string(TextItem(`{"a":1}`)) + "," + string(TextItem(long)) + `]}`,
			[]string{`\"result\":\"{\\\"a\\\":1}\\nword`}, nil},
		{"nothing but a deep structure", catalog.Tool{MaxOutputChars: 150}, string(withText(strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60))), []string{`\"result\":\"{\\\"a\\\":`, "more characters)"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shaped, _ := Shape(json.RawMessage(tt.result), &tt.tool, false)
			got := string(shaped)
			if !json.Valid([]byte(got)) {
				t.Fatalf("no JSON: %s", got)
			}
			for item := range wire.Elements(wire.Get(shaped, "content")) {
				if text, _ := wire.Text(wire.Get(item, "text")); tt.tool.MaxOutputChars > 0 && display.Units(text) > tt.tool.MaxOutputChars {
					t.Errorf("%d characters of %d: %s", display.Units(text), tt.tool.MaxOutputChars, text)
				}
			}
			for _, part := range tt.want {
				if !strings.Contains(got, part) {
					t.Errorf("no %s in\n%s", part, got)
				}
			}
			for _, part := range tt.lacks {
				if strings.Contains(got, part) {
					t.Errorf("%s is in\n%s", part, got)
				}
			}
		})
	}
}

// Any shortened result is JSON, fits the limit, and says that it was cut.
func TestShortenedResultsFit(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return rapid.OneOf(rapid.String().AsAny(), rapid.Int().AsAny(), rapid.Bool().AsAny())
		}
		return rapid.OneOf(rapid.String().AsAny(), rapid.SliceOfN(value(depth-1), 0, 30).AsAny(), rapid.MapOfN(rapid.String(), value(depth-1), 0, 12).AsAny())
	}
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(value(3).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		limit := rapid.IntRange(200, 2000).Draw(t, "limit")
		got, _ := Shape(withText(string(raw)), &catalog.Tool{MaxOutputChars: limit}, false)
		var content []struct{ Text string }
		if err := json.Unmarshal(wire.Get(got, "content"), &content); err != nil || len(content) != 1 {
			t.Fatalf("%v in %s", err, got)
		}
		if n := display.Units(content[0].Text); n > limit {
			t.Fatalf("%d characters, limit %d: %s", n, limit, content[0].Text)
		}
		if display.Units(raw) > limit != strings.HasPrefix(content[0].Text, `{"truncated":true,`) {
			t.Fatalf("limit %d of %d: %s", limit, display.Units(raw), content[0].Text)
		}
		if diff := cmp.Diff(true, json.Valid([]byte(content[0].Text)) || display.Units(raw) <= limit); diff != "" {
			t.Fatal(content[0].Text)
		}
	})
}

// A result of exactly its limit is not cut, one of a character more is.
func TestLimitsAreMet(t *testing.T) {
	image := func(size int) string {
		return `{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("A", size) + `"}`
	}
	text := func(size int) string { return string(TextItem(strings.Repeat("x", size))) }
	for _, tt := range []struct {
		items []string
		limit int
		kept  []int // the items that are unchanged
	}{
		{[]string{text(300)}, 300, []int{0}},
		{[]string{text(300)}, 299, nil},
		{[]string{image(100), text(50), image(200)}, 350, []int{0, 1, 2}},
		{[]string{image(100), text(50), image(200)}, 349, []int{0, 1}},
		{[]string{image(100), text(50), image(200)}, 150, []int{0, 1}}, // the largest is enough
		{[]string{image(100), text(50), image(200)}, 149, []int{1}},
		{[]string{image(200), text(50), image(100)}, 149, []int{1}},
		{[]string{image(200), text(50), image(100)}, 150, []int{1, 2}},
		{[]string{image(200), text(50)}, 50, []int{1}},
		{[]string{image(200), text(50)}, 49, nil},
		{[]string{image(200)}, 100, nil},
	} {
		result := json.RawMessage(`{"content":[` + strings.Join(tt.items, ",") + `]}`)
		shaped, cut := Shape(result, &catalog.Tool{MaxOutputChars: tt.limit}, false)
		if cut != (len(tt.kept) < len(tt.items)) || !cut && string(shaped) != string(result) {
			t.Errorf("limit %d of %.60s…: cut is %t", tt.limit, result, cut)
		}
		for n, item := range tt.items {
			if kept := strings.Contains(string(shaped), item); kept != slices.Contains(tt.kept, n) {
				t.Errorf("limit %d: item %d is kept: %t, in %s", tt.limit, n, kept, shaped)
			}
		}
	}
}

// A value that fits is not changed, and what is left out of a list is counted: the first and the last
// elements stay, equally many.
func TestListsAreShortenedInTheMiddle(t *testing.T) {
	var all []string
	for n := range 100 {
		all = append(all, fmt.Sprint(n))
	}
	list := json.RawMessage("[" + strings.Join(all, ",") + "]")
	if got := shortenJSON(list, len(list)); string(got) != string(list) {
		t.Errorf("got %s", got)
	}
	last := 0
	for limit := len(list) - 1; limit >= 60; limit-- {
		short := shortenJSON(list, limit)
		if display.Units(short) > limit {
			t.Fatalf("limit %d: %s", limit, short)
		}
		var got []any
		if err := json.Unmarshal(short, &got); err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(got, func(v any) bool { _, ok := v.(string); return ok })
		if at < 0 {
			t.Fatalf("limit %d: nothing is said to be left out: %s", limit, short)
		}
		head, tail := got[:at], got[at+1:]
		if want := fmt.Sprintf("… %d elements are left out …", 100-len(head)-len(tail)); got[at] != want {
			t.Errorf("limit %d: %s of %d and %d elements", limit, got[at], len(head), len(tail))
		}
		if more := len(head) - len(tail); more != 0 && more != 1 || len(head) == 0 {
			t.Errorf("limit %d: %d elements and %d", limit, len(head), len(tail))
		}
		for n := range head {
			if head[n] != float64(n) || n < len(tail) && tail[len(tail)-1-n] != float64(99-n) {
				t.Errorf("limit %d: got %s", limit, short)
			}
		}
		if limit < len(list)-1 && len(got) > last {
			t.Errorf("limit %d has more elements than a higher one", limit)
		}
		last = len(got)
	}
	three := json.RawMessage(`["` + strings.Repeat("a", minString) + `","` + strings.Repeat("b", minString) + `","` + strings.Repeat("c", minString) + `"]`)
	if got := shortenJSON(three, len(three)-1); strings.Contains(string(got), " 1 elements") {
		t.Errorf("one element is replaced by a text: %s", got)
	}
}
