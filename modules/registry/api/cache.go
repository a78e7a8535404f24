package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/regular"
)

const (
	freshFor = 10 * time.Minute // how long a page without validators is used without asking
	maxPages = 200              // number of cached pages
)

// A page is a cached answer of a registry.
type page struct {
	Address      string
	ETag         string `json:",omitempty"`
	LastModified string `json:",omitempty"`
	Fetched      time.Time
	Body         json.RawMessage
}

// isFresh reports whether a page, which may be nil, can be used without asking the registry.
func (p *page) isFresh() bool {
	return p != nil && p.ETag == "" && p.LastModified == "" && time.Since(p.Fetched) < freshFor
}

// validators returns the headers of a conditional request for a page, which may be nil.
func (p *page) validators() http.Header {
	header := http.Header{"Accept": {"application/json"}}
	if p != nil && p.ETag != "" {
		header.Set("If-None-Match", p.ETag)
	}
	if p != nil && p.LastModified != "" {
		header.Set("If-Modified-Since", p.LastModified)
	}
	return header
}

func (c *Client) path(address string) string {
	return filepath.Join(c.Dir, fmt.Sprintf("%x.json", sha256.Sum256([]byte(address))))
}

// cached returns the cached page of an address, nil if there is none.
func (c *Client) cached(ctx context.Context, address string) *page {
	if c.Dir == "" {
		return nil
	}
	text, err := regular.Read(ctx, c.path(address), 2*maxPage)
	var p page
	if err != nil || json.Unmarshal(text, &p) != nil || p.Address != address {
		return nil // a broken file counts as absent
	}
	return &p
}

// store caches a page. If that fails, the next run asks again.
func (c *Client) store(p *page) {
	if c.Dir == "" || os.MkdirAll(c.Dir, 0o700) != nil {
		return
	}
	text, err := json.Marshal(p)
	if err != nil || atomicfile.Replace(c.path(p.Address), text, 0o600) != nil {
		return
	}
	c.prune()
}

// prune removes the oldest pages.
func (c *Client) prune() {
	entries, _ := os.ReadDir(c.Dir) // on an error nothing is removed
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".json") })
	if len(entries) <= maxPages {
		return
	}
	written := func(e os.DirEntry) int64 {
		info, err := e.Info()
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return cmp.Compare(written(a), written(b)) })
	for _, e := range entries[:len(entries)-maxPages] {
		_ = os.Remove(filepath.Join(c.Dir, e.Name()))
	}
}
