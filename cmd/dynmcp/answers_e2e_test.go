//go:build e2e

package main_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A call whose answer is malformed or never comes fails, and is not sent again.
func TestServersThatAnswerGarbage(t *testing.T) {
	t.Parallel()
	for fault, wants := range map[string][]string{
		"noresult":      {"result", "error"},
		"both":          {"both"},
		"partial":       {"exited with status 3", "outcome"},
		"crash-call":    {"exited with status 3", "outcome unknown", "as asked"},
		"close-stdout":  {"stdout", "outcome unknown"},
		"null-id":       {"no answer", "outcome unknown"},
		"hang-call":     {"no answer", "outcome unknown"},
		"partial-hang":  {"no answer", "outcome unknown"},
		"invalid-utf8":  nil,
		"huge:20000000": {"16777216"},
		"deep":          {"deeper than 512 levels", "outcome done"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			e := fake(t, "odd")
			if len(wants) > 0 && wants[0] == "no answer" {
				e = e.with("timeout", "5s")
			}
			host := serve(t, e, fake(t, "good"))
			m := use(host, "odd/fault", `{"mode":`+quote(fault)+`}`)
			contains(t, m.Text(), wants...)
			if !utf8.ValidString(m.Raw) {
				t.Errorf("the host got %q, which is not UTF-8", m.Raw)
			}
			if wants != nil && !m.IsError() {
				t.Errorf("got %.1000s", m.Raw)
			}
			if e.Count("call fault") != 1 {
				t.Errorf("the call was made %d times", e.Count("call fault"))
			}
			checkEcho(t, host, "good/echo", `{}`)
			switch fault {
			case "partial-hang": // it holds its stdout for ever, which pings find out in half a minute
			default:
				checkEcho(t, host, "odd/echo", `{"n":1}`)
			}
		})
	}
}

// A list that fails, is no list or never comes is empty until its server answers. The other
// lists are complete.
func TestFailedListCostsItsKindOnly(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"fail-list", "list-null", "hang-list"} {
		for _, c := range []struct{ method, entry string }{
			{"resources/list", "fake://odd/text"},
			{"resources/templates/list", "fake://odd/item/{id}"},
			{"prompts/list", "odd.greet"},
		} {
			t.Run(fault+"/"+c.method, func(t *testing.T) {
				t.Parallel()
				odd := fake(t, "odd", "-fault", fault, "-fault-on", c.method, "-fault-times", "1").with("load_timeout", "10s")
				host := start(t, odd, fake(t, "good"))
				host.Initialize(handshake, nil)
				contains(t, catalogue(t, host), "\nodd", "- good/echo")
				contains(t, discover(host, `{"server":"odd"}`).Text(), "- odd/echo")
				contains(t, host.WaitStderr(c.method+" is empty until its server answers"), "odd: ")
				for _, other := range []string{"resources/list", "resources/templates/list", "prompts/list"} {
					contains(t, host.Call(other, nil).Raw, "good")
					if other != c.method {
						contains(t, host.Call(other, nil).Raw, "odd")
					}
				}
				mcptest.Eventually(t, c.entry+" is listed", func() bool {
					return strings.Contains(host.Call(c.method, nil).Raw, c.entry)
				})
			})
		}
	}
}

// stderr is read as fast as it comes, with or without line ends, and its end is kept.
func TestFloodOnStderr(t *testing.T) {
	t.Parallel()
	e := fake(t, "noisy", "-fault", "stderr-flood:100000000", "-fault-tool", "pid")
	host := serve(t, e)
	before := memory(t, host.Pid())
	if m := use(host, "noisy/pid", nil); m.IsError() {
		t.Errorf("got %s", m.Raw)
	}
	grewLittle(t, host, before)
	contains(t, use(host, "noisy/crash", nil).Text(), "outcome unknown", "fakemcp: that was all")
}
