package main_test

import (
	"strings"
	"testing"

	"dynmcp/internal/mcptest"
)

// Garbage: a host or a server that sends what is no message is told so, or
// stepped over, and what comes next works.

func TestLinesOfTheHostThatAreNoMessage(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha"))
	for _, c := range []struct {
		line string
		code int
		id   string
	}{
		{`not json`, -32700, "null"},
		{`{"jsonrpc":"2.0","id":7,"method":}`, -32700, "null"},
		{`7`, -32700, "null"},
		{`"text"`, -32700, "null"},
		{`[]`, -32600, "null"},
		{`[{"jsonrpc":"2.0","id":7,"method":"ping"}]`, -32600, "null"},
		{`{}`, -32600, "null"},
		{`{"jsonrpc":"2.0","id":7}`, -32600, "7"},
		{`{"jsonrpc":"1.0","id":7,"method":"ping"}`, -32600, "7"},
		{`{"id":7,"method":"ping"}`, -32600, "7"},
		{`{"jsonrpc":"2.0","id":7,"method":1}`, -32600, "7"},
		{`{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}`, -32600, ""},
		{`{"jsonrpc":"2.0","id":7,"method":"no/such/method"}`, -32601, "7"},
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, -32602, "7"},
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":5}}`, -32602, "7"},
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[1]}`, -32602, "7"},
	} {
		before := len(host.Messages())
		host.Send(c.line)
		m := host.WaitAfter(before, func(m mcptest.Message) bool { return m.Method == "" })
		if m.Code() != c.code || c.id != "" && string(m.ID) != c.id {
			t.Errorf("%s: got %s, want code %d under id %s", c.line, m.Raw, c.code, c.id)
		}
		if m := use(host, "alpha/echo", `{}`); m.Text() != "{}" {
			t.Fatalf("after %s: got %s", c.line, m.Raw)
		}
	}
}

func TestLinesOfTheHostThatAreOddMessages(t *testing.T) {
	t.Parallel()
	host := mcptest.StartDynmcp(t, "--", mcptest.Fake(t))
	const init = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + hello + `}`
	for _, data := range []string{
		"\ufeff\r\n\n  \n" + init + "\r\n",
		`{"jsonrpc":"2.0","method":"notifications/initialized"} {"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n",
		"{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 3,\n  \"method\": \"ping\"\n}\n",
		" \t{\"method\":\"ping\" , \"x\":[1.0],\"id\":\"4\",\"jsonrpc\":\"2.0\"}  \n",
		`{"jsonrpc":"2.0","method":"notifications/nobody/knows","params":{}}` + "\n",
		`{"jsonrpc":"2.0","id":999,"result":{}}` + "\n",
		`{"jsonrpc":"2.0","id":"5","meth\u006fd":"ping"}` + "\n",
	} {
		if err := host.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"1", "2", "3", `"4"`, `"5"`} {
		m := host.WaitFor(func(m mcptest.Message) bool { return string(m.ID) == id })
		if m.Error != nil {
			t.Errorf("got %s", m.Raw)
		}
	}
}

// TestServersThatWriteOddly runs servers whose output is not as it should be but
// can be understood.
func TestServersThatWriteOddly(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{
		"banner", "banner:60", "bom", "crlf", "blank", "pretty", "stderr-spam:2000000", "stderr-nonewline",
		"garbage-mid", "glued", "dribble", "batch", "twice", "unknown-id", "string-id", "dup-tool", "dup-uri", "bad-entry", "cursor-empty",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			e := fake(t, "odd", "-fault", fault)
			host := serve(t, e)
			for n := range 3 {
				m := use(host, "odd/echo", `{"n":1}`)
				want := `{"n":1}`
				if fault == "string-id" {
					want = "answered with a string id"
				}
				if m.Text() != want {
					t.Errorf("call %d: got %s", n, m.Raw)
				}
			}
			if e.Count("start") != 1 || e.Count("call") != 3 {
				t.Errorf("got %q", e.Events())
			}
			answers := 0
			for _, m := range host.Messages() {
				if m.IsAnswer() {
					answers++
				}
			}
			if answers != 5+3 { // initialize and the four lists, then the calls
				t.Errorf("got %d answers: %q", answers, host.Lines())
			}
		})
	}
}

// TestServersThatAnswerGarbage runs servers whose answer to a call is lost.
func TestServersThatAnswerGarbage(t *testing.T) {
	t.Parallel()
	for fault, wants := range map[string][]string{
		"noresult":      {"result", "error"},
		"both":          {"both"},
		"partial":       {"exit status 3", "outcome"},
		"crash-call":    {"exit status 3", "outcome unknown", "as asked"},
		"close-stdout":  {"stdout", "outcome unknown"},
		"null-id":       {"no answer", "outcome unknown"},
		"hang-call":     {"no answer", "outcome unknown"},
		"partial-hang":  {"no answer", "outcome unknown"},
		"invalid-utf8":  nil,
		"huge:20000000": {"16777216"},
		"deep":          nil,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			e := fake(t, "odd").with("timeout", "5s")
			host := serve(t, e, fake(t, "good"))
			m := use(host, "odd/fault", `{"mode":`+quote(fault)+`}`)
			contains(t, m.Text(), wants...)
			if wants != nil && !m.IsError() {
				t.Errorf("got %.1000s", m.Raw)
			}
			if e.Count("call fault") != 1 {
				t.Errorf("the call was made %d times", e.Count("call fault"))
			}
			if got := use(host, "good/echo", `{}`).Text(); got != "{}" {
				t.Errorf("the other server: %s", got)
			}
			switch fault {
			case "partial-hang": // it holds its stdout for ever, which pings find out in half a minute
			default:
				if got := use(host, "odd/echo", `{"n":1}`).Text(); got != `{"n":1}` {
					t.Errorf("the next call: %s", got)
				}
			}
		})
	}
}

func TestServersThatListWithoutEnd(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]string{"cursor-loop": "the same cursor came twice", "cursor-endless": "more than 100 pages"} {
		host := serve(t, deferred(t, "endless", "Endless", "-fault", fault))
		contains(t, load(host, "endless").Text(), want)
	}
}

func TestWhatServersWriteCannotBreakALine(t *testing.T) {
	t.Parallel()
	host := wrap(t, "-fault", "pretty")
	m := use(host, "echo", `{"text":"a\nb\u2028c"}`)
	if strings.ContainsAny(m.Raw, "\n\r") || m.Text() != `{"text":"a\nb\u2028c"}` {
		t.Errorf("got %s", m.Raw)
	}
}
