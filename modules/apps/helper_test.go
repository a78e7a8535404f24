package apps

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// viewURI is the view of each server: equal, as in all examples of the SDK.
const viewURI = "ui://card/view.html"

// A server is an MCP server over HTTP whose tools have a view. It records its calls.
type server struct {
	name  string
	tools map[string]string // name → visibility, a JSON array
	older bool              // its views are for the older bridge of ChatGPT

	mu     sync.Mutex
	called []string // tool and nonce
}

func (s *server) answer(m mcptest.Message) string {
	result := `{}`
	switch m.Method {
	case "initialize":
		result = fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"extensions":{%q:{}}},"serverInfo":{"name":%q,"version":"1"}}`, catalog.AppsExtension, s.name)
	case "tools/list":
		result = s.list()
	case "resources/list":
		result = `{"resources":[]}`
	case "resources/templates/list":
		result = `{"resourceTemplates":[]}`
	case "resources/read":
		uri, _ := wire.Text(wire.Get(m.Params, "uri"))
		kind := "text/html;profile=mcp-app"
		if s.older {
			kind = "text/html+skybridge"
		}
		result = fmt.Sprintf(`{"contents":[{"uri":%q,"mimeType":%q,"text":"<!doctype html><title>%s</title>","_meta":{"ui":{"csp":{"connectDomains":["https://%s.example"]},"permissions":{"camera":{}}}}}]}`, uri, kind, s.name, s.name)
	case "tools/call":
		tool, _ := wire.Text(wire.Get(m.Params, "name"))
		nonce := string(wire.Get(m.Params, "arguments", "nonce"))
		s.mu.Lock()
		s.called = append(s.called, tool+" "+nonce)
		s.mu.Unlock()
		result = fmt.Sprintf(`{"content":[],"structuredContent":{"server":%q},"_meta":{"own":%q}}`, s.name, tool)
		if tool == "long" {
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"structuredContent":{"server":%q,"rows":%q}}`, strings.Repeat("text ", 1000), s.name, strings.Repeat("row ", 1000))
		}
	}
	return result
}

func (s *server) list() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.tools)) {
		if s.older {
			all = append(all, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"_meta":{"openai/outputTemplate":%q,"openai/widgetAccessible":true}}`, name, viewURI))
			continue
		}
		all = append(all, fmt.Sprintf(`{"name":%q,"description":"It is %s.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":%q,"visibility":%s}}}`, name, name, viewURI, s.tools[name]))
	}
	return `{"tools":[` + strings.Join(all, ",") + `]}`
}

// take returns the calls since the last time.
func (s *server) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.called
	s.called = nil
	return all
}

// A host is connected to an aggregator.
type host struct {
	t       *testing.T
	conn    net.Conn
	answers *bufio.Scanner
	id      int
}

const shows = `{"extensions":{"` + catalog.AppsExtension + `":{"mimeTypes":["text/html;profile=mcp-app"]}}}`

// serve returns an aggregator of servers, with hosts that declare capabilities.
func serve(t *testing.T, members string, servers []*server) (connect func(capabilities string) *host) {
	t.Helper()
	var entries []string
	for _, s := range servers {
		web := httptest.NewServer(mcptest.Answers(s.answer))
		t.Cleanup(web.Close)
		entries = append(entries, fmt.Sprintf(`%q:{"url":%q,"load":"eager"}`, s.name, web.URL))
	}
	path := mcptest.Config(t, fmt.Sprintf(`{%s"startup_wait":"1m","mcp":{%s}}`, members, strings.Join(entries, ",")))
	cfg, err := schema.ReadFiles(t.Context(), []string{path}, schema.LoadOptions{Sections: Module.Keys}).Load()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Module.Start(module.Run{Config: cfg, Hosts: true})
	if err != nil {
		t.Fatal(err)
	}
	agg, err := aggregator.New(cfg, aggregator.Options{Version: "1", Extensions: extension.Of([]module.Part{p})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		agg.Close()
		running.Wait()
	})
	return func(capabilities string) *host {
		ours, theirs := net.Pipe()
		running.Go(func() {
			_ = agg.Serve(ctx, ours, ours)
			ours.Close()
		})
		t.Cleanup(func() { theirs.Close() })
		h := &host{t: t, conn: theirs, answers: bufio.NewScanner(theirs)}
		h.answers.Buffer(nil, 1<<20)
		h.ask("initialize", fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"host","version":"1"}}`, capabilities))
		fmt.Fprintf(h.conn, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
		return h
	}
}

// ask returns the answer to a request. Notifications are dropped.
func (h *host) ask(method, params string) wire.Message {
	h.t.Helper()
	h.id++
	if _, err := fmt.Fprintf(h.conn, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", h.id, method, params); err != nil {
		h.t.Fatal(err)
	}
	for h.answers.Scan() {
		m, err := wire.Parse(slices.Clone(h.answers.Bytes()))
		if err != nil {
			h.t.Fatal(err)
		}
		if m.Method == "" {
			return m
		}
	}
	h.t.Fatalf("no answer to %s: %v", method, h.answers.Err())
	panic("not reached")
}

// view returns the page of a view, and the token in it.
func (h *host) view(server string) (page, token string) {
	h.t.Helper()
	m := h.ask("resources/read", fmt.Sprintf(`{"uri":"ui://%s+card/view.html"}`, server))
	for content := range wire.Elements(wire.Get(m.Result, "contents")) {
		page, _ = wire.Text(wire.Get(content, "text"))
	}
	_, rest, _ := strings.Cut(page, `{view:"`)
	token, _, _ = strings.Cut(rest, `"`)
	return page, token
}

// names returns the names of the tools that the host is listed, with their definitions.
func (h *host) names() (names []string, definitions map[string]json.RawMessage) {
	h.t.Helper()
	definitions = map[string]json.RawMessage{}
	for tool := range wire.Elements(wire.Get(h.ask("tools/list", `{}`).Result, "tools")) {
		name, _ := wire.Text(wire.Get(tool, "name"))
		names, definitions[name] = append(names, name), tool
	}
	return names, definitions
}
