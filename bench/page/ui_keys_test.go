//go:build e2e

package page

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A person who presses Tab slowly, while each poll brings other data, gets through a view: what is
// drawn again keeps the focus.
func TestUIKeepsTheFocus(t *testing.T) {
	d := newDesk(t)
	p := openTab(t, d.address)
	p.has("main .name", "files")
	p.press(".server summary", "files") // its buttons are more to go through, and it stays open
	for _, view := range []string{"Servers", "Calls"} {
		p.view(view)
		p.wait("document.querySelectorAll('main summary').length > 2")
		value[bool](p, "(document.activeElement.blur(), document.querySelector('nav a').focus(), window.scrollTo(0, 0), true)")
		seen := map[string]bool{}
		for range 12 { // the links, and some elements of the view
			p.do(chromedp.KeyEvent(kb.Tab))
			d.use("files/echo", "again")
			time.Sleep(700 * time.Millisecond) // the pace of a person; polls come every 2 s
			at := value[string](p, "document.activeElement.dataset.focus || document.activeElement.tagName + document.activeElement.id")
			if at == "BODY" || seen[at] {
				t.Fatalf("%s: Tab leads to %s, after %v", view, at, seen)
			}
			seen[at] = true
		}
		if view == "Servers" && !value[bool](p, "document.querySelectorAll('.server[open]').length === 1") {
			t.Error("the open row is closed")
		}
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
