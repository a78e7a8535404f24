package listing

import (
	"context"
	"log/slog"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/names"
	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// At most maxPages pages of a server are read, and atOnce of them are read at once.
const (
	maxPages = 200
	atOnce   = 4
)

// ReadPages reads the pages of the views of MCP Apps that the tools of a listing name, and sets their
// digests. Each is read twice: a page that differs has no digest that could be compared.
func ReadPages(ctx context.Context, conn *upstream.Conn, l *catalog.Listing, log *slog.Logger) {
	uris := map[string]bool{}
	for _, tool := range l.Tools {
		if !names.MayHaveView(tool) || len(uris) == maxPages {
			continue
		}
		if uri := names.ViewURI(tool); uri != "" {
			uris[uri] = true
		}
	}
	l.Pages = nil
	if len(uris) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, otherListsTimeout(ctx))
	defer cancel()
	var (
		mu      sync.Mutex
		reading errgroup.Group // for its limit: a page that cannot be read stops no other
		pages   = map[string]string{}
	)
	reading.SetLimit(atOnce)
	for uri := range uris {
		reading.Go(func() error {
			digest, err := readPage(ctx, conn, uri)
			if err != nil {
				log.Warn("the page of a view cannot be read, and is not pinned", "upstream", conn.Name(), "uri", uri, "err", err)
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			pages[uri] = digest
			return nil
		})
	}
	_ = reading.Wait()
	l.Pages = pages
}

// readPage returns the digest of a page, or definition.PageVaries.
func readPage(ctx context.Context, conn *upstream.Conn, uri string) (string, error) {
	var digests [2]string
	for i := range digests {
		result, err := upstream.Read(ctx, conn, uri)
		if err != nil {
			return "", err
		}
		digests[i] = definition.PageDigest(result)
	}
	if digests[0] != digests[1] {
		return definition.PageVaries, nil
	}
	return digests[0], nil
}

// Page returns the digest of a page that a tool of the connection names as its view, and the names of
// those tools. No tool does if the connection is not the current one.
func (c *Cache) Page(conn *upstream.Conn, uri string) (digest string, tools []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != conn || c.last == nil {
		return "", nil
	}
	for _, tool := range c.last.Tools {
		if names.MayHaveView(tool) && names.ViewURI(tool) == uri {
			name, _ := wire.Text(wire.Get(tool, "name"))
			tools = append(tools, name)
		}
	}
	return c.last.Pages[uri], tools
}
