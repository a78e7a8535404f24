package definition

import (
	"encoding/json"
	"slices"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// PageVaries stands for the digest of a page that differs each time it is read.
const PageVaries = "differs each time it is read"

// view is the member of a definition with the digest of the page that hosts show for the tool. A
// server's own member of this name is not kept.
const view = "view"

// withPage returns the definition of a tool with the digest of its page, "" if it is not known.
func withPage(raw json.RawMessage, page string) json.RawMessage {
	if wire.Get(raw, view) != nil {
		raw = wire.Delete(raw, view)
	}
	if page == "" {
		return raw
	}
	return wire.Set(raw, view, wire.Quote(page))
}

// PageDigest returns the digest of what a server answers to the read of a page: what hosts show, and what
// they allow it. It is "" for an answer without contents.
func PageDigest(result json.RawMessage) string {
	var pages []json.RawMessage
	for content := range wire.Elements(wire.Get(result, "contents")) {
		if !wire.IsObject(content) {
			return ""
		}
		page := only(content, []string{"uri", "mimeType", "text", "blob"})
		if page == nil {
			page = []byte("{}")
		}
		if ui := wire.Get(content, "_meta", "ui"); ui != nil {
			page = wire.Set(page, "ui", ui)
		}
		pages = append(pages, slices.Clone(page))
	}
	if pages == nil {
		return ""
	}
	return Digest(appendCanonical(nil, wire.Array(pages)))
}
