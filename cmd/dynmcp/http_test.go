package main_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Servers reached over HTTP: ours that can misbehave, and one that is made of the
// SDK's parts.

// nobodyListens returns a URL on which nothing listens.
func nobodyListens(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c, err := net.Dial("tcp", l.Addr().String()) // a port in use, on which no other test can listen meanwhile
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return "http://" + c.LocalAddr().String() + "/mcp"
}

// remote is an entry for a fake that serves HTTP.
func remote(t *testing.T, name string, args ...string) entry {
	t.Helper()
	ledger := mcptest.NewLedger(t)
	server := mcptest.ServeFake(t, append([]string{"-name", name, "-ledger", ledger.Path}, args...)...)
	return entry{ledger, name, map[string]any{"url": server.URL}}
}

// flavours are the ways in which a server may serve HTTP.
var flavours = map[string][]string{
	"events":      nil,
	"JSON":        {"-json"},
	"no session":  {"-fault", "no-session"},
	"no stream":   {"-fault", "get-status"},
	"legacy SSE":  {"-sse"},
	"stateless":   {"-era", "new"},
	"both eras":   {"-era", "both"},
	"odd events":  {"-fault", "odd-events"},
	"session 404": {"-fault", "h404-once"},
}

func TestHTTPResultsAreTheUpstreamsBytes(t *testing.T) {
	t.Parallel()
	for name, args := range flavours {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := remote(t, "web", args...)
			if name == "legacy SSE" {
				e = e.with("transport", "sse")
			}
			host := serve(t, e)
			for n, want := range awkward {
				// Line breaks between tokens cannot be told from those of the transport.
				m := use(host, "web/raw", `{"nonce":"n`+fmt.Sprint(n)+`","result":`+want+`}`)
				if got := string(m.Result); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if got := e.Count(fmt.Sprintf("call raw n%d", n)); got != 1 {
					t.Errorf("call %d ran %d times", n, got)
				}
			}
			m := use(host, "web/fail", `{"code":7,"message":"no","data":{"f":1.0}}`)
			if m.Code() != 7 || m.Text() != "no" || string(m.Data()) != `{"f":1.0}` {
				t.Errorf("got %s", m.Raw)
			}
			contains(t, host.Call("resources/read", `{"uri":"fake://web/text"}`).Raw, "contents of fake://web/text")
			contains(t, host.Call("prompts/get", `{"name":"web.greet"}`).Raw, "web.greet")
		})
	}
}

func TestHTTPServersTalkToTheHost(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"events", "JSON", "legacy SSE"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := remote(t, "web", flavours[name]...)
			if name == "legacy SSE" {
				e = e.with("transport", "sse")
			}
			host := serve(t, e)
			m := host.Call("tools/call", useParams("web/progress", `{"steps":3}`, `"_meta":{"progressToken":"tök"}`))
			if m.Text() != "3 steps" {
				t.Errorf("got %s", m.Raw)
			}
			counts(t, host, "notifications/progress", 3)
			use(host, "web/log", `{"data":"hello"}`)
			if m := host.WaitMethod("notifications/message", 1); string(m.Member("logger")) != `"web"` {
				t.Errorf("got %s", m.Raw)
			}
			next := host.Count(promptsChanged) + 1
			use(host, "web/add_prompt", `{"name":"new"}`)
			host.WaitMethod(promptsChanged, next)
			contains(t, host.Call("prompts/list", nil).Raw, `"new"`)
			call := host.Go("tools/call", useParams("web/sleep", nil))
			e.WaitFor("call sleep", 1)
			call.Cancel("enough")
			e.WaitFor("cancelled", 1)
		})
	}
}

func TestHeadersGoToTheServer(t *testing.T) {
	t.Parallel()
	e := remote(t, "web", "-bearer", "t0ken").
		with("headers", map[string]string{"Authorization": "Bearer ${TOKEN}", "X-Other": "${OTHER:-default}"})
	host := mcptest.Start(t, mcptest.HostOptions{
		Args: []string{mcptest.Dynmcp(t), "-c", mcptest.Config(t, document([]entry{e}))},
		Env:  []string{"TOKEN=t0ken"},
	})
	host.Initialize(handshake, nil)
	contains(t, use(host, "web/headers", nil).Text(), `"Bearer t0ken"`, `"X-Other":["default"]`)
	lacks(t, host.Stderr(), "t0ken")
}

func TestServerThatWantsALoginSaysSo(t *testing.T) {
	t.Parallel()
	e := remote(t, "web", "-bearer", "t0ken").with("headers", map[string]string{"Authorization": "Bearer wr0ng"}).with("description", "Locked")
	host := serve(t, e)
	for range 4 { // it counts toward no budget
		m := load(host, "web")
		if !m.IsError() {
			t.Errorf("got %s", m.Raw)
		}
		contains(t, m.Text(), "web", "hint:")
		lacks(t, m.Text(), "wr0ng", "no longer be offered")
	}
	contains(t, catalogue(t, host), "- web: Locked")
}

func TestLazyServerHearsNothingBeforeItIsLoaded(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	host := serve(t, entry{name: "web", fields: map[string]any{"url": server.URL, "description": "Later"}})
	discover(host, `{"query":"later"}`)
	if n := hits.Load(); n > 0 {
		t.Errorf("it got %d requests", n)
	}
	load(host, "web")
	if hits.Load() == 0 {
		t.Error("load_mcp did not reach it")
	}
}

func TestServerThatCannotBeReachedLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	host := serve(t, entry{name: "gone", fields: map[string]any{"url": nobodyListens(t)}}, fake(t, "good"))
	contains(t, catalogue(t, host), "- good/echo", "Could not be started so far", "\n- gone")
	checkEcho(t, host, "good/echo", `{}`)
	contains(t, use(host, "gone/echo", `{}`).Text(), "gone: ", "refused", "not_sent")
}

// TestServerOfTheSDK runs a server that is built of the SDK alone.
func TestServerOfTheSDK(t *testing.T) {
	t.Parallel()
	for name, stateless := range map[string]bool{"sessions": false, "stateless": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdkServer() }, &mcp.StreamableHTTPOptions{Stateless: stateless})
			server := httptest.NewServer(handler)
			t.Cleanup(server.Close)
			host := serve(t, entry{name: "sdk", fields: map[string]any{"url": server.URL}}, fake(t, "other"))
			contains(t, catalogue(t, host), "- sdk/add: Adds two numbers.")
			m := use(host, "sdk/add", `{"a":2,"b":40}`)
			if got := string(m.Member("structuredContent")); got != `{"sum":42}` {
				t.Errorf("got %s", m.Raw)
			}
			contains(t, discover(host, `{"tool_name":"sdk/add"}`).Text(), "Output Schema:", `"sum"`)
			if m := use(host, "sdk/add", `{"a":"x"}`); !m.IsError() {
				t.Errorf("got %s", m.Raw)
			}
			contains(t, host.Call("resources/read", `{"uri":"sdk://motd"}`).Raw, "be kind")
			contains(t, host.Call("prompts/get", `{"name":"hail","arguments":{"who":"Ada"}}`).Raw, "Hail Ada")
		})
	}
}

// TestFailedRefreshKeepsTheLastList runs a server that announces a change and then fails to
// list.
func TestFailedRefreshKeepsTheLastList(t *testing.T) {
	t.Parallel()
	var failing atomic.Bool
	upstream := sdkServer()
	upstream.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" && failing.Load() {
				return nil, errors.New("the database is gone")
			}
			return next(ctx, method, req)
		}
	})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return upstream }, nil))
	t.Cleanup(server.Close)
	host := serve(t, entry{name: "sdk", fields: map[string]any{"url": server.URL}})
	add := func(name string) {
		upstream.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
	}
	failing.Store(true)
	add("second")
	contains(t, host.WaitStderr("the last one stays"), "the database is gone", "upstream=sdk")
	text := catalogue(t, host)
	contains(t, text, "- sdk/add: Adds two numbers.")
	lacks(t, text, "sdk/second")
	failing.Store(false)
	next := host.Count(toolsChanged) + 1
	add("third")
	host.WaitMethod(toolsChanged, next)
	contains(t, catalogue(t, host), "- sdk/add", "- sdk/second", "- sdk/third")
}

func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	type numbers struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type sum struct {
		Sum int `json:"sum"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "Adds two numbers."},
		func(_ context.Context, _ *mcp.CallToolRequest, in numbers) (*mcp.CallToolResult, sum, error) {
			return nil, sum{in.A + in.B}, nil
		})
	s.AddResource(&mcp.Resource{URI: "sdk://motd", Name: "motd"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "be kind"}}}, nil
		})
	s.AddPrompt(&mcp.Prompt{Name: "hail", Arguments: []*mcp.PromptArgument{{Name: "who"}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := strings.TrimSpace("Hail " + r.Params.Arguments["who"])
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
		})
	return s
}
