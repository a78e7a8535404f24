//go:build e2e && unix

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// No verb starts a program or sends a request for an entry with a reference to a secret that has no value,
// in whichever key it is.
func TestNoVerbUsesAnUnresolvedReference(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(web.Close)
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	shell := func(more map[string]any) map[string]any {
		entry := map[string]any{"command": "/bin/sh", "args": []string{"-c", "echo \"$0\" >> " + started}}
		for key, value := range more {
			entry[key] = value
		}
		return entry
	}
	remote := func(more map[string]any) map[string]any {
		entry := map[string]any{"url": web.URL + "/mcp"}
		for key, value := range more {
			entry[key] = value
		}
		return entry
	}
	servers := map[string]map[string]any{}
	for i, secret := range []string{"${file:/nowhere/secret}", "Bearer ${cmd:exit 3}", "${keyring:NOWHERE}"} {
		for key, entry := range map[string]map[string]any{
			"args": shell(map[string]any{"args": []string{"-c", "echo \"$0\" >> " + started, secret}}), "env": shell(map[string]any{"env": map[string]any{"A": secret}}),
			"cwd": shell(map[string]any{"cwd": secret}), "command": {"command": secret, "args": []string{"x"}}, "sandbox": shell(map[string]any{"sandbox": map[string]any{"read": []string{secret}}}),
			"text": shell(map[string]any{"description": secret}),
			"url":  remote(map[string]any{"url": web.URL + "/" + secret}), "headers": remote(map[string]any{"headers": map[string]any{"A": secret}}),
			"id": remote(map[string]any{"auth": map[string]any{"client_id": secret}}), "secret": remote(map[string]any{"auth": map[string]any{"client_id": "x", "client_secret": secret}}),
			"machine": remote(map[string]any{"auth": map[string]any{"grant": "client_credentials", "client_id": "x", "client_secret": secret}}),
		} {
			if i == 0 || key == "args" || key == "headers" {
				servers[fmt.Sprint(key, i)] = entry
			}
		}
	}
	doc, err := json.Marshal(map[string]any{"mcp": servers, "expose": []string{"discover", "direct"}})
	if err != nil {
		t.Fatal(err)
	}
	config := writeFile(t, dir, "mcp.json", string(doc))
	env := append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "DYNMCP_KEYRING=off", "DISPLAY=")
	unused := func(what, said string) {
		t.Helper()
		text, err := os.ReadFile(started)
		if n := requests.Swap(0); err == nil || n > 0 {
			t.Errorf("%s sent %d requests, and started a program with %s\n%s", what, n, text, said)
			_ = os.Remove(started)
		}
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), mcptest.Dynmcp(t), append(args, "-c", config)...)
		cmd.Env, cmd.Dir = env, dir
		out, _ := cmd.CombinedOutput() // most fail
		unused(strings.Join(args, " "), string(out))
		return string(out)
	}
	for name := range servers {
		for _, args := range [][]string{
			{"test", name}, {"warm", name}, {"call", name + "/x"}, {"login", name, "--no-browser", "--timeout", "2s"}, {"logout", name}, {"verify", name, "--timeout", "2s"},
			{"approve", name, "--start", "--all"},
		} {
			if out := run(args...); !strings.Contains(out, " is off: ") {
				t.Errorf("%q does not say why: %s", args, out)
			}
		}
		run("sandbox", name, "--learn")
		run("diff", name, "--start")
		run("describe", name+"/x")
	}
	for _, args := range [][]string{
		{"test"}, {"warm"}, {"doctor"}, {"tokens", "--warm"}, {"find", "x"}, {"read"}, {"prompt"}, {"verify", "--timeout", "2s"}, {"ls"}, {"outdated"}, {"update"},
		{"describe-servers"}, {"run", writeFile(t, dir, "a.js", `return await search("x")`)},
	} {
		run(args...)
	}

	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config}, Env: env})
	greet(host)
	host.Call("tools/list", nil)
	gateway := serveHTTP(t, config)
	session := gateway.begin("/mcp")
	id := 1
	for name := range servers {
		for tool, args := range map[string]string{"use_tool": fmt.Sprintf(`{"tool_name":"%s/x","tool_input":{}}`, name), "load_mcp": fmt.Sprintf(`{"mcp_name":%q}`, name), name + "__x": "{}"} {
			m := host.Call("tools/call", mcptest.ToolParams(tool, args))
			unused("a host, by "+tool+" of "+name, m.Raw)
			id++
			m = session.call("/mcp", id, "tools/call", string(mcptest.ToolParams(tool, args)))
			unused("a host over HTTP, by "+tool+" of "+name, m.Raw)
		}
	}
}
