//go:build e2e

package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// hostile is a description of a server that must be shown as text.
const hostile = markup + " \u202egnp.exe \u200b"

// A desk is a run of dynmcp of a user, and its page.
type desk struct {
	t               *testing.T
	variables       []string
	config, address string // the address has the code
	host            *mcptest.Host
}

// private returns the environment of a user without other runs and state.
func private(dir string) []string {
	return []string{"XDG_RUNTIME_DIR=" + dir, "TMPDIR=" + dir, "HOME=" + dir, "XDG_STATE_HOME=" + dir}
}

// emptyDesk returns a desk in a directory of its own, with the name of a config that is to be written. The directory
// has a short name, since sockets are in it.
func emptyDesk(t *testing.T) *desk {
	t.Helper()
	dir, err := os.MkdirTemp("", "ui")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &desk{t: t, config: filepath.Join(dir, "mcp.json"), variables: private(dir)}
}

func (d *desk) write(config []byte) {
	d.t.Helper()
	if err := os.WriteFile(d.config, config, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := emptyDesk(t)
	text := fmt.Sprintf(`{
  // the servers
  "mcp": {
    "files": { "command": %[1]s, "args": ["-name", "files"] }, // kept
    "notes": { "command": %[1]s, "args": ["-name", "notes"], "description": "Keeps notes." },
    "evil": { "command": %[1]s, "args": ["-name", "evil"], "description": %[2]s, "pins": "block" },
    "broken": { "command": "/bin/sh", "args": ["-c", "echo 'no database <b>here</b>' >&2; exit 3"], "description": "Breaks." }
  },
  "activity": { "arguments": true, "results": true }
}
`, quote(mcptest.Fake(t)), quote(hostile))
	d.write([]byte(text))
	d.host = mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", d.config}, Env: d.variables})
	d.host.Initialize("2025-11-25", nil)
	d.use("files/echo", "hello")
	d.use("notes/echo", markup)
	d.use("broken/x", "")
	d.address = d.serve()
	return d
}

// serve starts "dynmcp ui" and returns the address with the code.
func (d *desk) serve() string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), mcptest.Dynmcp(d.t), "ui", "--no-open", "-c", d.config)
	cmd.Env = append(os.Environ(), d.variables...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = cmd.Wait() }) // it was interrupted
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func (d *desk) use(tool, message string) {
	d.t.Helper()
	d.host.Call("tools/call", json.RawMessage(fmt.Sprintf(`{"name":"use_tool","arguments":{"tool_name":%q,"tool_input":{"message":%s}}}`, tool, quote(message))))
}

// has waits until an element contains a text.
func (p *tab) has(selector, text string) {
	p.t.Helper()
	p.wait("[...document.querySelectorAll(" + quote(selector) + ")].some(e => e.textContent.includes(" + quote(text) + "))")
}

// press clicks a button or a row by its name.
func (p *tab) press(selector, name string) {
	p.t.Helper()
	find := "[...document.querySelectorAll(" + quote(selector) + ")].find(e => (e.getAttribute('aria-label') || e.textContent).includes(" + quote(name) + "))"
	p.wait("(e => e ? (e.click(), true) : false)(" + find + ")")
}

// fill appends a text to a field in one step, because the page may be redrawn between two steps.
func (p *tab) fill(selector, text string) {
	p.t.Helper()
	value[bool](p, "(e => { e.focus(); e.value += "+quote(text)+"; e.dispatchEvent(new Event('input', {bubbles: true})); return true })(document.querySelector("+quote(selector)+"))")
}

func (p *tab) view(name string) { p.press("nav a", name) }

// The page shows a run, and changes servers and config like the commands that it shows.
func TestUI(t *testing.T) {
	d := newDesk(t)
	p := openTab(t, d.address)
	p.has("main .name", "files")
	if value[bool](p, "location.href.includes('code')") {
		t.Error("the code stays in the address")
	}
	p.press(".server summary", "broken")
	p.has(".server pre", "no database <b>here</b>")
	p.press(".server summary", "files")
	p.press("button", "Restart files")
	p.has("dialog", "Done")
	p.has("dialog .command", "dynmcp restart files --run ")
	p.press("dialog button", "Close")
	p.wait("[...document.querySelectorAll('.server dd')].some(e => e.textContent === '2')")

	p.press(".server summary", "notes")
	p.press("button", "Edit description of notes")
	p.wait("!!document.getElementById('description')")
	p.fill("#description", " And finds them.")
	p.has("dialog pre", "Keeps notes. And finds them.")
	p.press("dialog button", "Show the change")
	p.has("dialog pre", "+    \"notes\"")
	if text := d.read(); strings.Contains(text, "finds them") {
		t.Error("the config has changed before the confirmation")
	}
	p.press("dialog button", "Write this change")
	p.has("dialog", "Done")
	p.has("dialog .command", "dynmcp set notes '--description=Keeps notes. And finds them.'")
	if text := d.read(); !strings.Contains(text, `"description": "Keeps notes. And finds them."`) || !strings.Contains(text, "// kept") {
		t.Errorf("the config is now\n%s", text)
	}
	p.press("dialog button", "Close")
	p.press("button", "Disable notes")
	p.press("dialog button", "Write this change")
	p.has("dialog", "Done")
	p.press("dialog button", "Close")
	p.has(".server .disabled", "disabled")
	if !strings.Contains(d.read(), `"disabled": true`) {
		t.Error("the server is not disabled")
	}
	p.press("button", "Enable notes")
	p.press("dialog button", "Write this change")
	p.has("dialog", "Done")
	p.press("dialog button", "Close")
}

func (d *desk) read() string {
	d.t.Helper()
	text, err := os.ReadFile(d.config)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// Tools are searched like a model does, and tried with a form. Calls, decisions and the texts for the
// model are shown.
func TestUIViews(t *testing.T) {
	d := newDesk(t)
	p := openTab(t, d.address)
	p.has("main .name", "files")
	if !value[bool](p, "(document.querySelector('.server summary').click(), open.has(document.querySelector('.server').dataset.key))") {
		t.Error("a row that was just opened is closed if the view is drawn again")
	}
	p.view("Tools")
	p.wait("!!document.getElementById('search')")
	p.fill("#search", "echo")
	p.press("form button", "Search")
	p.has("#answer", "files/echo")
	p.has("summary", " tokens")
	p.press(".tool summary", "files/echo")
	p.has("pre.typescript", "echo")
	p.press("button", "Try it… files/echo")
	p.wait("!!document.getElementById('json')")
	value[bool](p, `(document.getElementById('json').value = '{"message": "tried"}', document.getElementById('call').click(), true)`)
	p.has("#result pre", `{"message":"tried"}`)
	p.has("#result .command", "dynmcp call files/echo")
	p.press("dialog button", "Close")

	p.view("Calls")
	p.has(".call .name", "broken")
	p.press("button", "Failed first")
	p.wait("location.hash.includes('order=failed') && document.querySelector('button[data-key=order]').getAttribute('aria-pressed') === 'true'")
	if first := value[string](p, "document.querySelector('.call summary').textContent"); !strings.Contains(first, "broken") {
		t.Errorf("the first call is %q, not the one that failed", first)
	}
	p.press("button", "Failed first")
	d.use("files/echo", "while it is looked at")
	p.wait("[...document.querySelectorAll('.call .name')].filter(e => e.textContent === 'files/echo').length === 2")
	p.press(".call summary", "notes/echo")
	p.has(".call pre", "<img src=x onerror=")
	p.press(".call button", "Waterfall of this session")
	p.wait("document.querySelectorAll('svg rect').length >= 3")
	if address := value[string](p, "location.hash"); !strings.Contains(address, "session=") || strings.Contains(address, "order=") {
		t.Errorf("the link is %q", address)
	}

	p.view("Decisions")
	p.has("main", "dynmcp doctor")
	p.has("main h3", "evil")
	p.view("What the model reads")
	p.has("main h2", "tokens at the start of a session")
	p.has("main pre", "Keeps notes.")
	if title := value[string](p, "document.title"); title != "dynmcp" || value[int](p, "document.images.length") != 0 {
		t.Errorf("a text became markup: %q", title)
	}
}

// Changes of pinned tools can be approved on the page.
func TestUIApproves(t *testing.T) {
	d := newDesk(t)
	cmd := exec.CommandContext(t.Context(), mcptest.Dynmcp(t), "warm", "-c", d.config)
	cmd.Env = append(os.Environ(), d.variables...)
	if out, err := cmd.CombinedOutput(); err != nil && !strings.Contains(string(out), "evil") {
		t.Fatalf("%v\n%s", err, out)
	}
	p := openTab(t, d.address)
	p.has("main .name", "files")
	p.view("Decisions")
	p.press("main button", "Approve evil/echo")
	p.press("dialog button", "Approve")
	p.has("dialog .command", "dynmcp approve evil/echo --all")
	p.has("dialog", "Done")
	p.press("dialog button", "Close")
	p.wait("![...document.querySelectorAll('main button')].some(e => e.getAttribute('aria-label') === 'Approve evil/echo')")
	p.press("main button", "Approve all of evil")
	p.press("dialog button", "Approve")
	p.has("dialog .command", "dynmcp approve evil --all")
	p.has("dialog", "Done")
	lock, err := os.ReadFile(filepath.Join(filepath.Dir(d.config), "dynmcp.lock"))
	if err != nil || !strings.Contains(string(lock), "evil") {
		t.Errorf("the lock: %v\n%s", err, lock)
	}
}

// Without the code, neither a page of another site in the same browser nor a program of another user
// can read or change anything.
func TestUIRefusesOthers(t *testing.T) {
	d := newDesk(t)
	base, code, _ := strings.Cut(d.address, "/#code=")
	ask := func(header ...string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/places", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			if header[i] == "Host" {
				r.Host = header[i+1]
			}
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 && strings.Contains(string(text), "files") {
			t.Errorf("it says %s", text)
		}
		return resp.StatusCode
	}
	p := openTab(t, d.address)
	p.has("main .name", "files")
	token := "Bearer " + value[string](p, "localStorage.getItem('dynmcp-ui-token')")
	for _, c := range []struct {
		want   int
		header []string
	}{
		{200, []string{"Authorization", token}},
		{401, nil},
		{401, []string{"Authorization", "Bearer " + code}},
		{403, []string{"Authorization", token, "Host", "evil.example"}},
		{403, []string{"Authorization", token, "Origin", "http://evil.example"}},
		{403, []string{"Authorization", token, "Origin", "null"}},
		{403, []string{"Authorization", token, "Sec-Fetch-Site", "cross-site"}},
		{403, []string{"Authorization", token, "Sec-Fetch-Site", "same-site"}},
		{403, []string{"Authorization", token, "Content-Type", "text/plain"}},
	} {
		if got := ask(c.header...); got != c.want {
			t.Errorf("%q: status %d, want %d", c.header, got, c.want)
		}
	}
	again := openTab(t, d.address) // another browser
	again.has("main", "the code was used already")

	// A page of another port is of the same site, so that cookies would be sent.
	before := d.read()
	p.do(chromedp.Navigate("about:blank"))
	evil := site(t, `<script>
		const tries = [
			fetch("`+base+`/api/places", {method: "POST", body: "{}", credentials: "include"}).then(r => r.text()),
			fetch("`+base+`/api/do", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"act":"disable","server":"files"}', credentials: "include"}).then(r => r.text()),
			fetch("`+base+`/", {credentials: "include"}).then(r => r.text()),
		];
		Promise.allSettled(tries).then(all => document.title = all.map(r => r.status).join());
	</script><iframe src="`+base+`"></iframe><form method="post" action="`+base+`/api/do" enctype="text/plain"><input name='{"act":"disable","server":"files","x":"' value='"}'></form>`)
	p.do(chromedp.Navigate(evil))
	p.wait("document.title === 'rejected,rejected,rejected'")
	value[bool](p, "(document.forms[0].submit(), true)")
	p.wait("document.body?.textContent.includes('from another')")
	if d.read() != before {
		t.Error("the config has changed")
	}
	if cookies := value[string](p, "document.cookie"); cookies != "" {
		t.Errorf("there are cookies: %q", cookies)
	}
}

// site serves a page on another port, and returns its address.
func site(t *testing.T, text string) string {
	t.Helper()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(other.Close)
	return other.URL
}

// In each view, at three widths, light and dark, nothing is wider than the screen, and axe finds
// nothing. DYNMCP_SHOTS names a directory for screenshots.
func TestUISizes(t *testing.T) {
	axe := axeCore(t)
	d := newDesk(t)
	p := openTab(t, d.address)
	p.has("main .name", "files")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 1280, 2560} {
			p.do(chromedp.EmulateViewport(width, 900), chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
				_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
				})
				return err
			}))
			for _, view := range []string{"servers", "tools", "calls", "decisions", "reads", "add"} {
				value[bool](p, "(location.hash = "+quote(view)+", true)")
				p.wait("document.querySelector('nav a[aria-current]')?.hash.startsWith('#" + view + "')")
				p.wait(map[string]string{
					"servers": "document.querySelectorAll('.server').length === 4", "tools": "!!document.querySelector('.tool')", "calls": "!!document.querySelector('.call')",
					"decisions": "document.body.textContent.includes('dynmcp doctor')", "reads": "document.querySelectorAll('main pre').length > 1",
					"add": "!!document.getElementById('find')",
				}[view])
				value[bool](p, "(document.querySelectorAll('main details:not([open]) > summary')[0]?.click(), true)")
				if wide := value[int64](p, "document.documentElement.scrollWidth"); wide > width {
					t.Errorf("%s at %d is %d wide", view, width, wide)
				}
				if found := promised(p, axe+`; axe.run().then(r => r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html).slice(0, 3).join(" ")).join("\n"))`); found != "" {
					t.Errorf("%s at %d, %s:\n%s", view, width, scheme, found)
				}
				p.keep(fmt.Sprintf("%s-%d-%s.png", view, width, scheme))
			}
		}
	}
}

// promised returns the result of the promise of an expression.
func promised(p *tab, expression string) string {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

func (p *tab) keep(name string) {
	dir := os.Getenv("DYNMCP_SHOTS")
	if dir == "" {
		return
	}
	shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), shot, 0o600)
	}
	if err != nil {
		p.t.Error(err)
	}
}

// axeCore returns the script of axe-core, from npm.
func axeCore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "npm", "install", "--silent", "--ignore-scripts", "axe-core@4.14.1")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
