package openapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

const (
	protocol = "2025-11-25"
	maxPage  = 1 << 20 // bytes of a page of tools
	// A document is compared again at the first call after this time.
	recheck     = 10 * time.Minute
	recheckFile = 2 * time.Second
	// maxInstructions is the most bytes of the document's description.
	maxInstructions = 2000
)

// An adapter makes servers of OpenAPI documents. It implements upstream.Adapter.
type adapter struct{}

// Open prepares the server of an entry.
func (adapter) Open(entry schema.Server, web *upstream.Web) (upstream.Adapted, error) {
	s := &server{entry: entry, web: web, again: recheck}
	s.at.headers = map[string]bool{}
	for name := range entry.Headers {
		s.at.headers[http.CanonicalHeaderKey(name)] = true
	}
	var err error
	if entry.URL != "" {
		if s.at.url, err = url.Parse(entry.URL); err != nil {
			return nil, errors.New("its url is not valid")
		}
	}
	if schema.IsAddress(entry.OpenAPI) {
		if s.at.address, err = url.Parse(entry.OpenAPI); err != nil {
			return nil, errors.New("the address of its OpenAPI document is not valid")
		}
		s.file = file(entry.Name, entry.OpenAPI)
	} else {
		s.again = recheckFile
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// A server is the server of an entry. It implements upstream.Adapted.
type server struct {
	entry schema.Server
	web   *upstream.Web
	at    place
	file  string // of the stored document
	again time.Duration

	ctx     context.Context // ends with the server
	cancel  context.CancelFunc
	working sync.WaitGroup

	mu      sync.Mutex
	current *api // nil before initialize
	checked time.Time
	busy    bool // the document is being compared
	closed  bool
}

// An api is a document as the server uses it.
type api struct {
	from    stored // without its text
	title   string
	version string
	about   string
	all     []*operation
	byName  map[string]*operation
}

// Close ends the comparison of the document.
func (s *server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.working.Wait()
}

// Handle answers the requests of a server with tools.
func (s *server) Handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "initialize":
		return s.initialize(ctx)
	case "ping":
		return json.RawMessage(`{}`), nil
	case "tools/list":
		return s.list(params)
	case "tools/call":
		return s.call(ctx, params)
	}
	return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: "an OpenAPI document has no " + method}
}

// initialize loads the document.
func (s *server) initialize(ctx context.Context) (json.RawMessage, error) {
	a, err := s.load(ctx, nil)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.current, s.checked = a, time.Now()
	s.mu.Unlock()
	answer := map[string]any{
		"protocolVersion": protocol,
		"capabilities":    map[string]any{"tools": map[string]any{"listChanged": true}},
		"serverInfo":      map[string]any{"name": cmp.Or(a.title, s.entry.Name), "version": cmp.Or(a.version, "0")},
	}
	if a.about != "" {
		answer["instructions"] = a.about
	}
	return compact(answer)
}

// load returns the document as it is now, or known if it is still the same. If an address does not
// answer with a document, the one that was stored last is used.
func (s *server) load(ctx context.Context, known *api) (*api, error) {
	if s.at.address == nil {
		now, err := s.readFile(ctx)
		if err != nil {
			return nil, err
		}
		return s.apiOf(now, known)
	}
	last := read(ctx, s.file)
	now, err := s.fetch(ctx, last)
	var a *api
	if err == nil {
		a, err = s.apiOf(now, known)
	}
	switch {
	case err != nil && last != nil && ctx.Err() == nil:
		s.web.Log().Warn("the OpenAPI document cannot be fetched: the one of before is used", "err", err)
		return s.apiOf(last, known)
	case err == nil && now != last:
		if err := now.write(s.file); err != nil {
			s.web.Log().Warn("the OpenAPI document is not stored", "err", err)
		}
	}
	return a, err
}

// readFile reads a document in a file.
func (s *server) readFile(ctx context.Context) (*stored, error) {
	text, err := regular.Read(ctx, s.entry.OpenAPI, maxDocument)
	if err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}
	return &stored{Digest: sum(text), text: text}, nil
}

// fetch fetches the document; it returns last if that is still the same.
func (s *server) fetch(ctx context.Context, last *stored) (*stored, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.at.address.String(), nil)
	if err != nil {
		return nil, errors.New("the address of its OpenAPI document is not valid")
	}
	req.Header.Set("Accept", "application/json, application/yaml;q=0.9, */*;q=0.8")
	if last != nil && last.ETag != "" {
		req.Header.Set("If-None-Match", last.ETag)
	}
	if last != nil && last.LastModified != "" {
		req.Header.Set("If-Modified-Since", last.LastModified)
	}
	resp, err := s.web.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && last != nil:
		return last, nil
	case resp.StatusCode != http.StatusOK:
		return nil, s.web.StatusFailure(resp)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, s.web.ReadFailure(err)
	}
	return &stored{Server: s.entry.Name, Digest: sum(text), ETag: resp.Header.Get("ETag"), LastModified: resp.Header.Get("Last-Modified"), text: text}, nil
}

// apiOf reads a document, unless it is the known one.
func (s *server) apiOf(from *stored, known *api) (*api, error) {
	if known != nil && known.from.Digest == from.Digest {
		return known, nil
	}
	d, err := parse(from.text)
	if err != nil {
		return nil, err
	}
	a := &api{from: *from, title: d.info("title"), version: d.info("version"), byName: map[string]*operation{}}
	a.from.text = nil
	if a.about = d.info("description"); len(a.about) > maxInstructions {
		a.about = string(bytes.ToValidUTF8([]byte(a.about[:maxInstructions]), nil)) + "…"
	}
	var left []error
	if a.all, left, err = d.operations(s.at); err != nil {
		return nil, err
	}
	if len(left) > 0 && s.web != nil {
		s.web.Log().Warn("operations of the OpenAPI document are left out", "count", len(left), "first", left[0])
	}
	for _, op := range a.all {
		a.byName[op.Name] = op
	}
	return a, nil
}

func (s *server) api() *api {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// list returns a page of the tools.
func (s *server) list(params json.RawMessage) (json.RawMessage, error) {
	a, from := s.api(), 0
	if a == nil {
		return nil, errors.New("it was not initialized")
	}
	if cursor, ok := wire.Text(wire.Get(params, "cursor")); ok {
		var err error
		if from, err = strconv.Atoi(cursor); err != nil || from < 0 || from > len(a.all) {
			return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "there is no such cursor"}
		}
	}
	var page []json.RawMessage
	size, end := 0, from
	for ; end < len(a.all) && (size == 0 || size+len(a.all[end].Tool) <= maxPage); end++ {
		page = append(page, a.all[end].Tool)
		size += len(a.all[end].Tool)
	}
	answer := wire.Set([]byte(`{}`), "tools", wire.Array(page))
	if end < len(a.all) {
		answer = wire.Set(answer, "nextCursor", wire.Quote(strconv.Itoa(end)))
	}
	return answer, nil
}

// call sends the request of an operation, once.
func (s *server) call(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	name, _ := wire.Text(wire.Get(params, "name"))
	a := s.api()
	if a == nil {
		return nil, errors.New("it was not initialized")
	}
	op := a.byName[name]
	if op == nil {
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: fmt.Sprintf("the OpenAPI document has no operation %q", name)}
	}
	s.compareLater()
	arguments := object{}
	if text := wire.Get(params, "arguments"); len(text) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&arguments); err != nil {
			return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "the arguments are not an object"}
		}
	}
	arguments, err := s.withFiles(ctx, op, arguments)
	if err != nil {
		return compact(failed("Nothing was sent: " + err.Error()))
	}
	req, err := op.request(ctx, arguments)
	if err != nil {
		return compact(failed("Nothing was sent: " + err.Error()))
	}
	resp, err := s.web.Do(req)
	if err != nil {
		return nil, err
	}
	r, err := resultOf(s.web, resp)
	if err != nil {
		return nil, err
	}
	return compact(r)
}

// compareLater fetches the document again, beside a call, if that was not done for a while. A change is
// one of the list of tools.
func (s *server) compareLater() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || s.closed || time.Since(s.checked) < s.again {
		return
	}
	known := s.current
	s.busy = true
	s.working.Go(func() {
		now, err := s.load(s.ctx, known)
		s.mu.Lock()
		s.busy, s.checked = false, time.Now()
		if err == nil {
			s.current = now
		}
		s.mu.Unlock()
		switch {
		case err != nil:
			s.web.Log().Warn("the OpenAPI document cannot be compared", "err", err)
		case now != known:
			s.web.Log().Info("the OpenAPI document has changed", "operations", len(now.all))
			s.web.Notify("notifications/tools/list_changed")
		}
	})
}
