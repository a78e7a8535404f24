// Package results builds and changes results of tools, as bytes. A result is forwarded unchanged
// unless the config limits or renders it (shape.go). A result that was cut is stored, and can be
// read on (store.go, read.go).
package results

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// Text returns a tool result with these texts, without empty ones.
func Text(texts ...string) json.RawMessage {
	var items []json.RawMessage
	for _, text := range texts {
		if text != "" || len(texts) == 1 {
			items = append(items, TextItem(text))
		}
	}
	return Of(items)
}

// Of returns a tool result with these contents.
func Of[E ~[]byte](contents []E) json.RawMessage {
	return fmt.Appendf(nil, `{"content":%s}`, wire.Array(contents))
}

// Refusal returns a result that reports to the model that a call was refused and reached no server.
func Refusal(text string) json.RawMessage { return Error(NotCalled(text)) }

// NotCalled adds to the first line of a refusal that no server was called.
func NotCalled(text string) string {
	first, rest, found := strings.Cut(text, "\n")
	first += " (outcome not_sent: nothing was called)"
	if found {
		return first + "\n" + rest
	}
	return first
}

// Error returns a result that reports an error to the model.
func Error(text string) json.RawMessage {
	return wire.Set(Text(text), "isError", []byte("true"))
}

// TextItem returns a content that is a text.
func TextItem(text string) json.RawMessage {
	return append(wire.AppendQuote([]byte(`{"type":"text","text":`), text), '}')
}

// Append adds a text to the contents of a result.
func Append(result json.RawMessage, text string) json.RawMessage {
	content := wire.Find(result, "content")
	list := content.In(result)
	if len(list) < 2 || list[0] != '[' {
		return result
	}
	item := append(TextItem(text), ']')
	for range wire.Elements(list) {
		item = append([]byte{','}, item...)
		break
	}
	return wire.Replace(result, wire.Edit{Span: wire.Span{Off: content.Off + content.Len - 1, Len: 1}, With: item})
}

// maxInvalidInput is the largest result, in bytes, that is searched for a complaint: large results are
// not scanned again.
const maxInvalidInput = 16 << 10

// invalidInput matches messages of servers about an invalid input, those of the official SDKs first.
// Some servers send them as a result, not as the error -32602.
var invalidInput = lazyregexp.New(`(?i)-32602|validation error|validation failed|invalid (arguments?|params?|parameters?|input)\b|required property|missing required|invalid_type|unexpected keyword argument|unrecognized_keys`)

// ReportsInvalidInput reports whether a result says that the input of the call was invalid. outline describes the
// result, and may be nil.
func ReportsInvalidInput(result json.RawMessage, outline *wire.Outline) bool {
	if len(result) > maxInvalidInput || string(outline.Get(result, "isError")) != "true" {
		return false
	}
	list := wire.Get(result, "content")
	return invalidInput().Match(list) && len(list) >= 2 && list[0] == '['
}

// Note is added to a result that was cut: it describes the whole, and how tool reads on in it.
func Note(whole json.RawMessage, tool, handle string) string {
	quoted := wire.Quote(handle)
	way := tool + " "
	if strings.TrimSpace(textOf(whole)) != "" {
		way = fmt.Sprintf(`%s {"result": %s, "offset": 0} reads its text, {"result": %[2]s, "grep": "words"} finds in it, `, tool, quoted)
	}
	return fmt.Sprintf(`[The whole result (%s) is kept for an hour: %s{"result": %s, "jsonpath": "$.content[0]"} takes parts of it.]`, contents(whole), way, quoted)
}

// noteRoom is the approximate size of a Note, in UTF-16 units.
const noteRoom = 320

// OfTexts returns a result with its texts replaced by change. Other content follows them.
func OfTexts(result json.RawMessage, change func(texts json.RawMessage) json.RawMessage) json.RawMessage {
	var texts, rest []json.RawMessage
	for item := range wire.Elements(wire.Get(result, "content")) {
		if wire.EqualString(wire.Get(item, "type"), "text") {
			texts = append(texts, item)
		} else {
			rest = append(rest, item)
		}
	}
	changed := change(wire.Set(result, "content", wire.Array(texts)))
	if rest == nil {
		return changed
	}
	all := slices.Collect(wire.Elements(wire.Get(changed, "content")))
	return wire.Set(changed, "content", wire.Array(append(all, rest...)))
}

// Limits reports whether a config limits some results.
func Limits(cfg *schema.Config) bool {
	return cfg.Catalog.MaxResultChars > 0 || cfg.ExposesScripts() || slices.ContainsFunc(cfg.Servers, func(s schema.Server) bool {
		if s.MaxOutputChars > 0 {
			return true
		}
		for _, o := range s.ToolOverrides {
			if o.MaxOutputChars != nil && *o.MaxOutputChars > 0 {
				return true
			}
		}
		return false
	})
}

// Overrides returns the overrides of an entry with limits of results reduced to at most most
// characters, unless most is 0.
func Overrides(of map[string]schema.ToolOverride, most int) map[string]schema.ToolOverride {
	all := maps.Clone(of)
	for tool, o := range all {
		if o.MaxOutputChars != nil {
			o.MaxOutputChars = new(LowerLimit(*o.MaxOutputChars, most))
			all[tool] = o
		}
	}
	return all
}

// LowerLimit returns the lower one of two limits, where 0 means no limit.
func LowerLimit(a, b int) int {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
