//go:build e2e

package page

import (
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// viewsOf has what tells that a view of newDesk is drawn, by its name.
var viewsOf = map[string]string{
	"servers": "document.querySelectorAll('.server').length === 4", "tools": "!!document.querySelector('.tool')", "calls": "!!document.querySelector('.call')",
	"decisions": "document.body.textContent.includes('dynmcp doctor')", "reads": "document.querySelectorAll('main pre').length > 1", "add": "!!document.getElementById('find')",
}

// watched counts what the page draws and asks for. Answers come late, of two requests the second one first, as with a
// slow network.
const watched = `(drawn = under = asks = 0, wrapped = 0, went = new Set(),
	fetch = (f => async (...a) => {
		const late = asks++ % 2 ? LATE / 5 : LATE;
		under++;
		try { const r = await f(...a); await new Promise(done => setTimeout(done, late)); return r; } finally { under--; }
	})(fetch),
	draw = (f => (...a) => { f(...a); drawn++; })(draw),
	held = () => ({focus: document.activeElement, selected: getSelection().toString(), top: scrollY, at: document.activeElement.getBoundingClientRect().top,
		open: [...document.querySelectorAll("main details[open]")], typed: [...document.querySelectorAll("main input, main textarea, main select")].map(e => e.value).join("\n")}),
	// Tab leads from the last element to the page itself or to its first element, and to no other one again.
	last = () => [...document.querySelectorAll("a, button, summary, input, select, textarea, [tabindex='0']")].filter(e => e.checkVisibility()).at(-1),
	stepped = e => {
		const ends = e === document.body || e.matches(".skip") && from === last(), again = went.has(e) && !ends;
		if (ends) { wrapped += went.size; went.clear(); }
		went.add(e);
		return again ? e.outerHTML.slice(0, 200) : "";
	},
	lost = before => {
		const now = held(), keys = [...document.querySelectorAll("main li[data-key]")].map(e => e.dataset.key);
		if (now.focus !== before.focus) return "the focus, which was at " + before.focus.outerHTML.slice(0, 200);
		if (now.selected !== before.selected) return "the selection " + before.selected;
		// A row that comes above what is looked at moves the page, and not what is looked at.
		if (now.top !== before.top && now.at !== before.at) return "the place it was scrolled to: " + before.top + ", now " + now.top;
		if (before.open.some(e => !e.isConnected || !e.open)) return "an open row";
		if (now.typed !== before.typed) return "what was typed";
		if (new Set(keys).size !== keys.length) return "a row's one place: it is there twice";
		if (new Set(calls.lines.map(idOf)).size !== calls.lines.length) return "a call's one place: it is there twice";
		return "";
	}, true)`

// A person who goes through each view with Tab, while it is drawn again with other data and answers overlap, keeps the
// focus, the selection, the open rows, what is typed and the place. With DYNMCP_LONG a view is gone through for a
// minute, at one Tab per 0.7 s and answers 0.9 s late; otherwise Tab follows as soon as the view is drawn again, which
// is after each key and not only every second one, so that the pace makes no difference.
func TestUIKeepsItsPlace(t *testing.T) {
	steps, late, pace := 10, "40", time.Duration(0)
	if os.Getenv("DYNMCP_LONG") != "" {
		steps, late, pace = 86, "900", 700*time.Millisecond
	}
	for view, drawn := range viewsOf {
		t.Run(view, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			p := openTab(t, d.address)
			p.do(chromedp.EmulateViewport(1000, 300)) // less than a view is high
			p.has("main .name", "files")
			value[bool](p, "(LATE = "+late+", true)")
			value[bool](p, watched)
			value[bool](p, "(location.hash = "+quote(view)+", true)")
			p.wait("document.querySelector('main').dataset.view === " + quote(view) + " && under === 0 && " + drawn)
			value[bool](p, `(document.querySelectorAll("main details > summary")[1]?.click(), document.querySelector("nav a").focus(), scrollTo(0, 60), true)`)
			if view == "add" {
				p.fill("#command-name", "typed")
				value[bool](p, `(document.querySelector("nav a").focus(), true)`)
			}
			for i := range steps {
				value[bool](p, "(from = document.activeElement, true)")
				p.do(chromedp.KeyEvent(kb.Tab))
				if again := value[string](p, "stepped(document.activeElement)"); again != "" {
					t.Fatalf("Tab leads again to %s", again)
				}
				d.use([]string{"files/echo", "notes/echo"}[i%2], "again")
				value[bool](p, `(/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName) || getSelection().selectAllChildren(document.querySelector("main h2, main .name")), before = held(), was = drawn, refresh(true), refresh(true), true)`)
				p.wait("drawn > was && under === 0")
				time.Sleep(pace)
				if lost := value[string](p, "lost(before)"); lost != "" {
					t.Fatalf("what is drawn again has lost %s", lost)
				}
			}
			if n := value[int](p, "went.size + wrapped"); n < steps {
				t.Errorf("after %d times Tab went to %d elements", steps, n)
			}
		})
	}
}

// A call is shown once, also if requests overlap because answers take long.
func TestUIShowsCallsOnce(t *testing.T) {
	d := newDesk(t)
	p := openTab(t, d.address)
	p.has("main .name", "files")
	value[bool](p, "(f => { window.fetch = async (...a) => { const r = await f(...a); await new Promise(done => setTimeout(done, 900)); return r }; return true })(window.fetch)")
	value[bool](p, "(location.hash = 'calls', refresh(true), refresh(true), true)")
	p.has("[role=status]", " calls")
	for range 3 {
		d.use("files/echo", "more")
		time.Sleep(400 * time.Millisecond)                                         // until it is in the record
		value[bool](p, "(followCalls(placeNow()), followCalls(placeNow()), true)") // as a poll and a change of the view
	}
	p.wait("calls.lines.filter(l => l.tool === 'echo').length >= 5")
	time.Sleep(3 * time.Second) // for the answers that are on their way
	if n, shown := value[int](p, "new Set(calls.lines.map(l => l.run + l.session + l.time + nameOf(l))).size"), value[int](p, "calls.lines.length"); n != shown {
		t.Errorf("%d calls are shown as %d", n, shown)
	}
}
