//go:build unix

package main_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A refusal for lack of room says what is full, how full it is and what to do. The call was
// not sent.
func TestRefusalsForLackOfRoom(t *testing.T) {
	t.Parallel()
	large := `{"text":"` + strings.Repeat("x", 1<<20) + `"}`
	for name, test := range map[string]struct {
		change func(entry) entry
		before string // a call of alpha that goes on
		input  string
		full   string
		advice string
	}{
		"arguments": {
			func(e entry) entry { return e }, "", large,
			`requests and answers of [0-9.]+ MB are held, and with this call of 1\.0 MB more than hosts may have of "max_held_bytes", 1\.0 MB`,
			`call again when other calls have been answered, or raise "max_held_bytes" in "gateway"`,
		},
		"calls of a server": {
			func(e entry) entry {
				return e.with("max_calls", 1).with("timeout", "1s").with("tool_overrides", map[string]any{"sleep": map[string]any{"timeout": "0s"}})
			},
			"alpha/sleep", `{"text":"refused"}`,
			`as many calls as its "max_calls" \(1\) were in flight for 1s`,
			`call again when others have ended, or raise its "max_calls" or "timeout"`,
		},
		"starts of calls": {
			func(e entry) entry { return e.with("rate", "1/h").with("timeout", "1s") },
			"alpha/sleep", `{"text":"refused"}`,
			`its "rate" \(1/h\) let no other call start for 1s`,
			`call again later, or raise its "rate" or "timeout"`,
		},
	} {
		for way, connect := range map[string]func(t *testing.T, config string) *mcptest.Conn{
			"stdio": func(t *testing.T, config string) *mcptest.Conn { return mcptest.StartDynmcp(t, "-c", config).Conn },
			"socket": func(t *testing.T, config string) *mcptest.Conn {
				socket := socketPath(t)
				serveOn(t, socket, config)
				return dial(t, socket)
			},
		} {
			t.Run(name+" over "+way, func(t *testing.T) {
				t.Parallel()
				alpha := test.change(fake(t, "alpha"))
				config := mcptest.Config(t, document([]entry{alpha}, `"gateway": {"max_held_bytes": 1048576}`))
				host := connect(t, config)
				host.Initialize(handshake, nil)
				if test.before != "" {
					host.Go("tools/call", useParams(test.before, `{"ms":60000}`))
					alpha.WaitFor("call sleep", 1)
				}
				checkRefusal(t, host.Call("tools/call", useParams("alpha/echo", test.input)), test.full, test.advice)
				if n := alpha.Count("call echo"); n != 0 {
					t.Errorf("a call that was refused ran %d times", n)
				}
			})
		}
	}
}

func checkRefusal(t *testing.T, m mcptest.Message, full, advice string) {
	t.Helper()
	text := strings.ReplaceAll(m.Raw, `\"`, `"`)
	if found, err := regexp.MatchString(full, text); err != nil || !found || !strings.Contains(text, advice) || !strings.Contains(text, "not_sent") {
		t.Errorf("got %s\nwant %s\nand %s", m.Raw, full, advice)
	}
}
