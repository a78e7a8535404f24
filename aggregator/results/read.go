package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/jsonquery"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Query requests a part of a result that was cut: the text from an offset on, the places where a
// pattern matches, or the result of a JSONPath query.
type Query struct {
	Tool, Handle string // for the next query
	Most         int    // UTF-16 units of one answer

	JSONPath, Grep string
	Offset, Limit  int // in UTF-16 units; a Limit of 0 is Most
}

// contents describes a result: "text of 103000 characters, image/png of 41000".
func contents(result json.RawMessage) string {
	var said []string
	for item := range wire.Elements(wire.Get(result, "content")) {
		if len(said) == 4 {
			said = append(said, "more")
			break
		}
		kind, _ := wire.Text(wire.Get(item, "type"))
		size := len(item)
		if text, ok := itemText(item); ok {
			size = display.Units(text)
		} else if data, ok := wire.Text(wire.Get(item, "data")); ok {
			size = len(data)
		}
		said = append(said, fmt.Sprintf("%s of %d characters", kind, size))
	}
	if structured := wire.Get(result, "structuredContent"); structured != nil {
		said = append(said, fmt.Sprintf("structuredContent of %d", display.Units(string(structured))))
	}
	return strings.Join(said, ", ")
}

// itemText returns the text of a content, or of the resource in it.
func itemText(item json.RawMessage) (string, bool) {
	if text, ok := wire.Text(wire.Get(item, "text")); ok {
		return text, true
	}
	return wire.Text(wire.Get(item, "resource", "text"))
}

// textOf returns the texts of a result, a line each, or its structured content if it has none.
func textOf(result json.RawMessage) string {
	var texts []string
	for item := range wire.Elements(wire.Get(result, "content")) {
		if text, ok := itemText(item); ok {
			texts = append(texts, text)
		}
	}
	if texts == nil {
		return string(wire.Get(result, "structuredContent"))
	}
	return strings.Join(texts, "\n")
}

// Read returns the requested part of a result, as the result of a tool.
func (q Query) Read(result json.RawMessage) (json.RawMessage, error) {
	switch {
	case q.JSONPath != "":
		return q.selected(result)
	case q.Grep != "":
		return q.matches(textOf(result))
	}
	return q.page(textOf(result))
}

// page returns the text from the offset on.
func (q Query) page(text string) (json.RawMessage, error) {
	total := display.Units(text)
	if total == 0 {
		return nil, fmt.Errorf(`the result has no text: %s {"result": %s, "jsonpath": "$.content[0]"} takes parts of it`, q.Tool, wire.Quote(q.Handle))
	}
	if q.Offset >= total {
		return nil, fmt.Errorf("offset %d is beyond the end: the text has %d characters", q.Offset, total)
	}
	limit := q.Most
	if q.Limit > 0 {
		limit = min(q.Limit, q.Most)
	}
	skipped := display.Prefix(text, q.Offset)
	shown := display.Prefix(text[len(skipped):], limit)
	if shown == "" { // the limit is half of a surrogate pair
		shown = display.Prefix(text[len(skipped):], 2)
	}
	from := display.Units(skipped)
	end := from + display.Units(shown)
	if end >= total {
		return Text(shown), nil
	}
	return Text(shown, fmt.Sprintf(`[%d to %d of %d characters. Go on with %s {"result": %s, "offset": %d}.]`, from, end, total, q.Tool, wire.Quote(q.Handle), end)), nil
}

// The parts of a line that are shown for a match.
const (
	longLine  = 400 // bytes; of a longer line, only the text around the match is shown
	aroundHit = 150
)

// matches returns the places where the pattern matches, each with its offset.
func (q Query) matches(text string) (json.RawMessage, error) {
	pattern, err := regexp.Compile(q.Grep)
	if err != nil {
		return nil, fmt.Errorf(`"grep": %w`, err)
	}
	var out strings.Builder
	found, shown, offset := 0, 0, 0
	for line := range strings.Lines(text) {
		for _, hit := range hits(pattern, strings.TrimSuffix(line, "\n")) {
			found++
			entry := fmt.Sprintf("%d: %s\n", offset+display.Units(line[:hit[0]]), line[hit[0]:hit[1]])
			if shown == found-1 && display.Units(out.String())+display.Units(entry) <= q.Most {
				out.WriteString(entry)
				shown++
			}
		}
		offset += display.Units(line)
	}
	switch {
	case found == 0:
		return Text(fmt.Sprintf("No match in %d characters.", offset)), nil
	case shown == 0:
		return nil, fmt.Errorf("the first match is longer than one answer: %s {\"result\": %s, \"offset\": 0} reads the text", q.Tool, wire.Quote(q.Handle))
	}
	note := fmt.Sprintf("[%d of %d found, each with its offset. ", shown, found)
	if shown < found {
		note += "A narrower pattern finds fewer. "
	}
	return Text(strings.TrimSuffix(out.String(), "\n"), note+fmt.Sprintf(`%s {"result": %s, "offset": …} reads from there.]`, q.Tool, wire.Quote(q.Handle))), nil
}

// hits returns the parts of a line to show: the whole line, or if it is long, the text around each
// match.
func hits(pattern *regexp.Regexp, line string) [][2]int {
	if len(line) <= longLine {
		if pattern.MatchString(line) {
			return [][2]int{{0, len(line)}}
		}
		return nil
	}
	var parts [][2]int
	for _, m := range pattern.FindAllStringIndex(line, -1) {
		from, to := max(m[0]-aroundHit, 0), min(m[0]+2*aroundHit, len(line))
		for from > 0 && line[from]&0xC0 == 0x80 {
			from--
		}
		for to < len(line) && line[to]&0xC0 == 0x80 {
			to++
		}
		if n := len(parts); n == 0 || from >= parts[n-1][1] {
			parts = append(parts, [2]int{from, to})
		}
	}
	return parts
}

// selected returns the result of a query over the result, whose JSON texts are parsed. Selected
// images, sounds and blobs are returned whole.
func (q Query) selected(result json.RawMessage) (json.RawMessage, error) {
	query, err := jsonquery.Parse(q.JSONPath)
	if err != nil {
		return nil, fmt.Errorf("%s is not a JSONPath query: %w", wire.Quote(display.Asked(q.JSONPath)), err)
	}
	found := query.Find(withParsedTexts(result))
	if len(found) > 0 && isData(found[0].Raw) {
		var items []json.RawMessage
		for _, item := range found {
			if !isData(item.Raw) {
				return nil, errors.New("images, sounds and blobs cannot be returned with other values: select them separately")
			}
			items = append(items, item.Raw)
		}
		return Of(items), nil
	}
	answer, _, note, err := query.Within(found, q.Most)
	if err != nil {
		return nil, fmt.Errorf(`%w, or read the text by "offset"`, err)
	}
	return Text(string(answer), note), nil
}

// withParsedTexts returns a result in which each text that is a JSON object or array is parsed.
func withParsedTexts(result json.RawMessage) json.RawMessage {
	var edits []wire.Edit
	for item := range wire.Elements(wire.Get(result, "content")) {
		for _, path := range [][]string{{"text"}, {"resource", "text"}} {
			at := wire.Find(item, path...)
			text, _ := wire.Text(at.In(item))
			if value := structureOf(text); value != nil {
				at.Off += wire.Locate(result, item).Off
				edits = append(edits, wire.Edit{Span: at, With: value})
			}
		}
	}
	return wire.Replace(result, edits...)
}

// isData reports whether a value is a content that is not text.
func isData(item json.RawMessage) bool {
	kind, _ := wire.Text(wire.Get(item, "type"))
	return (kind == "image" || kind == "audio") && wire.Get(item, "data") != nil || kind == "resource" && wire.Get(item, "resource", "blob") != nil
}
