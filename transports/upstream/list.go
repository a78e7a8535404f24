package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream/callheader"
)

// Limits of one list. An entry takes a KB of our memory, however small it is.
const (
	maxPages     = 100
	maxListBytes = 64 << 20
	maxEntries   = 100_000
)

// Read returns the answer to the read of a resource, for what Handshake declared.
func Read(ctx context.Context, c *Conn, uri string) (json.RawMessage, error) {
	params := wire.Set(json.RawMessage(`{}`), "uri", wire.Quote(uri))
	if c.stateless.Load() && len(c.declared) > len(`{}`) {
		params = transports.SetMeta(params, transports.MetaCapabilities, c.declared)
	}
	return c.Call(ctx, "resources/read", params)
}

// List returns the entries of all pages of a list. method is the request, such as "tools/list",
// and key the member of the result that holds the entries. declared is what a request of the
// stateless era declares; nil means what Handshake declared. A repeated cursor and too many pages,
// entries or bytes are errors.
func (c *Conn) List(ctx context.Context, method, key string, declared json.RawMessage) ([]json.RawMessage, error) {
	invalid := func(format string, args ...any) error {
		return c.newFailure(transports.CodeProtocol, transports.Executed, fmt.Errorf("%s: %s", method, fmt.Sprintf(format, args...)))
	}
	entries := []json.RawMessage{}
	seen := map[string]bool{}
	var params json.RawMessage
	if declared == nil {
		declared = c.declared
	}
	if c.stateless.Load() && len(declared) > len(`{}`) { // which is in every request
		params = transports.SetMeta(nil, transports.MetaCapabilities, declared)
	}
	for size := 0; ; {
		result, err := c.Call(ctx, method, params)
		if err != nil {
			return nil, err
		}
		page := wire.Get(result, key)
		if len(page) == 0 || page[0] != '[' {
			return nil, invalid("member %q is %s, not an array", key, wire.TypeName(page))
		}
		entries = slices.AppendSeq(entries, wire.Elements(page))
		if size += len(result); size > maxListBytes || len(entries) > maxEntries {
			return nil, invalid("more than %d bytes or %d entries", maxListBytes, maxEntries)
		}
		cursor := wire.Get(result, "nextCursor")
		if text, ok := wire.Text(cursor); !ok || text == "" {
			if l, ok := c.link.(*httpLink); ok && c.stateless.Load() && method == "tools/list" {
				l.bindings.Store(callheader.Of(entries))
			}
			return entries, nil
		}
		switch {
		case seen[string(cursor)]:
			return nil, invalid("the same cursor came twice")
		case len(seen) >= maxPages:
			return nil, invalid("more than %d pages", maxPages)
		}
		seen[string(cursor)] = true
		if params == nil {
			params = json.RawMessage(`{}`)
		}
		params = wire.Set(params, "cursor", cursor)
	}
}
