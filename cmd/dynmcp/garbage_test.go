package main_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Lines that are not messages: a host is told of them, those of a server are skipped, and the
// next message works.

func TestInvalidLinesOfTheHost(t *testing.T) {
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

// A request that is too long for dynmcp or for its server is refused under its id and does
// not run. The session goes on.
func TestRequestsThatAreTooLong(t *testing.T) {
	t.Parallel()
	alpha := fake(t, "alpha").with("max_message_bytes", 100_000)
	host := serve(t, alpha)
	params := func(size int) string {
		return string(useParams("alpha/echo", `{"text":"`+strings.Repeat("x", size)+`"}`))
	}
	m := host.Call("tools/call", params(200_000))
	contains(t, m.Text(), "alpha: ", "max_message_bytes", "outcome not_sent")
	before, after, _ := strings.Cut(params(0), `""`)
	pieces := slices.Repeat([]string{strings.Repeat("x", 1<<20)}, 65)
	for _, piece := range slices.Concat([]string{`{"jsonrpc":"2.0","id":"long","method":"tools/call","params":`, before, `"`}, pieces) {
		if err := host.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	host.Send(`"` + after + "}")
	m = host.WaitFor(func(m mcptest.Message) bool { return string(m.ID) == `"long"` })
	if m.Code() != -32600 {
		t.Errorf("got %.300s", m.Raw)
	}
	if alpha.Count("call") > 0 {
		t.Errorf("got %q", alpha.Events())
	}
	if m := host.Call("tools/call", params(20_000)); len(m.Text()) < 20_000 {
		t.Errorf("got %.300s", m.Raw)
	}
}

// A line that the end of the input cuts off is logged, and dynmcp ends as usual.
func TestLineThatIsCutOff(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha"))
	if err := host.Write(`{"jsonrpc":"2.0","id":9,"meth`); err != nil {
		t.Fatal(err)
	}
	end(t, host)
	contains(t, host.Stderr(), "a line that is no message", `\"id\":9,\"meth`)
}

// TestServersThatWriteOddly runs servers whose output is wrong but can be understood.
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

func TestWhatServersWriteCannotBreakALine(t *testing.T) {
	t.Parallel()
	host := wrap(t, "-fault", "pretty")
	m := use(host, "echo", `{"text":"a\nb\u2028c"}`)
	if strings.ContainsAny(m.Raw, "\n\r") || m.Text() != `{"text":"a\nb\u2028c"}` {
		t.Errorf("got %s", m.Raw)
	}
}
