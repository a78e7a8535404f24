//go:build e2e

package page

import (
	"os"
	"strings"
	"testing"
)

// change presses a button that shows a change, waits for its diff and command, writes it, and closes the dialog.
func (p *tab) change(press func(), diff, command string) {
	p.t.Helper()
	press()
	p.has("dialog pre", diff)
	p.has("dialog .command", command)
	p.press("dialog button", "Write this change")
	p.has("dialog [role=status]", "Done")
	if value[bool](p, "[...document.querySelectorAll('dialog pre')].some(e => e.textContent.includes("+quote(diff)+") && !e.classList.contains('command'))") {
		p.t.Errorf("the change %s is shown again after it was written", diff)
	}
	p.press("dialog button", "Close")
	p.wait("!document.getElementById('dialog').open")
}

// Each key of an entry can be changed and taken out, a tool switched off, a server added by its command, by its
// address and from a host's config, and removed. The diff comes first, then the config has changed.
func TestUIEdits(t *testing.T) {
	d := newDesk(t)
	p := openTab(t, d.address)
	p.has("main .name", "files")
	p.press(".server summary", "notes")
	set := func(key, text string) func() {
		return func() {
			p.press("button", "Change a key of notes")
			p.has("dialog pre", "Keeps notes.") // the entry
			p.wait("document.querySelectorAll('#paths option').length > 10")
			p.fill("#key", key)
			p.fill("#value", text)
			p.press("dialog button", "Show the change")
		}
	}
	p.change(set("timeout", "30s"), `"timeout": "30s"`, "dynmcp set notes timeout=30s")
	p.change(set("env.GREETING", "hello you"), `"GREETING": `, "dynmcp set notes 'env.GREETING=hello you'")
	p.change(func() {
		p.press("button", "Change a key of notes")
		p.has("dialog pre", "timeout")
		p.fill("#key", "timeout")
		p.press("dialog button", "Take the key out")
	}, `"timeout": "30s"`, "dynmcp set notes --unset=timeout")
	if text := d.read(); strings.Contains(text, "timeout") || !strings.Contains(text, `"GREETING": "hello you"`) || !strings.Contains(text, "// kept") {
		t.Errorf("the config is now\n%s", text)
	}
	set("timeout", "soon")()
	p.has("dialog .fault", "timeout") // it is checked as by the verb
	p.press("dialog button", "Close")

	p.view("Tools")
	p.press(".tool summary", "files/echo")
	p.change(func() { p.press("button", "Switch off files/echo") }, `files/echo`, "dynmcp set files policy.echo=deny")
	if text := d.read(); !strings.Contains(text, `"deny"`) {
		t.Errorf("no rule is in the config\n%s", text)
	}

	p.view("Add a server")
	p.wait("!!document.getElementById('command-name')")
	p.fill("#command-name", "clock")
	p.fill("#command-what", "/bin/sh -c 'exit 1'")
	p.fill("#command-about", "Tells the time.")
	p.change(func() { p.press("form button[data-key=command-show]", "Show the change") }, `"args": ["-c", "exit 1"]`, "-- /bin/sh -c 'exit 1'")
	p.fill("#url-name", "docs")
	p.fill("#url-what", "http://127.0.0.1:9/mcp")
	p.fill("#url-about", "Has documents.")
	p.change(func() { p.press("form button[data-key=url-show]", "Show the change") }, `"url": "http://127.0.0.1:9/mcp"`, "dynmcp add docs --url=http://127.0.0.1:9/mcp")
	home := strings.TrimSuffix(d.config, "/mcp.json")
	if err := os.MkdirAll(home+"/.cursor", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(home+"/.cursor/mcp.json", []byte(`{"mcpServers": {"weather": {"command": "weather-mcp"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	value[bool](p, "(document.getElementById('host').value = 'cursor', true)")
	p.press("form button[data-key=import-show]", "Show the change")
	p.has("dialog pre", "weather-mcp")
	p.press("dialog button", "Write this change")
	p.has("dialog [role=status]", "Done")
	p.press("dialog button", "Close")
	for _, name := range []string{`"clock"`, `"docs"`, `"weather"`} {
		if !strings.Contains(d.read(), name) {
			t.Errorf("%s is not in the config\n%s", name, d.read())
		}
	}

	p.view("Servers")
	p.press(".server summary", "clock")
	p.change(func() { p.press("button", "Remove clock") }, "Tells the time.", "dynmcp remove clock")
	p.wait("![...document.querySelectorAll('.server .name')].some(e => e.textContent.startsWith('clock'))")
	if text := d.read(); strings.Contains(text, "clock") || !strings.Contains(text, "// kept") {
		t.Errorf("the config is now\n%s", text)
	}
}

// A run is switched to another profile.
func TestUIProfiles(t *testing.T) {
	d := newDesk(t)
	text := strings.Replace(d.read(), `"activity"`, `"profiles": {"few": {"servers": ["notes"]}}, "activity"`, 1)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := openTab(t, d.address)
	p.has("main .name", "files")
	p.wait("!!document.querySelector('select[data-key^=profile]')")
	value[bool](p, `(e => (e.value = "few", e.dispatchEvent(new Event("change")), true))(document.querySelector("select[data-key^=profile]"))`)
	p.has("dialog .command", "dynmcp use few --run ")
	p.has("dialog [role=status]", "Done")
	p.press("dialog button", "Close")
	p.wait("placeNow().run.servers.length === 1")
}

// What is drawn again stays the same element: a row that is open, text that is selected, and a place that was
// scrolled to are as they were, however much was drawn, and a filter keeps what is typed.
func TestUIKeepsElements(t *testing.T) {
	d := newDesk(t)
	p := openTab(t, d.address)
	p.has("main .name", "files")
	p.press(".server summary", "broken")
	p.has(".server pre", "no database")
	p.view("Calls")
	p.has(".call .name", "notes/echo")
	p.press(".call summary", "notes/echo")
	p.has(".call pre", "<img")
	value[bool](p, `(kept = document.querySelector(".call[open] pre"), getSelection().selectAllChildren(kept), rows = document.querySelectorAll(".call").length, document.getElementById("filter").focus(), true)`)
	selected := value[string](p, "getSelection().selectAllChildren(kept), getSelection().toString()")
	for i := range 3 {
		d.use([]string{"files/echo", "notes/echo"}[i%2], "more") // rows that are not folded
		p.wait("(refresh(true), document.querySelectorAll('.call').length >= rows + " + string(rune('1'+i)) + ")")
		if !value[bool](p, "kept.isConnected && kept.closest('details').open && getSelection().toString() === "+quote(selected)+" && document.activeElement.id === 'filter'") {
			t.Fatalf("after %d more calls the open row, the selection or the focus is lost", i+1)
		}
	}
	p.view("Servers")
	p.has(".server[open] pre", "no database")
	p.wait("(row = document.querySelector('.server[open]'), row.querySelector('button').focus(), true)")
	for range 3 {
		d.use("files/echo", "again")
		value[bool](p, "(before = shown, refresh(true), true)")
		p.wait("shown !== before")
		if !value[bool](p, "row.isConnected && row.contains(document.activeElement)") {
			t.Fatal("the row or the focus in it is lost")
		}
	}
}
