package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// The id of a request is returned as the same bytes, on both planes.
func TestHostKeepsIDs(t *testing.T) {
	e := newTestHost(t, nil)
	e.begin("2025-11-25")
	for n, id := range []string{`1`, `-7`, `0`, `"a"`, `""`, `"1"`, `"\u00e9\n"`, `12345678901234567890123`, `"` + strings.Repeat("x", 10_000) + `"`} {
		for plane, method := range []string{"tools/call", "ping", "tools/list"} {
			e.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}`)
			got := e.wait(2 + 3*n + plane)
			if !strings.HasPrefix(got[len(got)-1], `{"jsonrpc":"2.0","id":`+id+`,"result":{`) {
				t.Errorf("%s of %s: got %s", id, method, got[len(got)-1])
			}
		}
	}
}

func TestHostRejectsInvalidIDs(t *testing.T) {
	e := newTestHost(t, nil)
	e.begin("2025-11-25")
	for n, id := range []string{`null`, `1.5`, `1.0`, `1e3`, `true`, `[1]`, `{}`} {
		e.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call"}`)
		if got := e.wait(n + 2)[n+1]; !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`) {
			t.Errorf("%s: got %s", id, got)
		}
	}
}

// A second request with an id in flight is rejected without an id, because the host would take
// the error for the answer to the first request. Afterwards the id is free.
func TestHostRejectsDuplicateIDs(t *testing.T) {
	release := make(chan struct{})
	e := newTestHost(t, func(r *Request) {
		go func() {
			<-release
			r.Reply(json.RawMessage(`{"ok":1}`), nil)
		}()
	})
	e.begin("2025-11-25")
	call := `{"jsonrpc":"2.0","id":5,"method":"tools/call"}`
	e.say(call, call)
	if got := e.wait(2)[1]; !strings.Contains(got, `"id":null,"error":{"code":-32600,"message":"id 5 is`) {
		t.Errorf("got %s", got)
	}
	close(release)
	e.wait(3)
	e.say(call)
	if got := e.wait(4); got[2] != `{"jsonrpc":"2.0","id":5,"result":{"ok":1}}` || got[3] != got[2] {
		t.Errorf("got %q", got[2:])
	}
}

// A line that is not a message is answered, and the session continues.
func TestInvalidLinesAreAnswered(t *testing.T) {
	e := newTestHost(t, nil)
	e.begin("2025-11-25")
	for n, test := range []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":1,`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`hello`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`{"foo":1}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{`{"jsonrpc":"1.0","id":9,"method":"ping"}`, `{"jsonrpc":"2.0","id":9,"error":{"code":-32600,`},
		{`{"jsonrpc":"2.0","id":"z","method":7}`, `{"jsonrpc":"2.0","id":"z","error":{"code":-32600,`},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{strings.Repeat("[", 20_000), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"x":"` + strings.Repeat("x", testMaxMessage) + `"}}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,`},
		{`{"method":"tools/call","params":{"x":"` + strings.Repeat("x", testMaxMessage) + `"},"jsonrpc":"2.0","id":"last"}`, `{"jsonrpc":"2.0","id":"last","error":{"code":-32600,`},
	} {
		e.say(test.line, `{"jsonrpc":"2.0","id":"next","method":"ping"}`)
		got := e.wait(2*n + 3)
		if !strings.HasPrefix(got[2*n+1], test.want) || !strings.Contains(got[2*n+2], `"id":"next"`) {
			t.Errorf("%.60s: got %.200s, then %.200s", test.line, got[2*n+1], got[2*n+2])
		}
	}
}

// Two messages on a line, CR LF, a byte order mark and empty lines are accepted.
func TestHostTolerates(t *testing.T) {
	e := newTestHost(t, nil)
	e.say("\ufeff\r")
	e.begin("2025-11-25")
	e.say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"} {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}\r\n\n")
	if got := e.wait(3); !strings.Contains(got[1], `"id":1,"result"`) || !strings.Contains(got[2], `"id":2,"result"`) {
		t.Errorf("got %q", got)
	}
}

// Before initialize only ping is accepted, and initialize is accepted once.
func TestHostHandshake(t *testing.T) {
	var handled []string
	e := newTestHost(t, func(r *Request) {
		handled = append(handled, string(r.ID))
		r.Reply(json.RawMessage(`{}`), nil)
	})
	e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	if got := e.wait(1)[0]; !strings.Contains(got, `"id":1,"error":{"code":-32600`) {
		t.Errorf("got %s", got)
	}
	e.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if got := e.wait(2)[1]; !strings.Contains(got, `"id":2,"result"`) {
		t.Errorf("got %s", got)
	}
	const initialize = `"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	e.say(`{"jsonrpc":"2.0","id":3,`+initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	e.wait(3)
	e.say(`{"jsonrpc":"2.0","id":4,` + initialize)
	if got := e.wait(4)[3]; !strings.Contains(got, `"id":4,"error":{"code":-32600`) {
		t.Errorf("got %s", got)
	}
	if len(handled) > 0 {
		t.Errorf("handled: %q", handled)
	}
}

// Messages pipelined after initialize are accepted, and answered after it.
func TestHostHoldsUntilInitialized(t *testing.T) {
	for range 20 {
		e := newTestHost(t, nil)
		e.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`junk`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
		got := e.wait(4)
		if !strings.Contains(got[0], `"protocolVersion"`) || !strings.Contains(strings.Join(got, ""), `"id":2,"result"`) {
			t.Fatalf("got %q", got)
		}
	}
}

// After a failed handshake, the host may try again.
func TestHostHandshakeAgain(t *testing.T) {
	e := newTestHost(t, nil)
	e.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":7}`)
	if got := e.wait(1)[0]; !strings.Contains(got, `"error"`) {
		t.Errorf("got %s", got)
	}
	e.got = nil
	e.begin("2025-11-25")
}

// A cancelled request is not answered, and its handler is notified. Cancellations of unknown
// requests have no effect.
func TestHostCancel(t *testing.T) {
	working := make(chan *Request, 1)
	reasons := make(chan string, 1)
	e := newTestHost(t, func(r *Request) {
		if r.Method != "tools/call" {
			r.Reply(json.RawMessage(`{}`), nil)
			return
		}
		r.OnCancel(func(reason json.RawMessage) { reasons <- string(reason) })
		working <- r
	})
	e.begin("2025-11-25")
	e.say(`{"jsonrpc":"2.0","id":"c","method":"tools/call"}`)
	r := <-working
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c","reason":"why"}}`
	e.say(cancel, cancel, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
	if got := <-reasons; got != `"why"` {
		t.Errorf("got reason %s", got)
	}
	if got := e.settled(); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	r.Reply(json.RawMessage(`{"late":1}`), nil)
	r.Reply(nil, errors.New("later"))
	if r.OnCancel(func(json.RawMessage) {}) {
		t.Error("the request has not ended")
	}
	e.say(`{"jsonrpc":"2.0","id":"c","method":"x"}`) // the id is free
	if got := e.wait(3)[2]; got != `{"jsonrpc":"2.0","id":"c","result":{}}` {
		t.Errorf("got %s", got)
	}
}

// A cancellation reaches the control plane, where the request has another id.
func TestHostCancelOnControlPlane(t *testing.T) {
	working, withdrawn := make(chan struct{}), make(chan struct{})
	control := newControl()
	control.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method != "tools/list" {
				return next(ctx, method, req)
			}
			if r := RequestOf(req); string(r.ID) != `"é"` || string(r.Params) != `{"x":1.0}` {
				t.Errorf("got id %s, params %s", r.ID, r.Params)
			}
			close(working)
			<-ctx.Done()
			close(withdrawn)
			return nil, ctx.Err()
		}
	})
	near, far := mcptest.Pipe()
	e := testHostOn(t, near, near, far, SessionOptions{Control: control})
	e.begin("2025-11-25")
	e.say(`{"jsonrpc":"2.0","id":"é","method":"tools/list","params":{"x":1.0}}`)
	waitFor(t, "the list", working)
	e.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"é"}}`)
	waitFor(t, "the cancel", withdrawn)
	if got := e.settled(); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

// However answers and cancellations race, no request is answered twice.
func TestHostAnswersOnce(t *testing.T) {
	const requests = 2000
	var workers sync.WaitGroup
	e := newTestHost(t, func(r *Request) {
		for range 2 {
			workers.Go(func() {
				time.Sleep(rand.N(200 * time.Microsecond))
				r.Reply(json.RawMessage(`{}`), nil)
			})
		}
	})
	e.begin("2025-11-25")
	for n := range requests {
		e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, n))
		if n%2 == 0 {
			e.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, n))
		}
	}
	e.settled()
	workers.Wait()
	answers := map[string]int{}
	for _, line := range e.settled()[1:] {
		m, err := wire.Parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		answers[string(m.ID)]++
	}
	for n := range requests {
		if got := answers[fmt.Sprint(n)]; got > 1 || got == 0 && n%2 == 1 {
			t.Errorf("request %d was answered %d times", n, got)
		}
	}
}

// A panic of a handler is an error of its request only.
func TestHostSurvivesPanics(t *testing.T) {
	near, far := mcptest.Pipe()
	e := testHostOn(t, near, near, far, SessionOptions{HandleRequest: func(r *Request) {
		if r.Method == "tools/call" {
			panic("boom")
		}
		r.Reply(json.RawMessage(`{}`), nil)
	}})
	e.begin("2025-11-25")
	e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":2,"method":"x"}`)
	if got := e.wait(3); !strings.Contains(got[1], `"id":1,"error":{"code":-32603`) || !strings.Contains(got[2], `"id":2,"result"`) {
		t.Errorf("got %q", got)
	}
}

// Requests of the stateless era are checked in the same way on both planes.
func TestHostChecksBothPlanes(t *testing.T) {
	for name, meta := range map[string]string{
		"no capabilities":   `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`,
		"odd capabilities":  `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":7`,
		"odd client":        `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":7`,
		"unknown version":   `"io.modelcontextprotocol/protocolVersion":"2999-01-01","io.modelcontextprotocol/clientCapabilities":{}`,
		"nothing of an era": `"x":1`,
	} {
		e := newTestHost(t, nil)
		var codes []string
		for _, method := range []string{"tools/call", "tools/list"} {
			e.say(`{"jsonrpc":"2.0","id":"` + method + `","method":"` + method + `","params":{"name":"x","_meta":{` + meta + `}}}`)
			got := e.wait(len(codes) + 1)
			codes = append(codes, string(wire.Get(wire.Get([]byte(got[len(got)-1]), "error"), "code")))
		}
		if codes[0] != codes[1] || codes[0] == "" {
			t.Errorf("%s: got %q", name, codes)
		}
	}
}

// The members that the stateless era requires are added to a result, which is unchanged otherwise.
func TestHostStatelessResults(t *testing.T) {
	e := newTestHost(t, func(r *Request) { r.Reply(json.RawMessage(`{"n":1.0,"contents":[]}`), nil) })
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+meta+`}}`, `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{`+meta+`}}`)
	got := e.wait(2)
	if got[0] != `{"jsonrpc":"2.0","id":1,"result":{"n":1.0,"contents":[],"resultType":"complete"}}` {
		t.Errorf("got %s", got[0])
	}
	if got[1] != `{"jsonrpc":"2.0","id":2,"result":{"n":1.0,"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}}` {
		t.Errorf("got %s", got[1])
	}
}
