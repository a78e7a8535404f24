package main_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A webHost is a host that reaches dynmcp over HTTP, as curl would.
type webHost struct {
	t       *testing.T
	url     string // of the gateway
	session string
	dynmcp  *mcptest.Process
}

// serveHTTP runs dynmcp serve --http on a port of its own, with further arguments.
func serveHTTP(t *testing.T, config string, args ...string) *webHost {
	t.Helper()
	return serveHTTPIn(t, nil, config, args...)
}

// serveHTTPIn is serveHTTP with an environment; nil is one of its own.
func serveHTTPIn(t *testing.T, env []string, config string, args ...string) *webHost {
	t.Helper()
	args = append([]string{mcptest.Dynmcp(t), "serve", "--http", "127.0.0.1:0", "-c", config}, args...)
	p := mcptest.Run(t, mcptest.HostOptions{Args: args, Env: env, Lingers: true})
	line := p.WaitStderr("/mcp\n")
	url := regexp.MustCompile(`(https?://[0-9.:]+)/mcp\n`).FindStringSubmatch(line)[1] // --debug-http may have said its own before
	return &webHost{t: t, url: url, dynmcp: p}
}

// send sends a request with headers name, value, … and returns status, headers and body.
func (h *webHost) send(method, path, body string, headers ...string) (status int, header http.Header, text string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	if h.session != "" {
		r.Header.Set("Mcp-Session-Id", h.session)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Client{Timeout: 2 * time.Minute}).Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(all)
}

// begin returns another host, after its handshake.
func (h *webHost) begin(path string) *webHost {
	h.t.Helper()
	other := *h
	_, header, text := h.send("POST", path, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+hello+`}`)
	if other.session = header.Get("Mcp-Session-Id"); other.session == "" {
		h.t.Fatalf("no session: %s", text)
	}
	other.send("POST", path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return &other
}

// call returns the answer to a request: the body, or the last event of a stream.
func (h *webHost) call(path string, id int, method, params string, headers ...string) mcptest.Message {
	h.t.Helper()
	_, header, text := h.send("POST", path, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params), headers...)
	if strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		text = strings.TrimSpace(text[strings.LastIndex(text, "\ndata: ")+len("\ndata: "):])
	}
	return mcptest.Parse(text)
}

func TestHostsOverHTTPShareTheServers(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	web := serveHTTP(t, mcptest.Config(t, document([]entry{e})))
	a, b := web.begin("/mcp"), web.begin("/mcp")
	for i, host := range []*webHost{a, b, a, b} {
		want := fmt.Sprintf(`{"host":%d}`, i)
		if got := host.call("/mcp", 1, "tools/call", string(useParams("alpha/echo", want))); got.Text() != want {
			t.Errorf("got %s, want %s", got.Raw, want)
		}
	}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	got := web.call("/mcp", 1, "tools/call", string(useParams("alpha/echo", `{"host":9}`, meta)),
		"MCP-Protocol-Version", stateless, "Mcp-Method", "tools/call", "Mcp-Name", "use_tool")
	if got.Text() != `{"host":9}` {
		t.Errorf("got %s", got.Raw)
	}
	if got := e.Count("start"); got != 1 {
		t.Errorf("the server was started %d times", got)
	}
	if status, _, text := web.send("GET", "/health", ""); status != 200 || strings.TrimSpace(text) != `{"status":"healthy"}` {
		t.Errorf("got %d %s", status, text)
	}
}

func TestPublicAddressNeedsATokenAndAFlag(t *testing.T) {
	t.Parallel()
	config := mcptest.Config(t, document([]entry{deferred(t, "idle", "Never used.")}))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--http", "0.0.0.0:0"}, "--listen-public"},
		{[]string{"--http", ":0"}, "--listen-public"},
		{[]string{"--http", "[::]:0", "--token", "secret-of-many"}, "--listen-public"},
		{[]string{"--http", "0.0.0.0:0", "--listen-public"}, "needs a token"},
		{[]string{"--http", "nonsense"}, "HOST:PORT"},
		{nil, "needs to be told where"},
	} {
		p := mcptest.Run(t, mcptest.HostOptions{Args: append([]string{mcptest.Dynmcp(t), "serve", "-c", config}, c.args...), Lingers: true})
		p.WaitStderr(c.says)
		if code := p.Wait(); code != 1 {
			t.Errorf("%v: exit code %d", c.args, code)
		}
	}
}

// When a host ends its session, its calls are answered with that reason, and with what may
// have run.
func TestCallsOfASessionThatItsHostEnds(t *testing.T) {
	t.Parallel()
	book := fake(t, "book")
	web := serveHTTP(t, mcptest.Config(t, document([]entry{book})))
	host := web.begin("/mcp")
	called := make(chan mcptest.Message, 1)
	go func() {
		called <- host.call("/mcp", 1, "tools/call", string(useParams("book/sleep", nil)), "Accept", "application/json")
	}()
	book.WaitFor("call sleep", 1)
	if status, _, text := host.send("DELETE", "/mcp", ""); status != 204 {
		t.Errorf("got %d %s", status, text)
	}
	if got, want := (<-called).Text(), "book: the session was ended by its host (outcome unknown: the call may have run)\nhint: check whether it took effect before retrying"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// An address with too many slashes names no server: it is that of all servers.
func TestAddressWithMoreSlashes(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, mcptest.Config(t, document([]entry{fake(t, "alpha")})))
	for _, path := range []string{"/mcp", "/mcp/", "/mcp//"} {
		_, _, said := web.send("POST", path, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+hello+`}`)
		contains(t, said, `"name":"dynmcp"`)
	}
}
