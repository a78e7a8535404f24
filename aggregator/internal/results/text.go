// Package results is about the results of tools, as bytes: those of our own tools, and what
// is changed in those of servers. A result stays the bytes that came unless the config limits
// or renders it (shape.go). What is cut is kept, and can be read on (store.go, read.go).
package results

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Text returns the result of a tool that answers with texts, of which empty ones are left
// out.
func Text(texts ...string) json.RawMessage {
	out := []byte(`{"content":[`)
	for _, text := range texts {
		if text == "" && len(texts) > 1 {
			continue
		}
		if out[len(out)-1] != '[' {
			out = append(out, ',')
		}
		out = append(out, textItem(text)...)
	}
	return append(out, "]}"...)
}

// Error returns a result that tells the model what went wrong.
func Error(text string) json.RawMessage {
	return wire.Set(Text(text), "isError", []byte("true"))
}

func textItem(text string) json.RawMessage {
	return append(wire.AppendQuote([]byte(`{"type":"text","text":`), text), '}')
}

// Append adds a text to the contents of a result.
func Append(result json.RawMessage, text string) json.RawMessage {
	content := wire.Find(result, "content")
	list := content.In(result)
	if len(list) < 2 || list[0] != '[' {
		return result
	}
	item := append(textItem(text), ']')
	for range wire.Elements(list) {
		item = append([]byte{','}, item...)
		break
	}
	return wire.Replace(result, wire.Edit{Span: wire.Span{Off: content.Off + content.Len - 1, Len: 1}, With: item})
}

// maxComplaint is the longest result, in bytes, in which a complaint is looked for: large
// results are not read again on their way.
const maxComplaint = 16 << 10

// complaint matches how servers say that an input does not fit, those of the
// official SDKs first: some do so as a result, not as the error -32602.
var complaint = lazyregexp.New(`(?i)-32602|validation error|validation failed|invalid (arguments?|params?|parameters?|input)\b|required property|missing required|invalid_type|unexpected keyword argument|unrecognized_keys`)

// Complains reports whether a result says that the input of the call did not fit. outline
// is of the result, and may be nil.
func Complains(result json.RawMessage, outline *wire.Outline) bool {
	if len(result) > maxComplaint || string(outline.Get(result, "isError")) != "true" {
		return false
	}
	list := wire.Get(result, "content")
	return complaint().Match(list) && len(list) >= 2 && list[0] == '['
}

// Note is added to a result that was cut: what the whole has, and how tool reads on in it.
func Note(whole json.RawMessage, tool, handle string) string {
	quoted := wire.Quote(handle)
	way := tool + " "
	if strings.TrimSpace(textOf(whole)) != "" {
		way = fmt.Sprintf(`%s {"result": %s, "offset": 0} reads its text, {"result": %[2]s, "grep": "words"} finds in it, `, tool, quoted)
	}
	return fmt.Sprintf(`[The whole result (%s) is kept for an hour: %s{"result": %s, "jsonpath": "$.content[0]"} takes parts of it.]`, contents(whole), way, quoted)
}

// NoteRoom is about how many UTF-16 units a Note has.
const NoteRoom = 320

// OfTexts returns a result with its texts as change leaves them. What is no text stays
// behind them.
func OfTexts(result json.RawMessage, change func(texts json.RawMessage) json.RawMessage) json.RawMessage {
	texts, rest := []byte{'['}, []byte{'['}
	for item := range wire.Elements(wire.Get(result, "content")) {
		to := &rest
		if wire.EqualString(wire.Get(item, "type"), "text") {
			to = &texts
		}
		if len(*to) > 1 {
			*to = append(*to, ',')
		}
		*to = append(*to, item...)
	}
	changed := change(wire.Set(result, "content", append(texts, ']')))
	if len(rest) == 1 {
		return changed
	}
	all := append([]byte{}, wire.Get(changed, "content")...)
	if all = all[:len(all)-1]; len(all) > 1 {
		all = append(all, ',')
	}
	return wire.Set(changed, "content", append(append(all, rest[1:]...), ']'))
}
