package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// The answers are specified in sections 3 and 4 of the extension. Its annotations are not MCP's own, so
// they are inserted as bytes: typed ones would be dropped.

// hints tell how to list tools and load a server on this surface.
var hints = catalog.Hints{
	List: `proxy {"action": "list", "type": "tool"}`,
	Load: `proxy {"action": "list", "type": "tool", "filter": {"prefix": "%s/"}}`,
}

// The values of the argument type.
const (
	kindTool     = "tool"
	kindResource = "resource"
	kindPrompt   = "prompt"
)

// A filter selects entries of a list: paths with the prefix and, among these, entries with one of the
// tags.
type filter struct {
	prefix string
	tags   []string
}

// list lists the tools, resources with their templates, or prompts, as a tool's result: at most limit,
// 0 meaning as many as fit into maxBytes, from cursor on. If that is not all, a second content says
// how to continue, or which servers have not started.
func list(v *catalog.View, kind string, filter filter, limit, maxBytes int, cursor string) (json.RawMessage, error) {
	var all []entry
	prefix := filter.prefix
	if kind == kindTool {
		prefix = catalog.PrefixIn(v, prefix)
	}
	for _, e := range entriesOf(v, kind) {
		if strings.HasPrefix(e.path, prefix) && e.hasTag(filter.tags) {
			all = append(all, e)
		}
	}
	from := 0
	if cursor != "" {
		var err error
		if from, err = strconv.Atoi(cursor); err != nil || from <= 0 || from > len(all) {
			return nil, fmt.Errorf("cursor %s is not from an earlier list of these", display.Quote(display.Asked(cursor)))
		}
	}
	text, to := []byte(`[`), from
	for ; to < len(all); to++ {
		raw := all[to].raw
		if limit > 0 && to-from == limit || limit <= 0 && to > from && len(text)+len(",")+len(raw)+len("]") > maxBytes {
			break
		}
		if to > from {
			text = append(text, ',')
		}
		text = append(text, raw...)
	}
	text = append(text, ']')
	dataType := map[string]string{kindTool: "Tool", kindResource: "Resource|ResourceTemplate", kindPrompt: "Prompt"}[kind]
	out := [][]byte{embedded("proxy:list/"+kind, string(text), notes("list", kind, "", dataType, true))}
	note := v.Texts().Unlisted()
	if len(all) == 0 && !v.Complete() {
		note = strings.TrimSpace("Nothing of what is known matches. " + v.Texts().HowToLoad(hints) + " " + v.Texts().NotListed(" "))
	}
	if to < len(all) {
		note = strings.TrimSpace(fmt.Sprintf(`%d to %d of %d. Go on with "cursor": "%d". `, from+1, to, len(all), to) + note)
	}
	if note != "" {
		out = append(out, results.TextItem(note))
	}
	return results.Of(out), nil
}

// info answers with the definition of one entry, as a tool's result; false if there is none. A URI that
// only matches a template is answered with the template.
func info(v *catalog.View, kind, path string) (json.RawMessage, bool) {
	all := entriesOf(v, kind)
	i := slices.IndexFunc(all, func(e entry) bool { return e.path == path })
	if i < 0 && kind == kindResource {
		longest := 0
		for j, e := range all {
			if prefix, _, ok := strings.Cut(e.path, "{"); ok && len(prefix) > longest && strings.HasPrefix(path, prefix) {
				i, longest = j, len(prefix)
			}
		}
	}
	if i < 0 {
		return nil, false
	}
	info := embedded("proxy:info/"+kind+"/"+uriPath(path), string(all[i].raw), notes("info", kind, path, all[i].dataType, false))
	return results.Of([][]byte{info}), true
}

// unknown answers an unknown path of a kind.
func unknown(v *catalog.View, kind, path string) string {
	if kind == kindTool {
		return v.Texts().UnknownTool(hints, path)
	}
	s := fmt.Sprintf("Unknown %s: %s\n", kind, display.Asked(path))
	s += fmt.Sprintf("%d of this type: proxy {\"action\": \"list\", \"type\": %s}.\n", len(entriesOf(v, kind)), wire.Quote(kind))
	if how := v.Texts().HowToLoad(hints); how != "" {
		s += how + "\n"
	}
	return strings.TrimSuffix(s+v.Texts().NotListed("\n"), "\n")
}

// called converts the answer of a call to a tool's result: the contents of a tool, with annotations of
// their origin; the contents of a resource, as embedded resources; a prompt, as one.
func called(kind, path string, result json.RawMessage) json.RawMessage {
	switch kind {
	case kindResource:
		return readResource(path, result)
	case kindPrompt:
		return results.Of([][]byte{embedded("proxy:call/prompt/"+uriPath(path), string(result), notes("call", kind, path, "GetPromptResult", false))})
	}
	return annotatedContents(kind, path, result)
}

// annotatedContents adds annotations of their origin to the contents of a tool's result.
func annotatedContents(kind, path string, result json.RawMessage) json.RawMessage {
	at := wire.Find(result, "content")
	if at.Len == 0 {
		return result
	}
	var edits []wire.Edit
	for item := range wire.Elements(at.In(result)) {
		if wire.IsObject(item) {
			edits = append(edits, wire.Edit{Span: wire.Locate(result, item), With: annotated(item, notes("call", kind, path, "", false))})
		}
	}
	return wire.Replace(result, edits...)
}

// A part is an operation of a batch, in words, and its result.
type part struct {
	what   string
	result json.RawMessage
}

// batched returns the answer to a batch: the contents of the results in order, each after a line that
// names the operation and its outcome. Other members of the results are in _meta, in order. It is
// an error if all results are.
func batched(parts []part) json.RawMessage {
	var contents, rest [][]byte
	failed := 0
	for i, p := range parts {
		said := fmt.Sprintf("%d. %s", i+1, p.what)
		if string(wire.Get(p.result, "isError")) == "true" {
			failed++
			said += ": error"
		}
		notes := fmt.Appendf(nil, `{"proxyAction":"batch","proxyIndex":%d}`, i)
		contents = append(contents, fmt.Appendf(nil, `{"type":"text","text":%s,"annotations":%s}`, wire.Quote(said), notes))
		for item := range wire.Elements(wire.Get(p.result, "content")) {
			contents = append(contents, annotated(item, fmt.Appendf(nil, `{"proxyIndex":%d}`, i)))
		}
		rest = append(rest, wire.Delete(p.result, "content"))
	}
	result := fmt.Appendf(nil, `{"content":%s,"_meta":{"dynmcp/results":%s}}`, wire.Array(contents), wire.Array(rest))
	if failed == len(parts) {
		result = wire.Set(result, "isError", []byte("true"))
	}
	return result
}

// describe returns the description of the tool. It has at most maxChars
// UTF-16 units, unless that is 0 or less.
func describe(v *catalog.View, maxChars int) string {
	tools, resources, prompts := v.Texts().Counts()
	return v.Texts().WithUnlisted(hints, fmt.Sprintf(`Lists, shows and uses the tools, resources and prompts of other MCP servers by proxy: %s, %s, %s. `+
		`{"action": "list", "type": "tool"} lists, {"action": "info", "type": "tool", "path": "name"} shows the definition, {"action": "call", "type": "tool", "path": "name", "args": {…}} calls.`,
		tools, resources, prompts), maxChars)
}

// readResource converts the result of resources/read to a tool's result. Text that is JSON is embedded
// as JSON, and keeps its own type as contentType (section 3.2.2).
func readResource(path string, result json.RawMessage) json.RawMessage {
	var contents [][]byte
	for part := range wire.Elements(wire.Get(result, "contents")) {
		if !wire.IsObject(part) {
			continue
		}
		if text, ok := wire.Text(wire.Get(part, "text")); ok && wire.Valid([]byte(text)) {
			var same bytes.Buffer
			if json.Compact(&same, []byte(text)) == nil {
				own := bytes.Clone(wire.Get(part, "mimeType"))
				part = wire.Set(wire.Set(part, "text", wire.Quote(same.String())), "mimeType", []byte(`"application/json"`))
				if own != nil {
					part = wire.Set(part, "contentType", own)
				}
			}
		}
		contents = append(contents, fmt.Appendf(nil, `{"type":"resource","resource":%s,"annotations":%s}`, part, notes("call", kindResource, path, "", false)))
	}
	return wire.Set(wire.Delete(result, "contents"), "content", wire.Array(contents))
}

// notes returns the annotations of a content.
func notes(action, kind, path, dataType string, many bool) json.RawMessage {
	out := fmt.Appendf(nil, `{"proxyAction":%q,"proxyType":%q`, action, kind)
	if path != "" {
		out = fmt.Appendf(out, `,"proxyPath":%s`, wire.Quote(path))
	}
	if dataType != "" {
		out = fmt.Appendf(out, `,"pythonType":%q,"dataType":%q,"many":%t`, dataType, dataType, many)
	}
	return append(out, '}')
}

// annotated returns a content with additional annotations.
func annotated(item, notes json.RawMessage) json.RawMessage {
	own := wire.Get(item, "annotations")
	if !wire.IsObject(own) {
		return wire.Set(item, "annotations", notes)
	}
	for key, value := range wire.Members(notes) {
		name, _ := wire.Text(key)
		own = wire.Set(own, name, value)
	}
	return wire.Set(item, "annotations", own)
}

// embedded returns a content that holds a JSON text.
func embedded(uri, text string, notes json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"type":"resource","resource":{"uri":%s,"mimeType":"application/json","text":%s},"annotations":%s}`, wire.Quote(uri), wire.Quote(text), notes)
}

// uriPath escapes a path for a URI.
func uriPath(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// An entry is a tool, a resource, a template or a prompt.
type entry struct {
	path     string
	dataType string
	raw      json.RawMessage
}

func entriesOf(v *catalog.View, kind string) (all []entry) {
	add := func(key, id, dataType string) {
		for _, raw := range v.Entries(key, "") {
			path, _ := wire.Text(wire.Get(raw, id))
			all = append(all, entry{path, dataType, raw})
		}
	}
	switch kind {
	case kindTool:
		add("tools", "name", "Tool")
	case kindPrompt:
		add("prompts", "name", "Prompt")
	case kindResource:
		add("resources", "uri", "Resource")
		add("resourceTemplates", "uriTemplate", "ResourceTemplate")
	}
	return all
}

// hasTag reports whether e has one of the tags, which servers write in several places.
func (e entry) hasTag(tags []string) bool {
	if len(tags) == 0 {
		return true
	}
	for _, at := range [][]string{{"tags"}, {"_meta", "tags"}, {"_meta", "_fastmcp", "tags"}, {"_meta", "fastmcp", "tags"}} {
		for raw := range wire.Elements(wire.Get(e.raw, at...)) {
			if tag, ok := wire.Text(raw); ok && slices.Contains(tags, tag) {
				return true
			}
		}
	}
	return false
}
