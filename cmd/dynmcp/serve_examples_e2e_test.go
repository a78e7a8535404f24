//go:build e2e

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The examples of the API that need packages of Debian. .ci/examples runs them if these are
// there or can be installed.

// run returns the output of a program, with the address of the gateway as its last argument.
func (h *webHost) run(name string, args ...string) string {
	h.t.Helper()
	out, err := exec.CommandContext(h.t.Context(), name, append(args, h.url)...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("%s: %v (this takes Debian's curl, jq, python3 and python3-requests)\n%s", name, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestExampleWithPython(t *testing.T) {
	t.Parallel()
	web, _ := serveExamples(t)
	got := web.run("python3", "-c", `
import sys
import requests

response = requests.post(
    sys.argv[1] + '/mcp/git/message',
    json={'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'echo', 'arguments': {'message': 'Hello'}}},
)
print(response.status_code, response.json()['result']['content'][0]['text'])
`)
	if want := `202 {"message": "Hello"}`; got != want { // requests puts that space
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestExampleOfAScript(t *testing.T) {
	t.Parallel()
	web, _ := serveExamples(t)
	got := web.run("bash", "-c", `
set -euo pipefail
post() {
  curl -s -X POST "$0/mcp/git/message" -H "Content-Type: application/json" -d "$1" | jq -c "$2"
}
post '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}' .result.protocolVersion
post '{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}' '.result.tools[0].name'
post '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"message":"Hello"}}}' '.result.content[0].text|fromjson'
curl -s "$0/health/git" | jq -c '[.namespace, .status, (.pid|type)]'
`)
	if want := "\"2025-03-26\"\n\"echo\"\n{\"message\":\"Hello\"}\n[\"git\",\"running\",\"number\"]"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// The query of docs/recording.md finds the errors of a server in a recording.
func TestExampleWithJQ(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/recording.md")
	if err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(string(page), "$ jq -c ")
	query, _, ok := strings.Cut(query, " run.jsonl\n")
	if !ok {
		t.Fatal("docs/recording.md has no query of run.jsonl")
	}
	file := filepath.Join(t.TempDir(), "run.jsonl")
	host := mcptest.StartDynmcp(t, "record", "-o", file, "-c", mcptest.Config(t, document([]entry{fake(t, "files"), fake(t, "other")})))
	greet(host)
	for _, tool := range []string{"files/fail", "other/fail", "files/echo"} {
		use(host, tool, nil)
	}
	end(t, host)
	out, err := exec.CommandContext(t.Context(), "bash", "-c", "jq -c "+query+" "+file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v (this takes Debian's jq)\n%s", err, out)
	}
	if got := string(out); strings.Count(got, "\n") != 1 || !strings.Contains(got, "failed as asked") {
		t.Errorf("got %s", got)
	}
}
