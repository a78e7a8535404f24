package aggregator

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// Notifications on a call's own HTTP stream go to the host that made the call: another
// host must not read its log.
func TestOwnStreamIsForItsHost(t *testing.T) {
	t.Parallel()
	agg, err := New(schema.Single("up", nil), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer agg.Close()
	var mine, other listener
	session := agg.openSession(Identity{})
	session.Join(&mine)
	agg.openSession(Identity{}).Join(&other)
	p := agg.fleet.Of(&lazy.Upstream{Server: schema.Server{Name: "up"}})
	call := func(params string, modern bool) *forward.Call {
		request := &host.Request{Method: "tools/call", Params: json.RawMessage(params), Meta: wire.Get([]byte(params), "_meta"), Peer: &mine, Respond: func(_ *host.Request, _ json.RawMessage, _ error) {}}
		if modern {
			request.Era = transports.Stateless
		}
		return callOf(&forward.Call{Env: &agg.calls, Server: p}, session.Session, request)
	}
	for _, f := range []*forward.Call{
		call(`{}`, false),
		call(`{"_meta":{"io.modelcontextprotocol/logLevel":"info"}}`, true),
		call(`{"_meta":{}}`, true), // wants no log
	} {
		f.Notify("notifications/message", json.RawMessage(`{"data":1.0}`))
		f.Notify("notifications/x-unknown", json.RawMessage(`{"n":1.0}`))
	}
	log, unknown := `notifications/message {"data":1.0}`, `notifications/x-unknown {"n":1.0}`
	if diff := cmp.Diff([]string{log, unknown, log, unknown, unknown}, mine.got); diff != "" {
		t.Errorf("the host of the calls (-want +got):\n%s", diff)
	}
	if len(other.got) > 0 {
		t.Errorf("another host got %q", other.got)
	}
}

// In whatever order cancels, answers and the end of the connection come, a request
// gets one answer, or none if it was cancelled, and nothing is left behind.
//
// It is not parallel, because the total of a budget has the large buffers of other tests, too.
func TestEveryCallEndsOnce(t *testing.T) {
	for round := range 30 {
		onStage(t, catalogued, func(t *testing.T, st *stage) {
			host, up := st.hosts[0], st.upstreams[0]
			ended := make(chan struct{})
			go func() { // the upstream answers calls, and ends once
				defer close(ended)
				for n := 0; n < 40; n++ {
					for _, m := range up.messages() {
						if m.Method == "tools/call" && n%3 != 0 {
							up.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
						}
					}
					if n == 10+round%20 {
						up.leave()
					}
					time.Sleep(time.Microsecond)
				}
			}()
			const calls = 64
			var hosts sync.WaitGroup
			for n := range calls {
				call := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"up/echo"}}}`, n)
				cancel := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, n)
				hosts.Go(func() {
					time.Sleep(time.Duration(n) * time.Microsecond / 2)
					host.send(call)
					if n%2 == 0 {
						host.send(cancel)
					}
				})
			}
			hosts.Wait()
			<-ended
			up.leave() // ends the calls that it left unanswered
			answers := map[string]int{}
			for _, m := range settle(host) {
				if m.ID != nil {
					answers[string(m.ID)]++
				}
			}
			for n := range calls {
				if got := answers[fmt.Sprint(n)]; got > 1 || got == 0 && n%2 == 1 {
					t.Errorf("request %d got %d answers", n, got)
				}
			}
			p := st.agg.fleet.Of(st.agg.set.Get("up"))
			if got := p.Calls.All(); len(got) > 0 {
				t.Errorf("%d calls stay in flight", len(got))
			}
			if got := st.agg.calls.Budget.Total(); got != 0 {
				t.Errorf("%d bytes of params stay in flight", got)
			}
		})
	}
}

// A cancel that comes before the call is sent takes effect when it is sent.
func TestCancelOvertakesSending(t *testing.T) {
	t.Parallel()
	onStage(t, catalogued, func(t *testing.T, st *stage) {
		up, u := st.upstreams[0], st.agg.set.Get("up")
		conn, release, ok := u.Ready()
		if !ok {
			t.Fatal("the upstream is not ready")
		}
		answers := make(chan error, 2)
		r := &host.Request{Method: "tools/call", Respond: func(_ *host.Request, _ json.RawMessage, err error) { answers <- err }}
		c := callOf(&forward.Call{Env: &st.agg.calls, Server: st.agg.fleet.Of(u), Route: forward.Route{Upstream: u}}, st.agg.sessions.All()[0], r)
		c.Method, c.Done = r.Method, c.Answered
		c.Server.Calls.Mu.Lock() // keeps send from reaching Conn.Start
		sending := make(chan struct{})
		go func() {
			defer close(sending)
			c.SendOver(r, conn, release)
		}()
		for range 100 {
			runtime.Gosched()
		}
		c.Cancel(r, []byte(`"why"`)) // as at shutdown: the request still needs an answer
		c.Server.Calls.Mu.Unlock()
		<-sending
		synctest.Wait()
		sent := up.take()
		if len(sent) != 2 || !strings.Contains(sent[1], "notifications/cancelled") || !strings.Contains(sent[1], `"reason":"why"`) {
			t.Errorf("the upstream got %q, want the call and its cancel", sent)
		}
		if len(answers) != 1 || !strings.Contains(fmt.Sprint(<-answers), "shutting down") || len(c.Server.Calls.All()) > 0 {
			t.Errorf("%d answers too many, %d calls in flight", len(answers), len(c.Server.Calls.All()))
		}
	})
}

// While answers in transit fill their memory budget, no further call is sent.
// Not in parallel: large messages are counted for the process.
func TestResultsInFlightAreBounded(t *testing.T) {
	onStage(t, catalogued, func(t *testing.T, st *stage) {
		host, up := st.hosts[0], st.upstreams[0]
		const use = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"up/echo","tool_input":{}}}}`
		var answer wire.MemoryCounter
		answer.Set(int(st.agg.calls.Budget.Max()) + 1)
		host.send(fmt.Sprintf(use, 1))
		quiesce()
		got := strings.Join(host.take(), "\n")
		for _, part := range []string{`"id":1,`, "requests and answers of 512.0 MB are held", "max_held_bytes", "outcome not_sent"} {
			if !strings.Contains(got, part) {
				t.Errorf("no %q in %s", part, got)
			}
		}
		answer.Set(0)
		host.send(fmt.Sprintf(use, 2))
		quiesce()
		if sent := up.take(); len(sent) != 1 {
			t.Errorf("the upstream got %q, want the second call alone", sent)
		}
		if left := st.agg.calls.Budget.Total(); left <= 0 {
			t.Errorf("%d bytes of arguments are counted with a call in flight", left)
		}
	})
}

// A call whose arguments exceed the memory left by calls in flight is refused. Calls that
// have ended take no memory.
func TestArgumentsInFlightAreBounded(t *testing.T) {
	onStage(t, catalogued, func(t *testing.T, st *stage) {
		host, up := st.hosts[0], st.upstreams[0]
		ask := func(id int, size int) {
			host.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"up/echo","tool_input":{"x":"%s"}}}}`,
				id, strings.Repeat("x", size)))
			quiesce()
		}
		others := st.agg.calls.Budget.Open("others", nil)
		others.Set(int(st.agg.calls.Budget.Max()) - 1200)
		ask(1, 600)
		if got := host.take(); len(got) > 0 {
			t.Fatalf("got %q", got)
		}
		ask(2, 600)
		got := strings.Join(host.take(), "\n")
		for _, part := range []string{`"id":2,`, `more than hosts may have of \"max_held_bytes\", 512.0 MB`, "outcome not_sent", "hint: call again when other calls have been answered"} {
			if !strings.Contains(got, part) {
				t.Errorf("no %q in %s", part, got)
			}
		}
		for _, m := range up.messages() {
			up.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
		}
		quiesce()
		ask(3, 600)
		if got := host.take(); len(got) != 1 || !strings.Contains(got[0], `"id":1,`) {
			t.Errorf("got %q, want the answer to 1", got)
		}
		host.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
		quiesce()
		if left := st.agg.calls.Budget.Total() - (st.agg.calls.Budget.Max() - 1200); left != 0 {
			t.Errorf("%d bytes are counted with nothing in flight", left)
		}
	})
}

// callOf makes c the call for a request.
func callOf(c *forward.Call, s *sessions.Session, r *host.Request) *forward.Call {
	c.Begin(&c.Env.Env, c, s, r, 0)
	return c
}
