//go:build e2e

// Package page tests the pages of dynmcp in a browser. .ci/run runs the tests if there is one.
package page

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// markup is a name that would add an image and run a script if a page inserted it as HTML.
const markup = `<img src=x onerror="document.title='it ran'">`

// A tab is a page in a browser of its own.
type tab struct {
	t   *testing.T
	ctx context.Context
}

func openTab(t *testing.T, url string) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("these tests drive chromium: ", err)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &tab{t, ctx}
	p.do(chromedp.Navigate(url))
	return p
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// value returns the value of a JavaScript expression in a page.
func value[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// wait waits until an expression is true.
func (p *tab) wait(expression string) {
	p.t.Helper()
	mcptest.Eventually(p.t, expression, func() bool { return value[bool](p, expression) })
}

// lines is an expression for the messages of the page, newest first.
const lines = `[...document.querySelectorAll("#messages summary .what")].map(e => e.textContent)`

func (p *tab) waitLine(line string) {
	p.t.Helper()
	p.wait(lines + ".some(e => e.startsWith(" + quote(line) + "))")
}

// focus presses Tab until an element has the focus: all elements must be reachable without a mouse.
func (p *tab) focus(selector string) {
	p.t.Helper()
	for range 40 {
		if value[bool](p, "document.activeElement.matches("+quote(selector)+")") {
			return
		}
		p.do(chromedp.KeyEvent(kb.Tab))
	}
	p.t.Fatalf("Tab does not lead to %s", selector)
}

// begin performs the handshake with a gateway over HTTP, with a name.
func begin(t *testing.T, url, name string) *mcptest.Client {
	t.Helper()
	c := mcptest.NewClient(t, url)
	r := c.Post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":` + quote(name) + `,"version":"1"}}}`)
	if c.Session = r.Header.Get("Mcp-Session-Id"); c.Session == "" {
		t.Fatalf("no session: status %d, %v, body %s", r.Status, r.Err, r.Body)
	}
	return c
}

func quote(text string) string {
	quoted, _ := json.Marshal(text) // a string always marshals
	return string(quoted)
}

func TestDebugPage(t *testing.T) {
	tool := fmt.Sprintf(`{"name":%s,"inputSchema":{"type":"object"}}`, quote(markup))
	config := mcptest.Config(t, fmt.Sprintf(`{"startup_wait":"60s","mcp":{"files":{"command":%s,"args":["-name","files","-tool",%s]},"broken":{"command":%s,"load":"eager"},
		"boxed":{"command":%s,"args":["-name","boxed"],"sandbox":{"network":["api.example.com"]}}}}`,
		quote(mcptest.Fake(t)), quote(tool), quote(markup), quote(mcptest.Fake(t))))
	dynmcp := mcptest.Run(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "serve", "--http", "127.0.0.1:0", "-c", config, "--debug-http", "127.0.0.1:0"}, Lingers: true})
	url := regexp.MustCompile(`(https?://[0-9.:]+)/mcp\n`).FindStringSubmatch(dynmcp.WaitStderr("/mcp\n"))[1] + "/mcp/files"
	at := regexp.MustCompile(`http://[0-9.:]+/debug`).FindString(dynmcp.WaitStderr("/debug\n"))
	p := openTab(t, at)
	p.has(".server .name", "files")

	// Calls appear with their names as text.
	web := begin(t, url, "t")
	called := func(id int, tool, arguments string) {
		t.Helper()
		r := web.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, id, mcptest.ToolParams(tool, arguments)))
		if r.Last().Result == nil {
			t.Fatalf("status %d, %v, got %s", r.Status, r.Err, r.Body)
		}
		p.wait(fmt.Sprintf(`Number(document.querySelector("[data-key=\"live/files\"] .number:nth-child(5)").textContent.split(" ")[0]) >= %d`, id))
	}
	if listed := web.Call("tools/list", struct{}{}); !strings.Contains(string(listed.Result), "onerror") {
		t.Fatalf("the tool is not listed: %.300s", listed.Result)
	}
	called(1, markup, `{"word":"first","n":12345678901234567890.0}`)
	p.waitLine("tools/call #1 " + markup)
	p.waitLine("result #1 · " + markup + " · done · ")
	// The name of a host and an error appear as text too.
	begin(t, url, markup)
	p.wait(`[...document.querySelectorAll("#sessions td")].some(e => e.textContent === ` + quote(markup) + `)`)
	p.has(".server .below", "onerror=")
	text := func() {
		t.Helper()
		if n := value[int](p, `document.images.length`); n != 0 {
			t.Errorf("there are %d images", n)
		}
		if title := value[string](p, `document.title`); title != "dynmcp" {
			t.Errorf("the title is %q", title)
		}
	}
	text()

	// Refusals of a sandbox appear below the server.
	begin(t, strings.Replace(url, "/mcp/files", "/mcp/boxed", 1), "t").Call("tools/call", mcptest.ToolParams("get", `{"name":"http://evil.example.com/"}`))
	p.has(".server .below", "1 connection refused, last: the sandbox does not allow evil.example.com:80")

	// By keyboard: open a message, search, choose a direction, pause.
	for _, selector := range []string{".server summary", `[aria-label=sessions]`, "#search", "#direction", "#session", "#pause", "#clear"} {
		p.focus(selector)
	}
	p.focus("#search")
	p.do(chromedp.KeyEvent("FIRST"))
	p.wait(lines + `.length === 2`) // the call, and its echo
	p.waitLine("tools/call #1 " + markup)
	p.focus("#direction")
	p.do(chromedp.KeyEvent(kb.ArrowDown)) // from hosts
	p.wait(lines + `.length === 1`)
	p.focus("#messages summary")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.wait(`(document.querySelector("#messages details[open] pre") || {textContent: ""}).textContent.includes('"word": "first",\n      "n": 12345678901234567890.0')`)
	text()
	p.focus("#direction")
	p.do(chromedp.KeyEvent(kb.ArrowUp)) // both ways
	p.focus("#search")
	p.do(chromedp.KeyEvent(strings.Repeat(kb.Backspace, len("first"))))
	p.wait(lines + `.length > 4`)

	p.focus("#pause")
	p.do(chromedp.KeyEvent(" "))
	p.wait(`document.querySelector("#pause").ariaPressed === "true"`)
	called(2, "echo", `{"word":"second"}`)
	p.wait(`document.querySelector("#note").textContent.startsWith("2 more")`)
	if got := value[[]string](p, lines); slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, "result #2") }) {
		t.Errorf("a message during the pause is shown: %q", got)
	}
	p.do(chromedp.KeyEvent(" "))
	p.waitLine("result #2 · echo · done · ")
	p.focus("#clear")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.wait(lines + `.length === 0`)
	called(3, "echo", `{"word":"third"}`)
	p.waitLine("result #3 · echo · done · ")
	p.focus("#messages summary")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.wait(`document.querySelector("#messages details[open] pre") !== null`)

	// It is readable in both colour schemes, and on a phone without horizontal scrolling.
	axe := axeCore(t)
	for _, scheme := range []string{"light", "dark"} {
		p.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		}))
		p.wait(`matchMedia("(prefers-color-scheme: ` + scheme + `)").matches`)
		if faint := value[[]string](p, faint); len(faint) > 0 {
			t.Errorf("%s: less than 4.5 of contrast (WCAG 2.2, 1.4.3): %q", scheme, faint)
		}
		if found := promised(p, axe+`; axe.run().then(r => r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html).slice(0, 3).join(" ")).join("\n"))`); found != "" {
			t.Errorf("%s:\n%s", scheme, found)
		}
		p.keep("gateway-" + scheme + ".png")
	}
	p.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	p.wait(`innerWidth === 360`)
	if wide := value[[]string](p, `[...document.querySelectorAll("body, body *")]
		.filter(e => !e.closest(".scroll > table") && e.getBoundingClientRect().right > 360).map(e => e.outerHTML.slice(0, 200))`); len(wide) > 0 {
		t.Errorf("wider than a phone: %q", wide)
	}
	if got := value[int](p, `document.documentElement.scrollWidth`); got > 360 {
		t.Errorf("the page is %d wide on a phone of 360", got)
	}
	p.focus("#search")
	text()
}

// faint is an expression for the elements whose text has too little contrast.
const faint = `(() => {
	const part = c => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
	const light = ([r, g, b]) => .2126 * part(r) + .7152 * part(g) + .0722 * part(b);
	const colour = text => text.match(/[\d.]+/g).map(Number);
	const behind = e => { // the first that is not transparent
		for (; e; e = e.parentElement) {
			const c = colour(getComputedStyle(e).backgroundColor);
			if (c.length === 3 || c[3] > 0) return c;
		}
	};
	return [...document.querySelectorAll("body *:not(script)")].filter(e => {
		if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) return false;
		if (e.tagName === "OPTION" || !e.getClientRects().length) return false;
		const [a, b] = [light(colour(getComputedStyle(e).color)), light(behind(e))].sort((a, b) => b - a);
		return (a + .05) / (b + .05) < 4.5;
	}).map(e => e.outerHTML.slice(0, 200));
})()`

func TestMain(m *testing.M) { mcptest.Main(m) }
