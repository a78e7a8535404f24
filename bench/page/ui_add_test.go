//go:build e2e

package page

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A server is found in a registry, its variables are asked for, its command is shown, and it is added
// and started. Its secret is neither in an argument nor in the config.
func TestUIAdds(t *testing.T) {
	registry := mcptest.ServeRegistry(t, `{"name": "io.example/weather", "description": "Forecasts by city.", "version": "1.2.0", "packages": [
		{"registryType": "npm", "identifier": "@example/weather", "version": "1.2.0", "transport": {"type": "stdio"}, "environmentVariables": [
			{"name": "WEATHER_API_KEY", "description": "A key", "isRequired": true, "isSecret": true},
			{"name": "UNITS", "choices": ["metric", "imperial"], "default": "metric"}]}]}`)
	d := newDesk(t)
	home := filepath.Dir(d.config)
	bin := filepath.Join(home, "bin")
	for path, text := range map[string]string{
		filepath.Join(bin, "npx"):                        "#!/bin/sh\nexec " + mcptest.Fake(t) + " -name weather\n",
		filepath.Join(home, "config/dynmcp/config.json"): fmt.Sprintf(`{"registries": [%q], "mcp": {}}`, registry.URL),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.variables = append(d.variables, "XDG_CONFIG_HOME="+filepath.Join(home, "config"), "PATH="+bin+":"+os.Getenv("PATH"), "DYNMCP_KEYRING=off")
	p := openTab(t, d.serve())
	p.has("main .name", "files")
	p.view("Add a server")
	p.wait("!!document.getElementById('find')")
	p.fill("#find", "weather")
	p.press("form button", "Search")
	p.press(".tool summary", "io.example/weather")
	p.press("button", "Add io.example/weather by npm")
	p.wait("!!document.getElementById('show-add')")
	if kind := value[string](p, "document.getElementById('need-WEATHER_API_KEY').type"); kind != "password" {
		t.Errorf("a secret is typed into a field of type %s", kind)
	}
	p.fill("#need-WEATHER_API_KEY", "s3cret-CANARY")
	p.press("dialog button", "Show what will run")
	p.has("dialog pre", "npx -y @example/weather@1.2.0")
	p.has("dialog .command", "dynmcp add io.example/weather@1.2.0 --via=npm --name=weather")
	if shown := value[string](p, "document.body.textContent"); strings.Contains(shown, "CANARY") {
		t.Error("the page shows the secret")
	}
	if strings.Contains(d.read(), "weather") {
		t.Error("the config has changed before the confirmation")
	}
	p.press("dialog button", "Write this change")
	p.has("dialog", "Done")
	if text := d.read(); !strings.Contains(text, "@example/weather@1.2.0") || !strings.Contains(text, "// kept") || strings.Contains(text, "CANARY") {
		t.Errorf("the config is now\n%s", text)
	}
	kept, err := os.ReadFile(filepath.Join(home, ".env"))
	if err != nil || !strings.Contains(string(kept), "WEATHER_API_KEY=s3cret-CANARY") {
		t.Errorf("the .env is %q, %v", kept, err)
	}
	p.press("dialog button", "Start it")
	p.has("dialog pre", "PASS")
	p.press("dialog button", "Close")
	p.view("Servers")
	p.has(".server .name", "weather")
}

// The texts for a model are shown by profile and by host.
func TestUIReadsByProfileAndHost(t *testing.T) {
	d := newDesk(t)
	text := strings.Replace(d.read(), `"activity"`, `"profiles": {"few": {"servers": ["notes"]}}, "use_tool": "auto", "activity"`, 1)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := openTab(t, d.address)
	p.has("main .name", "files")
	p.view("What the model reads")
	p.has("main pre", "broken")
	choose := func(name, option string) {
		t.Helper()
		p.wait(fmt.Sprintf(`(e => { if (!e) return false; e.value = %q; e.dispatchEvent(new Event("change")); return e.value === %[1]q })(document.querySelector("select[aria-label=%s]"))`, option, name))
	}
	choose("Profile", "few")
	p.wait(`(t => t.includes("Keeps notes.") && !t.includes("broken"))([...document.querySelectorAll("main pre")].map(e => e.textContent).join())`)
	choose("Host", "claude-code")
	p.has("main h2", "use_tool_read")
	if address := value[string](p, "location.hash"); !strings.Contains(address, "profile=few") || !strings.Contains(address, "host=claude-code") {
		t.Errorf("the link is %q", address)
	}
}

// The page of a gateway requires its token, shows this run alone, and allows changes only if the
// config does.
func TestUIOfServe(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "mcp.json")
	serve := func(more string) (address string) {
		t.Helper()
		text := fmt.Sprintf(`{"mcp": {"files": {"command": %s, "args": ["-name", "files"], "description": "Files."}}, "gateway": {%s}}`, quote(mcptest.Fake(t)), more)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run := mcptest.Run(t, mcptest.HostOptions{
			Args: []string{mcptest.Dynmcp(t), "serve", "--http", "127.0.0.1:0", "-c", config, "--debug-http", "127.0.0.1:0"}, Env: private(dir), Lingers: true,
		})
		return regexp.MustCompile(`http://[0-9.:]+/debug`).FindString(run.WaitStderr("/debug\n"))
	}
	ask := func(address, path, token, body string) (status int, text string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(address, "debug")+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		all, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(all)
	}
	open := serve("")
	if status, _ := ask(open, "api/places", "", "{}"); status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
		t.Errorf("without a token there is a page: %d", status)
	}
	fixed := serve(`"token": "s3cret"`)
	for token, want := range map[string]int{"": 401, "wrong": 401, "s3cret": 200} {
		if status, text := ask(fixed, "api/places", token, "{}"); status != want {
			t.Errorf("token %q: %d %s, want %d", token, status, text, want)
		}
	}
	_, text := ask(fixed, "api/places", "s3cret", "{}")
	var places []struct {
		ID    string
		Fixed bool
	}
	if err := json.Unmarshal([]byte(text), &places); err != nil || len(places) != 1 || !places[0].Fixed {
		t.Fatalf("the places are %s (%v), want only this run, without changes", text, err)
	}
	before, _ := os.ReadFile(config)
	for _, act := range []string{"disable", "describe", "call", "approve", "start", "stop", "restart", "test", "find", "add", "add api"} {
		status, text := ask(fixed, "api/do", "s3cret", fmt.Sprintf(`{"place":%q,"act":%q,"server":"files","tool":"echo","arguments":"{}","text":"x"}`, places[0].ID, act))
		if status != http.StatusConflict || !strings.Contains(text, "this page changes nothing") {
			t.Errorf("%s: %d %s", act, status, text)
		}
	}
	if after, _ := os.ReadFile(config); string(after) != string(before) {
		t.Error("the config has changed")
	}
	p := openTab(t, strings.Replace(strings.TrimSuffix(fixed, "debug"), "http://", "http://operator:s3cret@", 1)+"ui/")
	p.do(chromedp.Navigate(strings.TrimSuffix(fixed, "debug") + "ui/")) // the browser knows the password now
	p.has("#messages", "")
	p.view("Servers")
	p.wait(`!document.getElementById("messages")`)
	p.press(".server summary", "files")
	p.has(".server dd", "Files.")
	if n := value[int](p, "document.querySelectorAll('.server button').length"); n != 0 {
		t.Errorf("there are %d buttons", n)
	}

	changes := serve(`"token": "s3cret", "ui": "change"`)
	_, text = ask(changes, "api/places", "s3cret", "{}")
	if err := json.Unmarshal([]byte(text), &places); err != nil || len(places) != 1 || places[0].Fixed {
		t.Fatalf("the places are %s (%v)", text, err)
	}
	if status, text := ask(changes, "api/do", "s3cret", fmt.Sprintf(`{"place":%q,"act":"disable","server":"files"}`, places[0].ID)); status != 200 {
		t.Errorf("disable: %d %s", status, text)
	}
	if after, _ := os.ReadFile(config); !strings.Contains(string(after), `"disabled": true`) {
		t.Errorf("the config is still %s", after)
	}
}

// With 100 servers and 10,000 calls the page draws only the visible rows, and uses less than 50 MB.
func TestUILarge(t *testing.T) {
	d := newDesk(t)
	var more strings.Builder
	for n := range 96 {
		fmt.Fprintf(&more, `"server-%d": { "command": %s, "description": "Does thing %d." },`, n, quote(mcptest.Fake(t)), n)
	}
	if err := os.WriteFile(d.config, []byte(strings.Replace(d.read(), `"mcp": {`, `"mcp": {`+more.String(), 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5_000 { // calls that are alike would be one row
		d.use("files/echo", "x")
		d.use("notes/echo", "x")
	}
	p := openTab(t, d.address)
	p.wait("document.querySelectorAll('.server').length === 100")
	value[bool](p, "(window.longest = 0, new PerformanceObserver(list => list.getEntries().forEach(e => longest = Math.max(longest, e.duration))).observe({type: 'longtask'}), true)")
	p.view("Calls")
	p.has("[role=status]", "10,000 of 10,000 calls")
	if rows := value[int](p, "document.querySelectorAll('.call').length"); rows != 200 {
		t.Errorf("%d rows are drawn, want 200", rows)
	}
	p.fill("#filter", "files")
	p.has("[role=status]", "of 10,000 calls")
	p.view("Servers")
	p.wait("document.querySelectorAll('.server').length === 100")
	used := value[int64](p, "performance.memory.usedJSHeapSize")
	t.Logf("the longest task took %.0f ms, the heap is %d MB", value[float64](p, "longest"), used>>20)
	if used > 50<<20 {
		t.Errorf("the page takes %d MB", used>>20)
	}
	if n := value[int](p, "document.querySelectorAll('*').length"); n > 5000 {
		t.Errorf("there are %d elements", n)
	}
}

// A call that waits for a person's answer is shown and can be allowed on the page.
func TestUIAnswersQuestions(t *testing.T) {
	dir := t.TempDir()
	d := &desk{t: t, config: filepath.Join(dir, "mcp.json"), variables: private(dir)}
	text := fmt.Sprintf(`{"mcp": {"notes": {"command": %s, "args": ["-name", "notes"], "description": "Keeps notes."}}, "policy": [{"do": "ask"}]}`, quote(mcptest.Fake(t)))
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	defer close(open)
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", d.config}, Env: d.variables, OnRequest: map[string]func(json.RawMessage) (any, error){
		"elicitation/create": func(json.RawMessage) (any, error) { <-open; return `{"action":"cancel"}`, nil },
	}})
	host.Initialize("2025-11-25", `{"elicitation":{}}`)
	call := host.Go("tools/call", json.RawMessage(`{"name":"use_tool","arguments":{"tool_name":"notes/echo","tool_input":{"n":7}}}`))
	p := openTab(t, d.serve())
	p.has(".question", "notes/echo")
	p.has(".question pre", `{"n":7}`)
	p.press(".question button", "Allow it once")
	p.has("dialog", "Done")
	p.has("dialog .command", "dynmcp answer ")
	if m := call.Wait(); !strings.Contains(m.Text(), `{"n":7}`) {
		t.Errorf("the call: %s", m.Raw)
	}
	p.press("dialog button", "Close")
	p.wait("!document.querySelector('.question')")

	call = host.Go("tools/call", json.RawMessage(`{"name":"use_tool","arguments":{"tool_name":"notes/echo","tool_input":{"n":8}}}`))
	p.has(".question pre", `{"n":8}`)
	p.press(".question button", "Always allow notes/echo")
	p.has("dialog .command", "dynmcp set notes policy.echo=allow")
	p.press("dialog button", "Write this change")
	p.has("dialog", "Done")
	if text := d.read(); !strings.Contains(text, `"allow"`) {
		t.Errorf("there is no rule in\n%s", text)
	}
	p.press("dialog button", "Allow this call, too")
	if m := call.Wait(); !strings.Contains(m.Text(), `{"n":8}`) {
		t.Errorf("the call: %s", m.Raw)
	}
	p.has("dialog .command", "dynmcp answer ")
	p.press("dialog button", "Close")
}

// Of 2,000 tools a hundred are drawn at a time, so that no step takes longer as there are more.
func TestUIPagesTools(t *testing.T) {
	d := newDesk(t)
	p := openTab(t, d.address)
	p.has("main .name", "files")
	value[bool](p, `(api = (old => async (name, query) => name !== "search" ? old(name, query) : {answer: "", tokens: 0, all: 2000,
		tools: Array.from({length: 2000}, (_, i) => ({name: "many/tool" + (i + 1), server: "many", tool: "tool" + (i + 1), summary: "Does a thing."}))})(api),
		made = 0, most = 0, toolRow = (old => (...all) => { made++; return old(...all); })(toolRow), draw = (old => (...all) => { old(...all); most = Math.max(most, made); made = 0; })(draw), true)`)
	p.view("Tools")
	p.has("main h2", "1 to 100")
	p.press("#next", "Next")
	p.has("main h2", "101 to 200")
	p.has(".tool .name", "many/tool101")
	if rows := value[int](p, "document.querySelectorAll('.tool').length"); rows != 100 {
		t.Errorf("%d tools are shown, want 100", rows)
	}
	if most := value[int](p, "most"); most != 100 {
		t.Errorf("%d rows are made in one step, want 100", most)
	}
	if !value[bool](p, "document.activeElement !== document.body || !document.getElementById('next').disabled") {
		t.Error("the keyboard is lost")
	}
}
