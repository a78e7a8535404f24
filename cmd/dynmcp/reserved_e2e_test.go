//go:build unix && e2e

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// waysToAServer are requests whose answers may have texts of one failing server.
var waysToAServer = []struct{ method, params string }{
	{"tools/call", `{"name":"use_tool","arguments":{"tool_name":"NAME/echo","tool_input":{}}}`},
	{"tools/call", `{"name":"load_mcp","arguments":{"mcp_name":"NAME","retry":true}}`},
	{"tools/call", `{"name":"discover_tool","arguments":{"server":"NAME"}}`},
	{"tools/call", `{"name":"discover_tool","arguments":{"tool_name":"NAME/echo"}}`},
	{"tools/call", `{"name":"proxy","arguments":{"action":"call","type":"tool","path":"NAME/echo","args":{}}}`},
	{"tools/call", `{"name":"mcp_call","arguments":{"method":"tools/call","params":{"name":"NAME/echo","arguments":{}}}}`},
	{"tools/call", `{"name":"mcp_call","arguments":{"method":"resources/list","params":{"server":"NAME"}}}`},
	{"tools/call", `{"name":"meta_desc","arguments":{"path":"/NAME/echo"}}`},
	{"tools/call", `{"name":"meta_call","arguments":{"path":"/NAME/echo","arguments":{}}}`},
	{"tools/call", `{"name":"run_script","arguments":{"code":"return await call(\"NAME/echo\", {})"}}`},
	{"tools/call", `{"name":"run_script","arguments":{"code":"try { await call(\"NAME/echo\", {}) } catch (e) { return JSON.stringify(e) + e.stack }"}}`},
	{"tools/call", `{"name":"NAME__echo","arguments":{}}`},
	{"resources/read", `{"uri":"fake://NAME/text"}`},
	{"resources/subscribe", `{"uri":"fake://NAME/text"}`},
	{"prompts/get", `{"name":"NAME.greet"}`},
	{"completion/complete", `{"ref":{"type":"ref/prompt","name":"NAME.greet"},"argument":{"name":"who","value":"x"}}`},
	{"logging/setLevel", `{"level":"debug"}`},
}

// waysToAll are requests whose answers may have texts of every server.
var waysToAll = []struct{ method, params string }{
	{"tools/list", `{}`}, {"resources/list", `{}`}, {"resources/templates/list", `{}`}, {"prompts/list", `{}`}, {"server/discover", `{}`},
	{"tools/call", `{"name":"discover_tool","arguments":{}}`},
	{"tools/call", `{"name":"discover_tool","arguments":{"query":"echo"}}`},
	{"tools/call", `{"name":"proxy","arguments":{"action":"list","type":"tool"}}`},
	{"tools/call", `{"name":"proxy","arguments":{"action":"list","type":"resource"}}`},
	{"tools/call", `{"name":"mcp_discover","arguments":{"jsonpath":"$..*"}}`},
	{"tools/call", `{"name":"meta_tree","arguments":{"path":"/"}}`},
}

// Failing servers print and answer with paths and addresses. Hosts that may belong to other
// users get none of it: no answer to any request has a path, an address or a line of stderr.
func TestOthersSeeNoPathsOrAddresses(t *testing.T) {
	t.Parallel()
	leaky := newLeakyServers(t)
	web := serveHTTP(t, mcptest.Config(t, leaky.config(t)), "--token", leakyToken)
	all := leaky.host(t, web)
	heard := all.hear()
	everything := func() {
		for _, way := range waysToAll {
			all.ask(way.method, way.params)
		}
		all.judge("POST", "/meta_tree", `{"path":"/"}`)
	}
	everything()
	// Not as parallel subtests, which would wait until all other tests have begun.
	var work sync.WaitGroup
	for name := range leaky.entries {
		work.Go(func() {
			host := leaky.host(t, web)
			for _, way := range waysToAServer {
				host.ask(way.method, strings.ReplaceAll(way.params, "NAME", name))
			}
			for _, method := range []string{"tools/list", "tools/call", "initialize"} {
				host.judge("POST", "/mcp/"+name+"/message", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":"echo","arguments":{},"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, method))
			}
			host.judge("POST", "/meta_call", `{"path":"/`+name+`/echo","arguments":{}}`)
			host.judge("GET", "/health/"+name, "")
			if host.referred == 0 && name != "unset" { // which is off
				t.Errorf("%s: no answer has a reference", name)
			}
		})
	}
	work.Wait()
	everything()
	for _, path := range []string{"/health", "/metrics", "/.well-known/oauth-protected-resource", "/debug", "/debug/state", "/nothing"} {
		all.judge("GET", path, "")
	}
	all.leaky.judge(t, "the events of a session", heard())
	contains(t, web.dynmcp.Stderr(), leaky.said, "ref=") // the log has it
}

const leakyToken = "t0ken"

// leakyServers are servers that fail, each in its own way, and tell paths and addresses.
type leakyServers struct {
	said    string // a line
	entries map[string]map[string]any
	private []string // words that no host may read
}

func newLeakyServers(t *testing.T) *leakyServers {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "h1dden")
	l := &leakyServers{
		said:    "opening " + dir + "/key.pem at db.internal:5432 with s3same",
		private: []string{"h1dden", "db.internal", "s3same", "/bin/sh", "127.0.0.1", "exit status", "fakemcp: panic"},
		entries: map[string]map[string]any{},
	}
	shell := func(rest string) map[string]any {
		return map[string]any{"command": "/bin/sh", "args": []string{"-c", "echo '" + l.said + "' >&2; " + rest}, "load_timeout": "100ms"}
	}
	l.entries["exits"] = shell("exit 3")
	l.entries["sleeps"] = shell("exec sleep 600")
	l.entries["garbles"] = shell("echo '" + l.said + "'; exit 0")
	for name, fault := range map[string]string{
		"crashes": "crash-call", "hangs": "hang-call", "breaks": "noresult", "big": "huge:3000000", "unlisted": "crash-call -fault-on resources/list",
		"unread": "crash-call -fault-on resources/read", "unprompted": "crash-call -fault-on prompts/get", "empty": "crash-call -fault-on tools/list",
	} {
		l.entries[name] = shell("exec " + mcptest.Fake(t) + " -name " + name + " -resource fake://" + name + "/text -fault " + fault)
		l.entries[name]["timeout"], l.entries[name]["load_timeout"], l.entries[name]["max_message_bytes"] = "300ms", "20s", 1<<20
	}
	l.entries["installs"] = map[string]any{"command": l.npx(t, dir), "args": []string{"-y", "some-server@1.0.0"}, "load_timeout": "100ms", "env": map[string]string{"npm_config_cache": dir}}
	l.entries["missing"] = map[string]any{"command": filepath.Join(dir, "nothing")}
	l.entries["nowhere"] = map[string]any{"command": "/bin/sh", "cwd": filepath.Join(dir, "gone")}
	l.entries["unset"] = map[string]any{"command": "/bin/sh", "env": map[string]string{"KEY": "${file:" + dir + "/key}"}}
	for _, status := range []int{307, 400, 401, 403, 404, 429, 500, 503} {
		l.entries[fmt.Sprint("http", status)] = map[string]any{"url": l.web(t, status)}
	}
	l.entries["refused"] = map[string]any{"url": nobodyListens(t)}
	l.entries["untrusted"] = map[string]any{"url": strings.Replace(l.web(t, 500), "http:", "https:", 1)}
	for name, entry := range l.entries {
		if name != "sleeps" && name != "installs" { // those are given up
			entry["load_budget"] = 0
		}
		if name != "exits" && name != "http429" { // those are eager
			entry["description"] = "d"
		}
	}
	return l
}

// npx returns a runner that was cut short in the cache dir.
func (l *leakyServers) npx(t *testing.T, dir string) string {
	t.Helper()
	writeFile(t, dir, "_npx/abc/concurrency.lock", "")
	return writeProgram(t, dir, "npx", "#!/bin/sh\necho '"+l.said+"' >&2\nexec cat >/dev/null\n")
}

// web returns the address of a server that answers everything with a status.
func (l *leakyServers) web(t *testing.T, status int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://db.internal:5432/h1dden")
		w.Header().Set("WWW-Authenticate", `Bearer realm="h1dden", scope="db.internal"`)
		if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(status)
		fmt.Fprintln(w, l.said)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/h1dden"
}

func (l *leakyServers) config(t *testing.T) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"expose": []string{"discover", "proxy", "browser", "direct", "tree", "script"}, "startup_wait": "200ms",
		"scripts": map[string]any{"tools": []string{"*"}, "best_effort": true}, "mcp": l.entries,
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// judge fails the test if a text has a private word.
func (l *leakyServers) judge(t *testing.T, way, said string) {
	t.Helper()
	for _, word := range l.private {
		if i := strings.Index(said, word); i >= 0 {
			t.Errorf("%s shows %q: …%s…", way, word, said[max(0, i-300):min(len(said), i+200)])
			return
		}
	}
}

// host begins a session with the token.
func (l *leakyServers) host(t *testing.T, web *webHost) *leakyHost {
	t.Helper()
	h := &leakyHost{webHost: *web, leaky: l}
	h.t = t
	_, header, text := h.send("POST", "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+hello+`}`, "Authorization", "Bearer "+leakyToken)
	if h.session = header.Get("Mcp-Session-Id"); h.session == "" {
		t.Fatalf("no session: %s", text)
	}
	l.judge(t, "initialize", text)
	return h
}

// A leakyHost judges all that it reads.
type leakyHost struct {
	webHost
	leaky    *leakyServers
	referred int // answers with a reference to the log
}

func (h *leakyHost) judge(method, path, body string, headers ...string) {
	h.t.Helper()
	_, header, said := h.send(method, path, body, append(headers, "Authorization", "Bearer "+leakyToken)...)
	h.leaky.judge(h.t, method+" "+path+" "+body, fmt.Sprint(header, said))
	if strings.Contains(said, "under the reference") {
		h.referred++
	}
}

// ask makes a request in the session and one of 2026-07-28.
func (h *leakyHost) ask(method, params string) {
	h.t.Helper()
	h.judge("POST", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":%s,%s}`, method, mcptest.ModernMeta(`{}`), params[1:])
	headers := []string{"MCP-Protocol-Version", stateless, "Mcp-Method", method}
	for _, member := range []string{"name", "uri"} {
		if name := wire.Get([]byte(params), member); name != nil {
			headers = append(headers, "Mcp-Name", strings.Trim(string(name), `"`))
		}
	}
	session := h.session
	h.session = ""
	h.judge("POST", "/mcp", strings.Replace(body, ",}", "}", 1), headers...)
	h.session = session
}

// hear reads the session's stream. The function that it returns ends the session, and returns
// what came.
func (h *leakyHost) hear() func() string {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+"/mcp", nil)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", h.session)
	r.Header.Set("Authorization", "Bearer "+leakyToken)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	heard := make(chan string, 1)
	go func() {
		defer resp.Body.Close()
		all, _ := io.ReadAll(resp.Body) // ends with the session
		heard <- string(all)
	}()
	return func() string {
		h.send("DELETE", "/mcp", "", "Authorization", "Bearer "+leakyToken)
		return <-heard
	}
}
