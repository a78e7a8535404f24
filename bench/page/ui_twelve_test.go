//go:build e2e

package page

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// named is the name of the element that has the focus, and its id.
const named = "(e => e === document.body ? '' : (e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent) + ' #' + e.id)(document.activeElement)"

// reach presses Tab until an element has the focus whose name or #id has a text.
func (p *tab) reach(name string) {
	p.t.Helper()
	at := ""
	for range 80 {
		p.do(chromedp.KeyEvent(kb.Tab))
		if at = value[string](p, named); strings.Contains(at, name) {
			return
		}
	}
	p.t.Fatalf("Tab does not lead to %q; it is at %q", name, at)
}

// choose presses Enter at an element that Tab leads to.
func (p *tab) choose(name string) {
	p.t.Helper()
	p.reach(name)
	p.do(chromedp.KeyEvent(kb.Enter))
}

// enter types a text into a field that Tab leads to.
func (p *tab) enter(name, text string) {
	p.t.Helper()
	p.reach(name)
	p.do(chromedp.KeyEvent(text))
}

// write chooses what changes the config, in the dialog that shows the change, and closes the dialog.
func (p *tab) write(d *desk, diff, want string) {
	p.t.Helper()
	p.has("dialog pre", diff)
	p.wait("document.activeElement.id === 'apply'") // it is next
	p.do(chromedp.KeyEvent(kb.Enter))
	p.has("dialog [role=status]", "Done")
	if text := d.read(); !strings.Contains(text, want) {
		p.t.Errorf("%s is not in the config\n%s", want, text)
	}
	p.leave()
}

// leave closes the dialog.
func (p *tab) leave() {
	p.t.Helper()
	p.choose("Close")
	p.wait("!document.getElementById('dialog').open")
}

// open opens the row of a server, from its view.
func (p *tab) open(server string) {
	p.t.Helper()
	p.choose("Servers")
	p.has(".server .name", server)
	row := "[...document.querySelectorAll('.server')].find(e => e.querySelector('.name').textContent.startsWith(" + quote(server) + "))?.open"
	if p.reach(server); !value[bool](p, row) {
		p.do(chromedp.KeyEvent(kb.Enter))
	}
	p.wait(row)
}

// newAsked is like newDesk, with a server whose calls a person is asked about, and the host's question.
func newAsked(t *testing.T) *desk {
	t.Helper()
	d := emptyDesk(t)
	text := fmt.Sprintf(`{
  "mcp": {
    "files": { "command": %[1]s, "args": ["-name", "files"], "description": "Reads files." },
    "notes": { "command": %[1]s, "args": ["-name", "notes"], "description": "Keeps notes." },
    "careful": { "command": %[1]s, "args": ["-name", "careful"], "description": "Deletes." },
    "fresh": { "command": %[1]s, "args": ["-name", "fresh"], "description": "Is new.", "pins": "block" },
    "broken": { "command": "/bin/sh", "args": ["-c", "echo 'no database here' >&2; exit 3"], "description": "Breaks." }
  },
  "policy": [{ "match": "careful/*", "do": "ask" }, { "do": "allow" }],
  "activity": {}
}
`, quote(mcptest.Fake(t)))
	d.write([]byte(text))
	cmd := exec.CommandContext(t.Context(), mcptest.Dynmcp(t), "warm", "-c", d.config)
	cmd.Env = append(os.Environ(), d.variables...)
	if out, err := cmd.CombinedOutput(); err != nil && !strings.Contains(string(out), "broken") {
		t.Fatalf("%v\n%s", err, out)
	}
	unanswered := make(chan struct{})
	d.host = mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", d.config}, Env: d.variables, OnRequest: map[string]func(json.RawMessage) (any, error){
		"elicitation/create": func(json.RawMessage) (any, error) { <-unanswered; return `{"action":"cancel"}`, nil },
	}})
	t.Cleanup(func() { close(unanswered) }) // before the host ends, which waits for it
	d.host.Initialize("2025-11-25", `{"elicitation":{}}`)
	d.use("broken/x", "")
	d.address = d.serve()
	return d
}

// What people do with the page, by the keyboard alone: no task needs a pointer. Each begins where the one before has
// ended. DYNMCP_SHOTS names a directory for a screenshot of each.
func TestUITwelveTasks(t *testing.T) {
	d := newAsked(t)
	p := openTab(t, d.address)
	p.do(chromedp.EmulateViewport(1100, 800))
	p.has("main .name", "files")
	shot := ""
	look := func() { p.keep("task-" + shot + ".png") }
	moves := func(act, state string) func() {
		return func() {
			p.open("files")
			p.choose(act + " files")
			p.has("dialog .command", "dynmcp "+strings.ToLower(act)+" files --run ")
			p.has("dialog [role=status]", "Done")
			look()
			p.leave()
			p.wait("placeNow().run.servers.find(s => s.name === 'files').state === '" + state + "'")
		}
	}
	for n, task := range []struct {
		name string
		do   func()
	}{
		{"see", func() {
			p.has(".totals", "servers5")
			p.has(".totals", "failed1")
			look()
		}},
		{"why", func() {
			p.open("broken")
			p.has(".server[open] pre", "no database here")
			look()
		}},
		{"start", moves("Start", "ready")},
		{"stop", moves("Stop", "idle")},
		{"describe", func() {
			p.open("notes")
			p.choose("Edit description of notes")
			p.wait("document.activeElement.id === 'description'")
			p.do(chromedp.KeyEvent(" And finds them."))
			p.has("dialog pre", "Keeps notes. And finds them.")
			look()
			p.choose("Show the change")
			p.write(d, `+    "notes"`, `"description": "Keeps notes. And finds them."`)
		}},
		{"disable", func() {
			p.open("notes")
			p.choose("Disable notes")
			p.has("dialog pre", `"disabled": true`)
			look()
			p.write(d, `"disabled": true`, `"disabled": true`)
			p.has(".server .disabled", "disabled")
		}},
		{"answer", func() {
			call := d.host.Go("tools/call", json.RawMessage(`{"name":"use_tool","arguments":{"tool_name":"careful/echo","tool_input":{"n":7}}}`))
			p.has(".question pre", `{"n":7}`)
			look()
			p.choose("Allow it once: careful/echo")
			p.has("dialog [role=status]", "Done")
			p.leave()
			if m := call.Wait(); !strings.Contains(m.Text(), `{"n":7}`) {
				t.Errorf("the call: %s", m.Raw)
			}
		}},
		{"try", func() {
			p.choose("Tools")
			p.has(".tool", "files/echo")
			p.choose("files/echo")
			p.choose("Try it… files/echo")
			p.wait("!!document.getElementById('json')")
			p.reach("The arguments as JSON")
			p.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(2)), chromedp.KeyEvent(`{"message":"tried"}`))
			p.choose("Call echo")
			p.has("#result pre", `{"message":"tried"}`)
			p.has("#result .command", "dynmcp call files/echo")
			look()
			p.leave()
		}},
		{"approve", func() {
			p.choose("Decisions")
			p.has("main button", "Approve")
			look()
			p.choose("Approve all of fresh")
			p.choose("Approve")
			p.has("dialog .command", "dynmcp approve fresh --all")
			p.has("dialog [role=status]", "Done")
			p.leave()
		}},
		{"reads", func() {
			p.choose("What the model reads")
			p.has("main h2", "tokens at the start of a session")
			p.has("main pre", "Deletes.")
			look()
		}},
		{"add", func() {
			p.choose("Add a server")
			p.wait("!!document.getElementById('command-name')")
			p.enter("#command-name", "clock")
			p.enter("Command and arguments", "/bin/sh -c 'exit 1'")
			p.enter("What it is good for", "Tells the time.")
			look()
			p.choose("Show the change")
			p.write(d, `"args": ["-c", "exit 1"]`, `"clock"`)
		}},
		{"remove", func() {
			p.open("clock")
			p.choose("Remove clock")
			p.has("dialog pre", "Tells the time.")
			look()
			p.write(d, "Tells the time.", "")
			p.wait("![...document.querySelectorAll('.server .name')].some(e => e.textContent.startsWith('clock'))")
			if text := d.read(); strings.Contains(text, "clock") {
				t.Errorf("the config is now\n%s", text)
			}
		}},
	} {
		shot = fmt.Sprintf("%02d-%s", n+1, task.name)
		if task.do(); t.Failed() {
			t.Fatalf("the task %s failed", shot)
		}
	}
}
