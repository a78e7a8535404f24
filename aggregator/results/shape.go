package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// Cuts are always announced, and content that is not text is kept whole or removed.

// Shape applies the tool's render_mode and max_output_chars to a result. It returns the result itself
// if nothing changes. A cut leaves room for a Note, if one follows.
func Shape(result json.RawMessage, t *catalog.Tool, noted bool) (shaped json.RawMessage, cut bool) {
	content := wire.Get(result, "content")
	if len(content) == 0 || content[0] != '[' { // a task, or a question
		return result, false
	}
	o := output{limit: t.MaxOutputChars, most: t.MaxOutputChars, structured: wire.Get(result, "structuredContent")}
	for raw := range wire.Elements(content) {
		o.items = append(o.items, readItem(raw))
	}
	changed := false
	if t.RenderMode == schema.RenderText {
		changed = o.joinTexts()
	}
	if o.limit > 0 && o.chars() > o.limit {
		if noted {
			o.limit = max(o.limit-noteRoom, o.limit/2)
		}
		o.shorten()
		changed, cut = true, true
	}
	if !changed {
		return result, false
	}
	if o.structured == nil {
		result = wire.Delete(result, "structuredContent")
	}
	return wire.Set(result, "content", o.content()), cut
}

// An output is a result that is being shortened.
type output struct {
	most       int // characters that the config allows
	limit      int // the same, less the room to leave free
	items      []item
	structured json.RawMessage // nil if absent or removed
}

// An item is one of a result's contents.
type item struct {
	raw   json.RawMessage
	text  string          // of a text
	value json.RawMessage // JSON value of a text that is an object or array, and of a resource with a text: keeps its structure
	data  string          // description of the data of an image, a sound or a blob
	chars int
}

func readItem(raw json.RawMessage) item {
	i := item{raw: raw, chars: display.Units(raw)}
	text := func(of json.RawMessage, keys ...string) string {
		s, _ := wire.Text(wire.Get(of, keys...))
		return s
	}
	switch kind := text(raw, "type"); kind {
	case "text":
		i.text = text(raw, "text")
		i.chars, i.value = display.Units(i.text), structureOf(i.text)
		if i.text == "" {
			i.chars = 0
		}
	case "image", "audio":
		data := text(raw, "data")
		i.data, i.chars = strings.TrimSpace(kind+" "+text(raw, "mimeType")), len(data)
	case "resource":
		resource := wire.Get(raw, "resource")
		if blob := text(resource, "blob"); blob != "" {
			i.data, i.chars = strings.TrimSpace("resource "+text(resource, "uri")+" "+text(resource, "mimeType")), len(blob)
		} else if wire.IsObject(resource) {
			i.value, i.chars = resource, display.Units(resource)
		}
	}
	return i
}

// structureOf returns a text that is a JSON object or array as JSON, otherwise nil.
func structureOf(text string) json.RawMessage {
	trimmed := strings.TrimSpace(text)
	if trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') && wire.Valid([]byte(trimmed)) {
		return json.RawMessage(trimmed)
	}
	return nil
}

// chars returns the total size. Structured content that repeats the text is counted once.
func (o *output) chars() int {
	n := 0
	for _, i := range o.items {
		n += i.chars
	}
	if o.structured != nil && !o.repeats() {
		n += display.Units(o.structured)
	}
	return n
}

// repeats reports whether the structured content repeats the texts: it is one of them, or all of them,
// or an object with nothing else. Servers wrap the text of a tool like this: {"content": "…"},
// {"result": "…"}.
func (o *output) repeats() bool {
	says := []json.RawMessage{o.structured}
	n := 0
	for _, value := range wire.Members(o.structured) {
		if n++; n == 1 {
			says = append(says, value)
		}
	}
	if n > 1 {
		says = says[:1]
	}
	var texts []string
	for _, i := range o.items {
		if i.text != "" {
			texts = append(texts, i.text)
		}
	}
	for _, said := range says {
		if text, ok := wire.Text(said); ok && text != "" && (slices.Contains(texts, text) || text == strings.Join(texts, "\n")) {
			return true
		}
		if slices.ContainsFunc(o.items, func(i item) bool { return i.text != "" && i.value != nil && sameJSON(i.value, said) }) {
			return true
		}
		if len(texts) > 0 && slices.EqualFunc(slices.Collect(wire.Elements(said)), texts, equalText) {
			return true
		}
	}
	return false
}

func equalText(value json.RawMessage, text string) bool { return wire.EqualString(value, text) }

func sameJSON(a, b json.RawMessage) bool {
	var values [2]any
	for n, raw := range []json.RawMessage{a, b} {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&values[n]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// joinTexts joins all texts to one. It removes structured content, which hosts would show in place of
// the text.
func (o *output) joinTexts() bool {
	var texts []string
	var rest []item
	for _, i := range o.items {
		if i.text != "" {
			texts = append(texts, i.text)
		} else {
			rest = append(rest, i)
		}
	}
	if texts == nil || len(texts) == 1 && o.structured == nil {
		return false
	}
	joined := strings.Join(texts, "\n")
	o.items, o.structured = append([]item{{raw: TextItem(joined), text: joined, chars: display.Units(joined)}}, rest...), nil
	return true
}

// shorten reduces the output to its limit: it removes data, the largest first, and then joins and
// shortens the texts, keeping their structure.
func (o *output) shorten() {
	for o.chars() > o.limit {
		largest := -1
		for n, i := range o.items {
			if i.data != "" && (largest < 0 || i.chars > o.items[largest].chars) {
				largest = n
			}
		}
		if largest < 0 {
			break
		}
		gone := o.items[largest]
		note := fmt.Sprintf("[%s is left out: its %d characters are too many for max_output_chars, %d]", gone.data, gone.chars, o.most)
		o.items[largest] = item{raw: TextItem(note)}
	}
	if o.chars() <= o.limit {
		return
	}
	original := o.chars()
	var values []json.RawMessage
	var rest []item
	room := o.limit
	for _, i := range o.items {
		switch {
		case i.value != nil:
			values = append(values, i.value)
		case i.text != "":
			values = append(values, wire.Quote(i.text))
		default:
			rest = append(rest, i)
			room -= i.chars
		}
	}
	if o.structured != nil && !o.repeats() {
		values = append(values, o.structured)
	}
	o.structured = nil
	if values == nil {
		return
	}
	whole := values[0]
	if len(values) > 1 {
		whole = wire.Array(values)
	}
	const wrapper = len(`{"truncated":true,"original_chars":,"returned_chars":,"result":}`) + 2*8
	short := shortenJSON(whole, max(room-wrapper, 32))
	text := fmt.Sprintf(`{"truncated":true,"original_chars":%d,"returned_chars":%d,"result":%s}`, original, display.Units(short), short)
	o.items = append([]item{{raw: TextItem(text)}}, rest...)
}

func (o *output) content() json.RawMessage {
	var all []json.RawMessage
	for _, i := range o.items {
		all = append(all, i.raw)
	}
	return wire.Array(all)
}

// Bounds below which a string or a list is not made shorter.
const (
	minString = 40
	minList   = 2
)

// shortenJSON returns a JSON value in at most limit characters, with its structure if possible: first
// the longest strings are cut, all to one length, then the longest lists. Otherwise it returns a
// string with the beginning of the value.
func shortenJSON(raw json.RawMessage, limit int) json.RawMessage {
	fits := func(longestString, longestList int) []byte {
		s := shortening{longestString: longestString, longestList: longestList, room: limit}
		s.value(raw)
		if s.room < 0 {
			return nil
		}
		return s.out
	}
	if short := largest(minString, limit, func(n int) []byte { return fits(n, len(raw)) }); short != nil {
		return short
	}
	if short := largest(minList, limit, func(n int) []byte { return fits(minString, n) }); short != nil {
		return short
	}
	text, isText := wire.Text(raw)
	if !isText {
		text = string(raw)
	}
	return largest(0, limit, func(n int) []byte {
		if quoted := wire.Quote(cutString(text, n)); display.Units(quoted) <= limit || n == 0 {
			return quoted
		}
		return nil
	})
}

// largest returns the result of try for the largest number from least to most for which it is not nil,
// nil if there is none.
func largest(least, most int, try func(n int) []byte) json.RawMessage {
	best := try(least)
	if best == nil {
		return nil
	}
	for least < most {
		middle := (least + most + 1) / 2
		if got := try(middle); got != nil {
			best, least = got, middle
		} else {
			most = middle - 1
		}
	}
	return best
}

// A shortening writes a value with limited strings and lists. It stops when there is no room.
type shortening struct {
	longestString, longestList int

	out  []byte
	room int // in characters; negative if it was not enough
}

func (s *shortening) write(part []byte) {
	s.room -= display.Units(part)
	s.out = append(s.out, part...)
}

func (s *shortening) value(raw json.RawMessage) {
	switch {
	case s.room < 0:
	case len(raw) > 0 && raw[0] == '"':
		if utf8.RuneCount(raw) > s.longestString {
			if text, ok := wire.Text(raw); ok {
				raw = wire.Quote(cutString(text, s.longestString))
			}
		}
		s.write(raw)
	case wire.IsObject(raw):
		var keys, values []json.RawMessage
		for key, value := range wire.Members(raw) {
			keys, values = append(keys, key), append(values, value)
		}
		s.list('{', '}', values, func(n int) []byte { return append(slices.Clone(keys[n]), ':') }, func(left int) string {
			return fmt.Sprintf(`"…":"%d members are left out"`, left)
		})
	case len(raw) > 0 && raw[0] == '[':
		s.list('[', ']', slices.Collect(wire.Elements(raw)), func(int) []byte { return nil }, func(left int) string {
			return fmt.Sprintf(`"… %d elements are left out …"`, left)
		})
	default:
		s.write(raw)
	}
}

// list writes the elements of an array or the members of an object. If there are too many, it
// writes the first and the last ones, with the number of the omitted ones between them.
func (s *shortening) list(open, end byte, values []json.RawMessage, key func(n int) []byte, left func(n int) string) {
	s.write([]byte{open})
	head, tail := len(values), len(values)
	if len(values) > s.longestList+1 {
		head, tail = (s.longestList+1)/2, len(values)-s.longestList/2
	}
	for n := 0; n < len(values) && s.room >= 0; n++ {
		if n > 0 {
			s.write([]byte{','})
		}
		if n == head && head < tail {
			s.write([]byte(left(tail - head)))
			n = tail - 1
			continue
		}
		s.write(key(n))
		s.value(values[n])
	}
	s.write([]byte{end})
}

// cutString shortens a text to about so many characters, and says how many are missing.
func cutString(text string, most int) string {
	head := display.Prefix(text, most)
	if head == text {
		return text
	}
	return head + fmt.Sprintf("… (%d more characters)", display.Units(text[len(head):]))
}
