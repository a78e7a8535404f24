package selfloop

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pass sends a request from a gateway, as its server entry, to another gateway.
func pass(from *Gateway, entry string, to *Gateway, server string) error {
	h := http.Header{}
	from.Mark(entry, h)
	return to.Enter(server, h)
}

func TestGatewaysThatLeadToThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := NewGateway("/x/a.json", "1"), NewGateway("/x/b.json", "2"), NewGateway("/x/c.json", "3")
		fine := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		refused := func(what string, err error, of string) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), "the config reaches itself: the server "+of) || strings.Contains(err.Error(), "/x/") {
				t.Errorf("%s: got %v", what, err)
			}
		}
		refused("itself", pass(a, "self", a, ""), `"self" of a.json`)
		refused("itself alone", pass(a, "self", a, "self"), `"self" of a.json`)
		fine("another server of its", pass(a, "self", a, "files"))
		fine("a, b", pass(a, "b é,", b, ""))
		fine("b, c", pass(b, "c", c, ""))
		refused("c, a", pass(c, "a", a, ""), `"b é," of a.json`)
		fine("c, a for another server", pass(c, "a", a, "files"))
		fine("without marks", a.Enter("", http.Header{}))
		time.Sleep(markedFor + time.Second) // b has left a's config
		fine("c, a later", pass(c, "a", a, ""))

		// Separate servers of one gateway make no loop.
		d, e := NewGateway("d", "4"), NewGateway("e", "5")
		fine("d, e", pass(d, "of-e", e, "files"))
		fine("e, d", pass(e, "of-d", d, "git"))
		fine("d, e again", pass(d, "of-e", e, "files"))
		refused("what e serves all of", pass(e, "files", d, ""), `"of-e" of d`)

		// Invalid and excess marks are ignored.
		h := http.Header{header: {strings.Repeat("x/y,", 1000) + strings.Repeat("z", 1<<20) + ",%zz/%zz"}}
		fine("nonsense", a.Enter("", h))
		a.Mark("b", h)
		if n := len(h.Get(header)); n > maxMarks*maxMarkBytes {
			t.Errorf("%d bytes of marks", n)
		}
	})
}
