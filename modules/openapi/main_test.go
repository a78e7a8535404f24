package openapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// An apiServer serves a document at /openapi.json, and records every other request.
type apiServer struct {
	*httptest.Server
	answer http.HandlerFunc // of the operations

	mu       sync.Mutex
	document string
	etag     string
	fetches  []int // the statuses of requests for the document
	requests []request
}

type request struct {
	method, path, query, body string
	header                    http.Header
}

// serveAPI serves an API with this document.
func serveAPI(t *testing.T, document string, answer http.HandlerFunc) *apiServer {
	t.Helper()
	s := &apiServer{document: document, etag: `"1"`, answer: answer}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/openapi.json" {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.Header().Set("ETag", s.etag)
		status := http.StatusOK
		if r.Header.Get("If-None-Match") == s.etag {
			status = http.StatusNotModified
		}
		s.fetches = append(s.fetches, status)
		w.WriteHeader(status)
		if status == http.StatusOK {
			_, _ = io.WriteString(w, s.document)
		}
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, request{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, string(body), r.Header})
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(w, r)
	}
}

// seen returns the requests of operations, and forgets them.
func (s *apiServer) seen() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.requests
	s.requests = nil
	return seen
}

func (s *apiServer) statuses() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int(nil), s.fetches...)
}

// A heard Peer records notifications.
type heard chan string

func (h heard) Notify(method string, _ json.RawMessage) { h <- method }

func (h heard) Request(context.Context, string, json.RawMessage) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) { return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: "no"} }
}

// stateDir gives the test a state directory of its own.
func stateDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	t.Setenv("HOME", dir)
	t.Setenv("LocalAppData", dir)
	return dir
}

// connect opens the server of an entry.
func connect(t *testing.T, entry schema.Server, adapt upstream.Adapter, opts upstream.ConnOptions) (*upstream.Conn, error) {
	t.Helper()
	entry.Name, entry.Transport, entry.LoadTimeout = "api", schema.StreamableHTTP, time.Minute
	opts.Info, opts.Adapter = upstream.Info{Name: "dynmcp", Version: "1"}, adapt
	c, err := upstream.Open(entry, opts)
	if err != nil {
		return nil, err
	}
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return c, c.Handshake(ctx, nil)
}

// connected is connect for an entry that must work.
func connected(t *testing.T, entry schema.Server) *upstream.Conn {
	t.Helper()
	c, err := connect(t, entry, adapter{}, upstream.ConnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// toolsOf returns the tools of a connection by name.
func toolsOf(t *testing.T, c *upstream.Conn) map[string]json.RawMessage {
	t.Helper()
	list, err := c.List(t.Context(), "tools/list", "tools", nil)
	if err != nil {
		t.Fatal(err)
	}
	tools := map[string]json.RawMessage{}
	for _, tool := range list {
		name, _ := wire.Text(wire.Get(tool, "name"))
		if tools[name] != nil {
			t.Errorf("two tools are called %s", name)
		}
		tools[name] = tool
	}
	return tools
}

// call calls a tool.
func call(t *testing.T, c *upstream.Conn, tool, arguments string) (json.RawMessage, error) {
	t.Helper()
	params, err := json.Marshal(map[string]any{"name": tool, "arguments": json.RawMessage(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	return c.Call(t.Context(), "tools/call", params)
}

// called is call for one that must have a result.
func called(t *testing.T, c *upstream.Conn, tool, arguments string) string {
	t.Helper()
	result, err := call(t, c, tool, arguments)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return string(result)
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// document30 returns a document of OpenAPI 3.0 with these paths, and components.
func document30(paths string, components ...string) string {
	return `{"openapi":"3.0.3","info":{"title":"Pets","version":"1.2"},"paths":{` + paths + `},"components":{` + strings.Join(components, ",") + `}}`
}
