package mcptest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A Registry is a registry of MCP servers over HTTP, as API v0.1 of the official one has it:
// lists with search, version, limit and cursor, and single versions. Its answers have an ETag.
type Registry struct {
	*httptest.Server
	mu       sync.Mutex
	entries  []registered // the newest version of a server first
	handlers map[string]http.HandlerFunc
	requests []string
}

type registered struct {
	name, version, text string
	answer              string
}

// ServeRegistry serves a registry with servers, each a server.json.
func ServeRegistry(t testing.TB, servers ...string) *Registry {
	r := &Registry{handlers: map[string]http.HandlerFunc{}}
	for _, s := range servers {
		r.Publish(s, "active", "")
	}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

// Publish adds a version of a server, which is then the latest.
func (r *Registry) Publish(server, status, message string) {
	var s struct{ Name, Version, Description string }
	_ = json.Unmarshal([]byte(server), &s) // what is malformed is served as it is
	meta := Raw(map[string]any{"status": status, "statusMessage": message, "publishedAt": "2026-01-02T03:04:05Z", "isLatest": true})
	answer := fmt.Sprintf(`{"server":%s,"_meta":{"io.modelcontextprotocol.registry/official":%s,"x":1}}`, server, meta)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append([]registered{{s.Name, s.Version, strings.ToLower(s.Name + " " + s.Description), answer}}, r.entries...)
}

// Handle answers a path otherwise.
func (r *Registry) Handle(path string, h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handlers[path] = h
}

// Requests returns the requests so far, each as "PATH?QUERY STATUS".
func (r *Registry) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.requests...)
}

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	h := r.handlers[req.URL.Path]
	r.mu.Unlock()
	if h != nil {
		h(w, req)
		return
	}
	status, body := r.answer(req)
	sum := fnv.New64()
	sum.Write([]byte(body))
	tag := fmt.Sprintf(`"%x"`, sum.Sum64())
	if status == http.StatusOK && req.Header.Get("If-None-Match") == tag {
		status, body = http.StatusNotModified, ""
	}
	r.mu.Lock()
	r.requests = append(r.requests, fmt.Sprintf("%s %d", req.URL.RequestURI(), status))
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", tag)
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // a client that has gone does not care
}

func (r *Registry) answer(req *http.Request) (int, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path, ok := strings.CutPrefix(req.URL.EscapedPath(), "/v0.1/servers")
	if !ok {
		return http.StatusNotFound, `{"error":"no such path"}`
	}
	if path == "" {
		return http.StatusOK, r.list(req.URL.Query())
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) == 3 && parts[1] == "versions" {
		name, _ := url.PathUnescape(parts[0])
		version, _ := url.PathUnescape(parts[2])
		for _, e := range r.entries {
			if e.name == name && (version == "latest" || version == e.version) {
				return http.StatusOK, e.answer
			}
		}
	}
	return http.StatusNotFound, `{"error":"Server not found"}`
}

// list answers a page. The cursor is the number of entries before it.
func (r *Registry) list(query url.Values) string {
	limit, _ := strconv.Atoi(query.Get("limit"))
	if limit <= 0 {
		limit = 30
	}
	from, _ := strconv.Atoi(query.Get("cursor"))
	var fits []string
	seen := map[string]bool{}
	for _, e := range r.entries {
		if strings.Contains(e.text, strings.ToLower(query.Get("search"))) && !(query.Get("version") == "latest" && seen[e.name]) {
			fits = append(fits, e.answer)
		}
		seen[e.name] = true
	}
	from = min(from, len(fits))
	to := min(from+limit, len(fits))
	metadata := fmt.Sprintf(`{"count":%d}`, to-from)
	if to < len(fits) {
		metadata = fmt.Sprintf(`{"nextCursor":"%d","count":%d}`, to, to-from)
	}
	return fmt.Sprintf(`{"servers":[%s],"metadata":%s}`, strings.Join(fits[from:to], ","), metadata)
}
