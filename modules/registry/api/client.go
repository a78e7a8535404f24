package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Official is the address of the default registry.
const Official = "https://registry.modelcontextprotocol.io"

// A Client queries one registry.
type Client struct {
	Address string // of the registry, without /v0.1
	Dir     string // where pages are cached; "" caches none

	// Stale is the age of the oldest cached page that was used because the registry could not
	// be reached, and Why is the reason.
	Stale time.Duration
	Why   error

	base *url.URL
	http *http.Client
}

// ErrNotFound is the error for a server or version that a registry does not have.
var ErrNotFound = errors.New("the registry does not have it")

// Open checks the address. Search and Get call it.
func (c *Client) Open() error {
	if c.base != nil {
		return nil
	}
	base, err := url.Parse(strings.TrimRight(c.Address, "/"))
	if err == nil {
		err = allowed(base, isPrivate(base.Hostname()))
	}
	if err != nil {
		return fmt.Errorf("the registry %q: %w", c.Address, err)
	}
	c.base, c.http = base, web(base)
	return nil
}

// MaxWords is the maximum number of words of a search.
const MaxWords = 5

const (
	pageSize      = 100
	searchedPages = 5 // for each word
)

// Search returns the servers whose names or descriptions have all of the words, or else those
// with the most of them. Deleted servers are left out.
func (c *Client) Search(ctx context.Context, words []string) ([]Server, error) {
	words = slices.Compact(slices.Sorted(slices.Values(strings.Fields(strings.ToLower(strings.Join(words, " "))))))
	if len(words) > MaxWords {
		return nil, fmt.Errorf("there are %d words, at most %d are searched for", len(words), MaxWords)
	}
	found := map[string]Server{}
	for _, word := range words {
		servers, err := c.list(ctx, "/v0.1/servers", url.Values{"search": {word}, "version": {"latest"}, "limit": {fmt.Sprint(pageSize)}})
		if err != nil {
			return nil, err
		}
		for _, s := range servers {
			found[s.Name] = s
		}
	}
	return best(found, words), nil
}

// best returns the servers with the most of the words.
func best(found map[string]Server, words []string) (best []Server) {
	hits, most := map[string]int{}, 0
	for name, s := range found {
		text := strings.ToLower(s.Name + " " + s.Title + " " + s.Description)
		for _, word := range words {
			if strings.Contains(text, word) {
				hits[name]++
			}
		}
		most = max(most, hits[name])
	}
	for name, s := range found {
		if hits[name] == most && most > 0 {
			best = append(best, s)
		}
	}
	slices.SortFunc(best, func(a, b Server) int { return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Name, b.Name)) })
	return best
}

// Get returns a version of a server; "" is the latest.
func (c *Client) Get(ctx context.Context, name, version string) (*Server, error) {
	address := "/v0.1/servers/" + url.PathEscape(name) + "/versions/" + url.PathEscape(cmp.Or(version, "latest"))
	body, err := c.fetch(ctx, address, nil)
	if err != nil {
		return nil, err
	}
	s, err := parseServer(body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s of %s: %w", name, c.base.Host, err)
	case s.Name != name || version != "" && s.Version != version:
		return nil, fmt.Errorf("%s answers for %s with another server or version", c.base.Host, name)
	case s.Status == Deleted:
		return nil, fmt.Errorf("%s %s was deleted from %s: %w", name, s.Version, c.base.Host, ErrNotFound)
	}
	s.From = c.Address
	return s, nil
}

// list returns the servers of all pages of a list. Malformed and deleted servers are left out.
func (c *Client) list(ctx context.Context, path string, query url.Values) (all []Server, err error) {
	seen := map[string]bool{}
	for range searchedPages {
		body, err := c.fetch(ctx, path, query)
		if err != nil {
			return nil, err
		}
		var answer struct {
			Servers  []json.RawMessage
			Metadata struct{ NextCursor string }
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return nil, fmt.Errorf("%s does not answer with a list of servers", c.base.Host)
		}
		for _, raw := range answer.Servers {
			if s, err := parseServer(raw); err == nil && s.Status != Deleted {
				s.From = c.Address
				all = append(all, *s)
			}
		}
		cursor := answer.Metadata.NextCursor
		if cursor == "" || seen[cursor] || len(cursor) > 4<<10 {
			break
		}
		seen[cursor] = true
		query.Set("cursor", cursor)
	}
	return all, nil
}

// fetch returns an answer of the registry, or a cached one that is fresh. It returns an older one
// if the registry cannot be reached.
func (c *Client) fetch(ctx context.Context, path string, query url.Values) (json.RawMessage, error) {
	if err := c.Open(); err != nil {
		return nil, err
	}
	address := c.base.String() + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	cached := c.cached(ctx, address)
	if cached.isFresh() {
		return cached.Body, nil
	}
	within, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	resp, body, err := get(within, c.http, address, maxPage, cached.validators())
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && resp.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%s: %w", c.base.Host, ErrNotFound)
	case err == nil && resp.StatusCode == http.StatusNotModified && cached != nil:
		cached.Fetched = time.Now()
		c.store(cached)
		return cached.Body, nil
	case err == nil && resp.StatusCode != http.StatusOK:
		err = fmt.Errorf("%s answers %d", c.base.Host, resp.StatusCode)
	case err == nil && !json.Valid(body):
		err = fmt.Errorf("%s does not answer with JSON", c.base.Host)
	}
	if err != nil && cached != nil {
		c.Stale, c.Why = max(c.Stale, time.Since(cached.Fetched)), err
		return cached.Body, nil
	}
	if err != nil {
		return nil, err
	}
	c.store(&page{address, resp.Header.Get("ETag"), resp.Header.Get("Last-Modified"), time.Now(), body})
	return body, nil
}
