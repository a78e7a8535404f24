//go:build e2e && unix

package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/modules/policy/rules"
	"github.com/dynmcp/dynmcp/schema"
)

// A denied call is refused by everything that can call a tool. The two tables name each surface and
// each verb: a new one fails this test until it is in its table, with a call if it can make one.
func TestADeniedCallIsRefusedEverywhere(t *testing.T) {
	t.Parallel()
	w := &walk{
		t: t, entry: fake(t, "alpha", "-tool", `{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
		more: []string{`"expose": ["discover", "tree", "browser", "proxy", "direct", "script"]`, anyTool, `"policy": [{"match": "alpha/echo", "do": "deny"}, {"do": "allow"}]`},
	}
	w.config = mcptest.Config(t, document([]entry{w.entry}, w.more...))
	host := mcptest.StartDynmcp(t, "-c", w.config)
	greet(host)
	w.surfaces(host)
	w.verbs()
}

type walk struct {
	t      *testing.T
	entry  entry
	more   []string // of the config
	config string
}

// refused checks that an answer says why, and that the server got no call.
func (w *walk) refused(what, answer string) {
	w.t.Helper()
	if !strings.Contains(answer, "policy rule 1") {
		w.t.Errorf("%s: got %s", what, answer)
	}
	w.notCalled(what)
}

func (w *walk) notCalled(what string) {
	w.t.Helper()
	if n := w.entry.Count("call echo"); n != 0 {
		w.t.Fatalf("%s called it %d times", what, n)
	}
}

// denied are the calls that a host makes, by the surface.
var denied = map[string][][2]string{
	"discover": {{"use_tool", `{"tool_name":"alpha/echo","tool_input":{}}`}, {"use_tool", `{"tool_name":"alpha/echo","args":{}}`}},
	"tree":     {{"meta_call", `{"path":"/alpha/echo"}`}},
	"browser": {
		{"mcp_call", `{"method":"tools/call","params":{"name":"alpha/echo"}}`},
		{"mcp_call", `{"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"alpha/echo"}}}`},
	},
	"proxy": {
		{"proxy", `{"action":"call","type":"tool","path":"alpha/echo"}`},
		{"proxy", `{"action":"batch","operations":[{"action":"call","type":"tool","path":"alpha/echo"}]}`},
	},
	"direct": {{"alpha__echo", `{}`}},
	"script": {
		{"run_script", `{"code":"return await tools.alpha.echo({})"}`}, {"run_script", `{"code":"return await call('alpha/echo', {})"}`},
		{"run_script", `{"code":"return await call.raw('alpha/echo', {})"}`},
	},
	"auto": nil, // chooses among the others
	"api":  nil, // by serve
}

func (w *walk) surfaces(host *mcptest.Host) {
	field, _ := reflect.TypeFor[rules.PolicyRule]().FieldByName("Surface")
	for _, surface := range append(strings.Split(field.Tag.Get("enum"), ","), schema.Surfaces...) {
		if _, ok := denied[surface]; !ok {
			w.t.Errorf("the surface %s is in no table", surface)
		}
	}
	w.calls("a host", host)
}

func (w *walk) calls(what string, host *mcptest.Host) {
	w.t.Helper()
	for surface, calls := range denied {
		for _, call := range calls {
			m := host.Call("tools/call", mcptest.ToolParams(call[0], call[1]))
			w.refused(fmt.Sprintf("%s by %s", what, surface), m.Raw)
		}
	}
}

// run runs a verb with the config and returns what it prints.
func (w *walk) run(args ...string) string {
	cmd := exec.CommandContext(w.t.Context(), mcptest.Dynmcp(w.t), append(args, "-c", w.config)...)
	out, _ := cmd.CombinedOutput() // it may fail
	return string(out)
}

// calling are the verbs that can call tools, each with a call that is refused.
var calling = map[string]func(w *walk){
	"call": func(w *walk) { w.refused("call", w.run("call", "alpha/echo")) },
	"run": func(w *walk) {
		w.refused("run", w.run("run", writeFile(w.t, w.t.TempDir(), "a.js", `return await tools.alpha.echo({})`)))
	},
	"sandbox": func(w *walk) {
		w.refused("sandbox --learn --call", w.run("sandbox", "alpha", "--learn", "--call", "echo {}"))
	},
	"verify": func(w *walk) {
		w.run("verify", "alpha", "--call", "--surface", "discover", "--timeout", "2s")
		w.notCalled("verify")
	},
	"record": func(w *walk) {
		host := mcptest.StartDynmcp(w.t, "record", "-o", filepath.Join(w.t.TempDir(), "r.jsonl"), "-c", w.config)
		greet(host)
		w.calls("record", host)
	},
	"connect": func(w *walk) {
		s := newSharing(w.t, w.entry)
		s.config = w.config
		host := s.start(nil)
		greet(host)
		w.calls("connect", host)
	},
	"serve": func(w *walk) {
		web := serveHTTP(w.t, w.config)
		_, _, text := web.send("POST", "/meta_call", `{"path":"/alpha/echo","args":{}}`, "Content-Type", "application/json")
		w.refused("the API", text)
		for _, calls := range denied {
			for _, call := range calls {
				params := fmt.Sprintf(`{"name":%q,"arguments":%s}`, call[0], call[1])
				w.refused("a request without a session", postStateless(mcptest.NewClient(w.t, web.url+"/mcp"), "tools/call", call[0], params).Body)
			}
		}
	},
	"ui": (*walk).page,
}

// idle are the verbs that call no tool of a server.
var idle = strings.Fields(`add answer approve cluster completion credential describe dev describe-servers diff doctor find help import init inspect install log login logout ls outdated
	policy prompt ps read remove replay restart schema search secret set start stats stop test tokens uninstall update use version warm webhook`)

func (w *walk) verbs() {
	list, _, _ := strings.Cut(runVerb(w.t, nil, 0, "--help"), "\nFlags:\n")
	more, _, _ := strings.Cut(runVerb(w.t, nil, 0, "dev", "--help"), "\nFlags:\n")
	known := map[string]bool{}
	for _, verb := range idle {
		known[verb] = true
	}
	seen := 0
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+) +[A-Z]`).FindAllStringSubmatch(list+more, -1) {
		verb := m[1]
		seen++
		if calling[verb] == nil && !known[verb] {
			w.t.Errorf("the verb %s is in no table", verb)
		}
	}
	if seen < 40 {
		w.t.Errorf("help lists %d verbs", seen)
	}
	for _, call := range calling {
		call(w)
	}
}

// page calls the tool by "Try it" on the page.
func (w *walk) page() {
	dir := filepath.Dir(socketPath(w.t))
	cmd := exec.CommandContext(w.t.Context(), mcptest.Dynmcp(w.t), "ui", "--no-open", "-c", w.config)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "TMPDIR="+dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = cmd.Wait() }) // it was interrupted
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	address := regexp.MustCompile(`^(http://[^/]+/)#code=(\S+)`).FindStringSubmatch(line)
	if address == nil {
		w.t.Fatalf("there is no address in %q", line)
	}
	token := ""
	post := func(path, body string, answer any) string {
		r, err := http.NewRequestWithContext(w.t.Context(), "POST", address[1]+path, strings.NewReader(body))
		if err != nil {
			w.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			w.t.Fatal(err)
		}
		defer got.Body.Close()
		var raw json.RawMessage
		if err := json.NewDecoder(got.Body).Decode(&raw); err != nil || json.Unmarshal(raw, answer) != nil {
			w.t.Fatalf("%s: %d, %v, %s", path, got.StatusCode, err, raw)
		}
		return string(raw)
	}
	var login struct{ Token string }
	post("api/login", fmt.Sprintf(`{"code":%q}`, address[2]), &login)
	token = login.Token
	var places []struct{ ID string }
	post("api/places", `{}`, &places)
	for _, place := range places {
		var done struct{ OK bool }
		answer := post("api/do", fmt.Sprintf(`{"place":%q,"act":"call","server":"alpha","tool":"echo","arguments":"{}"}`, place.ID), &done)
		w.refused("the page", answer)
	}
	if len(places) == 0 {
		w.t.Error("the page has no place")
	}
}
