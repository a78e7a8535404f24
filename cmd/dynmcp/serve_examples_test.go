package main_test

import (
	"bufio"
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The examples of the API that the gateway's routes come from, word for word but for the
// ports. Those that need more than curl and Node.js are in serve_examples_e2e_test.go.

// serveExamples serves the servers of the examples. debug is the address of the debug page.
func serveExamples(t *testing.T) (web *webHost, debug string) {
	t.Helper()
	web = serveHTTP(t, mcptest.Config(t, document([]entry{fake(t, "git"), deferred(t, "idle", "Not used.")}, `"gateway": {"allowed_origins": ["http://localhost:3000"]}`)), "--debug-http", "127.0.0.1:0")
	debug = regexp.MustCompile(`(http://[0-9.:]+)/debug`).FindStringSubmatch(web.dynmcp.WaitStderr("/debug\n"))[1]
	web.url = strings.Replace(web.url, "127.0.0.1", "localhost", 1)
	return web, strings.Replace(debug, "127.0.0.1", "localhost", 1)
}

func TestExamplesWithCurl(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	web, debug := serveExamples(t)
	at := web.url
	post := func(body string) []string {
		return []string{"-s", "-w", " %{http_code}", "-X", "POST", at + "/mcp/git/message", "-H", "Content-Type: application/json", "-d", body}
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`), []string{`"id":1`, `"protocolVersion":"2025-03-26"`, `"serverInfo"`, " 202"}},
		{post(`{
    "jsonrpc":"2.0",
    "id":1,
    "method":"initialize",
    "params":{
      "protocolVersion":"2025-03-26",
      "capabilities":{},
      "clientInfo":{"name":"my-client","version":"1.0.0"}
    }
  }`), []string{`"protocolVersion":"2025-03-26"`, " 202"}},
		{post(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`), []string{`"id":2`, `"name":"echo"`, " 202"}},
		{post(`{
    "jsonrpc":"2.0",
    "id":3,
    "method":"tools/call",
    "params":{
      "name":"echo",
      "arguments":{"message":"Hello"}
    }
  }`), []string{`"id":3`, `\"message\":\"Hello\"`, " 202"}},
		{post(`{"jsonrpc":"2.0","id":4,"method":"ping","params":{}}`), []string{`{"jsonrpc":"2.0","id":4,"result":{}}`, " 202"}},
		{post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), []string{" 202"}},
		{post(`{"jsonrpc":"2.0","id":5,"method":"no/such/method"}`), []string{`"id":5`, `-32601`, " 202"}},
		{post(`{"jsonrpc":"2.0",`), []string{`-32700`, " 400"}},
		{post(`{"jsonrpc":"2.0","id":6}`), []string{`-32600`, " 400"}},
		{[]string{"-s", at + "/health"}, []string{`{"status":"healthy"}`}},
		{[]string{"-s", at + "/health/git"}, []string{`"namespace":"git"`, `"status":"running"`, `"pid":`}},
		{[]string{"-s", at + "/health/idle"}, []string{`"namespace":"idle"`, `"status":"no subprocess"`}},
		{[]string{"-s", "-w", " %{http_code}", at + "/health/nobody"}, []string{`"error"`, " 404"}},
		{[]string{"-s", "-i", "-X", "OPTIONS", at + "/mcp/git", "-H", "Origin: http://localhost:3000"}, []string{"HTTP/1.1 200", "Access-Control-Allow-Origin: http://localhost:3000", "Access-Control-Allow-Methods: GET, POST, ", "OPTIONS", "Access-Control-Allow-Headers: Content-Type"}},
		{[]string{"-s", "-i", at + "/health", "-H", "Origin: http://localhost:3000"}, []string{"Access-Control-Allow-Origin: http://localhost:3000"}},
		{[]string{"-s", debug + "/debug"}, []string{"<!doctype html>"}},
	} {
		out, err := exec.CommandContext(t.Context(), curl, c.args...).Output()
		if err != nil {
			t.Errorf("curl %q: %v", c.args, err)
		}
		for _, want := range c.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("curl %q: got %s, want %s in it", c.args, out, want)
			}
		}
	}
}

func TestExampleStreamsWithCurl(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	web, debug := serveExamples(t)
	web.send("POST", "/mcp/git/message", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	for _, c := range []struct {
		args []string
		want []string // lines have these, in this order
		when string   // the line at which another host comes and goes
	}{
		{[]string{"-N", web.url + "/mcp/git", "-H", "Content-Type: text/event-stream"}, []string{"event: endpoint", "data: /mcp/git/message?sessionId=", "event: ping", `data: {"time":"`}, ""},
		{[]string{"-N", debug + "/debug/stream"}, []string{
			"event: message", `"direction":"in","namespace":"git"`, "event: ping", `data: {"time":"`,
			"event: connection", `"event":"connected","namespace":"git","session":"`, "event: connection", `"event":"disconnected","namespace":"git","session":"`,
		}, `data: {"time":"`},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		cmd := exec.CommandContext(ctx, curl, c.args...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for _, want := range c.want {
			found := false
			for !found && lines.Scan() {
				found = strings.Contains(lines.Text(), want)
			}
			if !found {
				t.Errorf("curl %q: no line with %s", c.args, want)
			}
			if want == c.when {
				web.send("POST", "/mcp/git/message", `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
			}
		}
		cancel()
		_ = cmd.Wait() // it was killed
	}
}

func TestExampleWithNode(t *testing.T) {
	t.Parallel()
	mcptest.Npx(t) // comes with Node.js
	web, _ := serveExamples(t)
	out, err := exec.CommandContext(t.Context(), "node", "--input-type=module", "--eval", `
		const response = await fetch(process.argv[1] + '/mcp/git/message', {
			method: 'POST',
			headers: { 'Content-Type': 'application/json' },
			body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { message: 'Hello' } } })
		})
		console.log(response.status, (await response.json()).result.content[0].text)`, web.url).CombinedOutput()
	if want := `202 {"message":"Hello"}`; err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("got %s (%v), want %s", out, err, want)
	}
}
