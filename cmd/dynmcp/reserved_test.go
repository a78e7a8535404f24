package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A host that shows a token may belong to another user. It is told what happened, what to do,
// and a reference. What the server printed is under that reference in the log and on the
// page, which asks for the token.
func TestOthersDoNotSeeStderr(t *testing.T) {
	t.Parallel()
	config := mcptest.Config(t, `{"expose":["discover","proxy","browser","direct"],"mcp":{
		"leak":{"description":"l","load_budget":0,"command":"/bin/sh","args":["-c","echo connecting to db.internal:5432 as admin >&2; exit 3"]},
		"early":{"command":"/bin/sh","args":["-c","echo reading /etc/early.conf >&2; exit 3"]},
		"web":{"description":"w","load_budget":0,"url":"`+nobodyListens(t)+`"}}}`)
	private := []string{"db.internal", "early.conf", "/bin/sh", "127.0.0.1", "exit status"}
	web := serveHTTP(t, config, "--token", "t0ken", "--debug-http", "127.0.0.1:0")
	page := regexp.MustCompile(`http://[0-9.:]+/debug`).FindString(web.dynmcp.WaitStderr("/debug\n"))
	token := []string{"Authorization", "Bearer t0ken"}

	_, header, _ := web.send("POST", "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+hello+`}`, token...)
	host := &webHost{t: t, url: web.url, session: header.Get("Mcp-Session-Id")}
	var reference string
	for _, call := range []struct{ path, method, params string }{
		{"/mcp", "tools/list", `{}`},
		{"/mcp", "tools/call", `{"name":"use_tool","arguments":{"tool_name":"leak/x","tool_input":{}}}`},
		{"/mcp", "tools/call", `{"name":"use_tool","arguments":{"tool_name":"early/x","tool_input":{}}}`},
		{"/mcp", "tools/call", `{"name":"use_tool","arguments":{"tool_name":"web/x","tool_input":{}}}`},
		{"/mcp", "tools/call", `{"name":"load_mcp","arguments":{"mcp_name":"leak"}}`},
		{"/mcp", "tools/call", `{"name":"discover_tool","arguments":{"server":"early"}}`},
		{"/mcp", "tools/call", `{"name":"proxy","arguments":{"action":"call","type":"tool","path":"leak/x"}}`},
		{"/mcp", "tools/call", `{"name":"mcp_call","arguments":{"method":"tools/call","params":{"name":"leak/x","arguments":{}}}}`},
		{"/mcp", "tools/call", `{"name":"mcp_discover","arguments":{"jsonpath":"$.servers[*]"}}`},
		{"/mcp", "tools/list", `{}`},
		{"/mcp/leak/message", "tools/list", `{}`},
		{"/mcp/web/message", "tools/call", `{"name":"x","arguments":{}}`},
	} {
		to := web
		if call.path == "/mcp" {
			to = host
		}
		_, _, said := to.send("POST", call.path, `{"jsonrpc":"2.0","id":1,"method":"`+call.method+`","params":`+call.params+`}`, token...)
		for _, word := range private {
			if strings.Contains(said, word) {
				t.Errorf("%s %s says %q: %s", call.path, call.params, word, said)
			}
		}
		if found := regexp.MustCompile(`under the reference ([a-z2-7]{8})`).FindStringSubmatch(said); found != nil && strings.Contains(call.params, "leak/x") {
			reference = found[1]
		}
	}
	if reference == "" {
		t.Fatal("no answer has a reference")
	}
	contains(t, web.dynmcp.WaitStderr("ref="+reference), "db.internal:5432 as admin")

	if status, _ := fetch(t, page+"/state", nil); status != http.StatusUnauthorized {
		t.Errorf("the page answers %d without the token", status)
	}
	for _, authorize := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("Authorization", "Bearer t0ken") },
		func(r *http.Request) { r.SetBasicAuth("me", "t0ken") },
	} {
		type server struct {
			Name, State, Error string
			Failed             int     `json:"starts_failed"`
			Since              float64 `json:"failed_seconds"`
		}
		var body string
		var state struct {
			Failures  []struct{ Reference, Text string }
			Upstreams []server
		}
		mcptest.Eventually(t, "no server is being started again", func() bool {
			_, body = fetch(t, page+"/state", authorize)
			state.Upstreams = nil
			if err := json.Unmarshal([]byte(body), &state); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			return !slices.ContainsFunc(state.Upstreams, func(u server) bool { return u.State == "loading" })
		})
		found := false
		for _, f := range state.Failures {
			found = found || f.Reference == reference && strings.Contains(f.Text, "db.internal")
		}
		if !found {
			t.Errorf("the page has no cause under %s: %s", reference, body)
		}
		for _, u := range state.Upstreams {
			if u.State != "failed" || u.Failed == 0 || u.Since <= 0 || u.Error == "" {
				t.Errorf("got %+v, want a server that has failed, how often, since when and why", u)
			}
		}
	}
	_, metrics := fetch(t, web.url+"/metrics", func(r *http.Request) { r.Header.Set("Authorization", "Bearer t0ken") })
	contains(t, metrics, `dynmcp_upstream_state{state="failed",upstream="leak"} 1`,
		`dynmcp_calls_total{kind="start_failed",method="tools/call",outcome="not_sent",upstream="leak"}`,
		`dynmcp_upstream_start_failures_total{upstream="web"}`, `dynmcp_calls_waiting{upstream="web"} 0`)
	lacks(t, metrics, `dynmcp_upstream_start_failures_total{upstream="leak"} 0`, `dynmcp_upstream_start_failures_total{upstream="web"} 0`)
}

// The page shows short texts whole, although their ends may look like the beginning of a secret.
func TestPageShowsWholeTexts(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, mcptest.Config(t, document([]entry{fake(t, "git")})), "--token", "s3same-open", "--debug-http", "127.0.0.1:0")
	page := regexp.MustCompile(`http://[0-9.:]+/debug`).FindString(web.dynmcp.WaitStderr("/debug\n"))
	web.send("POST", "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"s3same-open s3same","version":"1"}}}`, "Authorization", "Bearer s3same-open")
	_, body := fetch(t, page+"/state", func(r *http.Request) { r.SetBasicAuth("me", "s3same-open") })
	contains(t, body, `"host":"[redacted] s3same"`)
}

// A call that its host cancels, or that the end of its session interrupts, has no cause that is
// kept from the host.
func TestInterruptedCallsHaveNoReference(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	web := serveHTTP(t, mcptest.Config(t, document([]entry{e})), "--token", "s3same-open", "--debug-http", "127.0.0.1:0")
	page := regexp.MustCompile(`http://[0-9.:]+/debug`).FindString(web.dynmcp.WaitStderr("/debug\n"))
	token := []string{"Authorization", "Bearer s3same-open"}
	_, header, _ := web.send("POST", "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+hello+`}`, token...)
	host := &webHost{t: t, url: web.url, session: header.Get("Mcp-Session-Id")}
	answers := make(chan string, 2)
	sleep := func(id int) {
		go func() {
			_, _, said := host.send("POST", "/mcp", toolCall(id, "alpha/sleep", `{}`), token...)
			answers <- said
		}()
		e.WaitFor("call sleep", id)
	}
	sleep(1)
	host.send("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, token...)
	<-answers
	sleep(2)
	host.send("DELETE", "/mcp", "", token...)
	said := <-answers
	contains(t, said, "the session was ended by its host", `unknown`)
	lacks(t, said, "reference")
	_, body := fetch(t, page+"/state", func(r *http.Request) { r.SetBasicAuth("me", "s3same-open") })
	contains(t, body, `"failures":[]`)
	lacks(t, web.dynmcp.Stderr(), "was not told")
}

// On loopback without a token there is only the user of this machine, who is told all.
func TestUserOfThisMachineSeesStderr(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, mcptest.Config(t, `{"mcp":{"leak":{"description":"l","command":"/bin/sh","args":["-c","echo connecting to db.internal >&2; exit 3"]}}}`))
	contains(t, web.begin("/mcp").call("/mcp", 1, "tools/call", `{"name":"use_tool","arguments":{"tool_name":"leak/x","tool_input":{}}}`).Text(),
		"last lines of its stderr:\nconnecting to db.internal")
}

// fetch returns the answer to a GET.
func fetch(t *testing.T, url string, authorize func(*http.Request)) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorize != nil {
		authorize(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(all)
}
