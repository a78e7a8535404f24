package catalog

import (
	"encoding/json"
	"maps"

	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/catalog/names"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Upstream returns the tool with the server's own name, including one that only views of MCP Apps may
// call. It returns nil if hosts may see no such tool.
func (v *View) Upstream(server, name string) *Tool {
	p := v.part(server)
	if p == nil {
		return nil
	}
	for _, t := range p.docs {
		if t != nil && t.Upstream == name {
			return t
		}
	}
	return nil
}

// ViewOf returns the URI of a tool's view of MCP Apps as hosts read it, "" if it has none.
func (v *View) ViewOf(t *Tool) string {
	if !t.HasView {
		return ""
	}
	return names.ViewURI(v.names.ShowViews(t.Server, t.Raw))
}

// ForViews reports whether views of MCP Apps may call the tool.
func (t *Tool) ForViews() bool { return entry.IsVisibleTo("app", wire.Get(t.Raw, "_meta")) }

// AddMore adds a list of an extension, by its method.
func (l *Listing) AddMore(method string, entries []json.RawMessage) {
	l.More = maps.Clone(l.More)
	if l.More == nil {
		l.More = map[string][]json.RawMessage{}
	}
	l.More[method] = entries
}

// More returns the entries of a list of an extension of one server.
func (v *View) More(server, method string) []json.RawMessage {
	if p := v.server[server]; p != nil && p.index != nil {
		return p.index.listing.More[method]
	}
	return nil
}
