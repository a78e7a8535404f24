package aggregator

import (
	stdcmp "cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/rate"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Calls that wait for their server reach it in the order in which they came, also those
// that come after it has started while others still wait. A call that is cancelled meanwhile
// does not reach it.
func TestWaitingCallsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	for _, call := range callsOfEcho {
		testWaitingCalls(t, call)
	}
}

// callsOfEcho call up/echo with a number: as the tool of a request, as a request in the
// arguments of one, and by a path, whose input is checked.
var callsOfEcho = []string{
	`{"name":"use_tool","arguments":{"tool_name":"up/echo","tool_input":{"n":%d}}}`,
	`{"name":"mcp_call","arguments":{"method":"tools/call","params":{"name":"up/echo","arguments":{"n":%d}}}}`,
	`{"name":"meta_call","arguments":{"path":"/up/echo","args":{"n":%d}}}`,
}

// delayStarts makes each start of an upstream take a second.
func (st *stage) delayStarts() {
	open := st.agg.fleet.Open
	st.agg.fleet.Open = func(server schema.Server, opts upstream.ConnOptions) (*upstream.Conn, error) {
		time.Sleep(time.Second)
		return open(server, opts)
	}
}

func testWaitingCalls(t *testing.T, call string) {
	onStage(t, strings.Replace(catalogued, "-- upstream", "expose discover browser tree\n-- upstream", 1), func(t *testing.T, st *stage) {
		host, up := st.hosts[0], st.upstreams[0]
		st.delayStarts()
		up.leave()
		synctest.Wait()
		const calls = 60
		var want []string
		for n := range calls {
			host.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":`+call+`}`, n, n))
			if n%7 == 3 {
				host.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, n))
			} else {
				want = append(want, fmt.Sprint(n))
			}
		}
		time.Sleep(time.Second)
		var got []string
		for _, m := range settle(up) {
			n := string(wire.Get(m.Params, "arguments", "n"))
			if m.Method == "tools/call" {
				got = append(got, n)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the upstream got other calls, or in another order (-want +got):\n%s", diff)
		}
		if left := st.agg.fleet.Of(st.agg.set.Get("up")).Record.Queue.Length.Load(); left != 0 {
			t.Errorf("%d calls stay in the queue", left)
		}
	})
}

// Calls of tools that are not known before their server has started keep their order too,
// as requests of the host and in the arguments of others.
func TestFirstCallsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	for _, call := range callsOfEcho {
		onStage(t, `
-- setup --
host 2025-11-25 {}
upstream lazy 2025-11-25 {"tools":{}}
expose discover browser tree
-- upstream tools/list --
{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}
`, func(t *testing.T, st *stage) {
			st.delayStarts()
			var want, got []string
			for n := range 60 {
				st.hosts[0].send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":`+call+`}`, n, n))
				want = append(want, fmt.Sprint(n))
			}
			time.Sleep(time.Second)
			for _, m := range settle(st.upstreams[0]) {
				if m.Method == "tools/call" {
					got = append(got, string(wire.Get(m.Params, "arguments", "n")))
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the upstream got other calls, or in another order (-want +got):\n%s", diff)
			}
			if st.agg.fleet.Of(st.agg.set.Get("up")).Record.Queue.InUse() {
				t.Error("calls stay in the queue")
			}
		})
	}
}

// A bounded server takes two calls at a time. Two hosts use it.
type bounded struct {
	*stage
	t     *testing.T
	calls int
	ids   []string // of calls that the server has to answer, oldest first
}

// testBounded runs test. If apart is true, another replica runs the server and serves one of
// the hosts.
func testBounded(t *testing.T, apart bool, test func(*bounded)) {
	testLimited(t, apart, `"max_calls":2`, test)
}

// testLimited is testBounded with other limits of the server.
func testLimited(t *testing.T, apart bool, limits string, test func(*bounded)) {
	there := "here"
	if apart {
		there = "there"
	}
	synctest.Test(t, func(t *testing.T) {
		st := setStage(t, txtar.Parse([]byte(`
-- setup --
host here 2025-11-25 {}
host `+there+` 2025-11-25 {}
upstream 2025-11-25 {"tools":{}}
expose direct
-- upstream config --
`+limits+`,"timeout":"20s","tool_overrides":{"slow":{"timeout":0}}
-- upstream tools/list --
{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"slow","inputSchema":{"type":"object"}}]}
`)), apart)
		defer st.close()
		b := &bounded{stage: st, t: t}
		test(b)
		agg := stdcmp.Or(st.other, st.agg)
		for i, l := range agg.fleet.Of(agg.set.Get("up")).Record.Limits() {
			if l.InUse() {
				t.Errorf("a place of limit %d is taken", i)
			}
		}
	})
}

// call has the hosts take turns in calling a tool n times. Calls are numbered from 1.
func (b *bounded) call(n int, tool string) {
	for range n {
		b.calls++
		b.hosts[b.calls%2].send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"up__%s","arguments":{"n":%[1]d}}}`, b.calls, tool))
		synctest.Wait()
	}
}

func (b *bounded) cancel(n int) {
	b.hosts[n%2].send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, n))
}

// end has the server answer its oldest calls.
func (b *bounded) end(n int) {
	for range n {
		b.upstreams[0].send(`{"jsonrpc":"2.0","id":` + b.ids[0] + `,"result":{"content":[]}}`)
		b.ids = b.ids[1:]
		synctest.Wait()
	}
}

// expect checks which calls have come to the server, and how many wait.
func (b *bounded) expect(waiting int, want ...string) {
	b.t.Helper()
	var got []string
	for _, m := range settle(b.upstreams[0]) {
		if m.Method == "tools/call" {
			got, b.ids = append(got, string(wire.Get(m.Params, "arguments", "n"))), append(b.ids, string(m.ID))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("other calls have come (-want +got):\n%s", diff)
	}
	if left := stdcmp.Or(b.other, b.agg).Status().Upstreams()[0].Waiting; left != waiting {
		b.t.Errorf("%d calls wait, want %d", left, waiting)
	}
}

// Calls over max_calls reach the server in order, across sessions and replicas. A call that
// is cancelled while it waits does not reach it.
func TestMaxCallsKeepsTheOrder(t *testing.T) {
	t.Parallel()
	for _, apart := range []bool{false, true} {
		testBounded(t, apart, func(b *bounded) {
			b.call(8, "slow")
			b.expect(6, "1", "2")
			b.cancel(3)
			b.cancel(6)
			b.expect(4)
			b.end(1)
			b.expect(3, "4")
			b.cancel(2) // which runs
			b.expect(2, "5")
			b.call(1, "slow")
			b.ids = append(b.ids[1:2:2], b.ids[2:]...)
			b.end(2)
			b.expect(1, "7", "8")
			b.end(1)
			b.expect(0, "9")
			b.end(2)
		})
	}
}

// A call waits at most its timeout after it came, also if the config is reloaded meanwhile.
func TestMaxCallsEndsWithTheTimeout(t *testing.T) {
	t.Parallel()
	testBounded(t, false, func(b *bounded) {
		b.call(2, "slow")
		b.call(1, "echo")
		time.Sleep(15 * time.Second)
		b.call(1, "echo")
		old := b.upstreams[0].stream
		b.reload(func(s *schema.Server) { s.MaxCalls = 1 })
		b.expect(2, "1", "2")
		time.Sleep(5 * time.Second)
		b.expect(1)
		text := strings.Join(b.hosts[1].take(), "")
		if !strings.Contains(text, "max_calls") || !strings.Contains(text, `"outcome":"not_sent"`) {
			t.Errorf("the host got %s", text)
		}
		old.Close()
		b.ids = nil
		b.expect(0, "4")
		b.end(1)
	})
}

// reload changes the entry of the server, which is started again.
func (b *bounded) reload(change func(*schema.Server)) {
	cfg := *b.agg.config()
	cfg.Servers = slices.Clone(cfg.Servers)
	change(&cfg.Servers[0])
	if err := b.agg.Apply(&cfg); err != nil {
		b.t.Fatal(err)
	}
}

func TestMaxCallsKeepsTheOrderAfterAReload(t *testing.T) {
	t.Parallel()
	testBounded(t, false, func(b *bounded) {
		b.call(5, "slow")
		b.expect(3, "1", "2")
		old := b.upstreams[0].stream
		b.reload(func(s *schema.Server) { s.MaxCalls = 3 })
		b.expect(2, "3")
		b.call(1, "slow")
		old.Close()
		b.ids = b.ids[2:]
		b.expect(1, "4", "5")
		b.reload(func(s *schema.Server) { s.MaxCalls = 0 })
		b.call(1, "slow")
		b.expect(0, "6", "7")
		b.ids = b.ids[3:]
		b.end(2)
		time.Sleep(time.Minute) // the calls to the old server end with it
	})
}

func TestMaxCallsKeepsTheOrderAfterARestart(t *testing.T) {
	t.Parallel()
	testBounded(t, false, func(b *bounded) {
		b.call(6, "slow")
		b.expect(4, "1", "2")
		b.upstreams[0].leave()
		b.ids = b.ids[2:]
		b.expect(2, "3", "4")
		b.end(1)
		b.expect(1, "5")
		b.end(2)
		b.expect(0, "6")
		b.end(1)
	})
}

// Calls over the rate reach the server in order, when the oldest start is a period ago. So do those
// of other replicas, and those that max_calls holds back as well.
func TestRateKeepsTheOrder(t *testing.T) {
	t.Parallel()
	for _, apart := range []bool{false, true} {
		testLimited(t, apart, `"rate":"2/10s"`, func(b *bounded) {
			b.call(1, "slow")
			time.Sleep(4 * time.Second)
			b.call(4, "slow")
			b.expect(3, "1", "2")
			b.cancel(4)
			time.Sleep(5 * time.Second)
			b.expect(2)
			time.Sleep(time.Second)
			b.expect(1, "3")
			b.end(3) // which frees no place
			time.Sleep(3 * time.Second)
			b.expect(1)
			time.Sleep(time.Second)
			b.expect(0, "5")
			b.end(1)
		})
	}
	testLimited(t, false, `"rate":"3/1s","max_calls":1`, func(b *bounded) {
		b.call(5, "slow")
		b.expect(4, "1")
		for _, next := range []string{"2", "3"} {
			b.end(1)
			b.expect(5-int(next[0]-'0'), next)
		}
		b.end(1) // the rate is used up
		b.expect(2)
		time.Sleep(time.Second)
		b.expect(1, "4")
		b.end(1)
		b.expect(0, "5")
		b.end(1)
	})
}

// A call that the rate holds back for its timeout did not run. A reload keeps the starts, and the
// order of those that wait.
func TestRateOutlivesAReload(t *testing.T) {
	t.Parallel()
	testLimited(t, false, `"rate":"2/1m"`, func(b *bounded) {
		b.call(2, "slow")
		b.call(1, "echo")
		b.call(2, "slow")
		b.expect(3, "1", "2")
		b.end(2)
		time.Sleep(20 * time.Second)
		b.expect(2)
		if text := strings.Join(b.hosts[1].take(), ""); !strings.Contains(text, `its \"rate\" (2/m) let no other call start for 20s`) || !strings.Contains(text, `"outcome":"not_sent"`) {
			t.Errorf("the host got %s", text)
		}
		b.reload(func(s *schema.Server) { s.Rate = rate.Rate{Calls: 3, Per: time.Minute} })
		b.expect(1, "4")
		b.reload(func(s *schema.Server) { s.Rate = rate.Rate{} })
		b.expect(0, "5")
		b.end(2)
	})
}
