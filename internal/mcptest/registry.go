package mcptest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A Registry is a registry of MCP servers over HTTP. The test fails if a request or an answer does not
// conform to the OpenAPI document of registries. Answers have an ETag.
type Registry struct {
	*httptest.Server
	t         testing.TB
	api       *registryAPI
	says      map[string]any // the registry's metadata of a server, from the examples in the document
	mu        sync.Mutex
	entries   []registered // the newest first
	malformed bool         // there is a malformed entry
	handlers  map[string]http.HandlerFunc
	requests  []string
}

// ofRegistry is the member of _meta with the registry's metadata of a server.
const ofRegistry = "io.modelcontextprotocol.registry/official"

type registered struct {
	name, version   string
	status, message string
	text            string // server.json
}

// ServeRegistry serves a registry with servers, each a server.json.
func ServeRegistry(t testing.TB, servers ...string) *Registry {
	api, err := registryDocument()
	if err != nil {
		t.Fatal(err)
	}
	r := &Registry{t: t, api: api, handlers: map[string]http.HandlerFunc{}}
	var response struct {
		Meta map[string]map[string]any `json:"_meta"`
	}
	if err := json.Unmarshal(Raw(api.example(json.RawMessage(`{"$ref":"#/$defs/ServerResponse"}`))), &response); err != nil {
		t.Fatal(err)
	}
	r.says = response.Meta[ofRegistry]
	for _, s := range servers {
		r.Publish(s, "active", "")
	}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

// Publish adds a version of a server, which is then the latest.
func (r *Registry) Publish(server, status, message string) {
	if err := CheckServerJSON(server); err != nil {
		r.t.Errorf("%.300s is no server.json: %v", server, err)
	}
	r.publish(server, status, message)
}

// PublishMalformed adds an invalid server.json, which a registry would reject.
func (r *Registry) PublishMalformed(server string) {
	r.mu.Lock()
	r.malformed = true
	r.mu.Unlock()
	r.publish(server, "active", "")
}

func (r *Registry) publish(server, status, message string) {
	var s struct{ Name, Version string }
	_ = json.Unmarshal([]byte(server), &s) // a malformed one has no name
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append([]registered{{s.Name, s.Version, status, message, server}}, r.entries...)
}

// Handle replaces the handler of a path.
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
	_, _ = w.Write([]byte(body)) // fails only if the client is gone
}

// answer answers a request as the OpenAPI document describes.
func (r *Registry) answer(req *http.Request) (status int, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path, in := r.api.find(req.URL)
	if path == nil || req.Method != http.MethodGet {
		r.t.Errorf("the API has no %s %s", req.Method, req.URL)
		return http.StatusNotFound, `{}`
	}
	query := req.URL.Query()
	if err := path.check(query); err != nil {
		r.t.Errorf("%s: %v", req.URL, err)
	}
	one, many := in["version"] != "", in["serverName"] == ""
	found := r.find(in["serverName"], in["version"], query)
	switch {
	case len(found) == 0 && !many:
		status = http.StatusNotFound
		body = string(Raw(r.api.example(path.answer(status))))
	case one:
		status, body = http.StatusOK, found[0]
	default:
		status, body = http.StatusOK, page(found, query)
	}
	if err := r.api.checkAnswer(path, status, body); err != nil && !r.malformed {
		r.t.Errorf("the answer to %s: %v", req.URL, err)
	}
	return status, body
}

// find returns the requested versions: of one server the newest first, of all servers by name. It
// searches words only in names.
func (r *Registry) find(name, version string, query url.Values) (found []string) {
	version = cmp.Or(version, query.Get("version"))
	latest := map[string]string{}
	entries := r.entries
	if name == "" {
		entries = slices.Clone(entries)
		slices.SortStableFunc(entries, func(a, b registered) int { return cmp.Compare(a.name, b.name) })
	}
	for _, e := range entries {
		if latest[e.name] == "" {
			latest[e.name] = e.version
		}
		isLatest := latest[e.name] == e.version
		switch {
		case name != "" && name != e.name, !strings.Contains(strings.ToLower(e.name), strings.ToLower(query.Get("search"))):
		case version == "latest" && !isLatest, version != "" && version != "latest" && version != e.version:
		case e.status == "deleted" && query.Get("include_deleted") != "true":
		default:
			meta := maps.Clone(r.says)
			meta["status"], meta["statusMessage"], meta["isLatest"] = e.status, e.message, isLatest
			found = append(found, fmt.Sprintf(`{"server":%s,"_meta":{%q:%s,"x":1}}`, e.text, ofRegistry, Raw(meta)))
		}
	}
	return found
}

// page returns a page of a list. The cursor is the number of entries before it.
func page(all []string, query url.Values) string {
	limit, _ := strconv.Atoi(query.Get("limit"))
	if limit <= 0 {
		limit = 30
	}
	from, _ := strconv.Atoi(query.Get("cursor"))
	from = min(from, len(all))
	to := min(from+limit, len(all))
	metadata := fmt.Sprintf(`{"count":%d}`, to-from)
	if to < len(all) {
		metadata = fmt.Sprintf(`{"nextCursor":"%d","count":%d}`, to, to-from)
	}
	return fmt.Sprintf(`{"servers":[%s],"metadata":%s}`, strings.Join(all[from:to], ","), metadata)
}
