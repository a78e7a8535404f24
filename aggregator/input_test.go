package aggregator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/host"
)

const bridged = `-- setup --
host 2026-07-28 {"elicitation":{}}
upstream 2025-11-25 {"tools":{}}
-- upstream tools/list --
{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}
`

// echoOf returns a call of echo by a host of the stateless era.
func echoOf(h *actor, id int, more string) string {
	return h.message(fmt.Sprintf(`{"id":%d,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"up/echo","tool_input":{"n":%d}},"_meta":{$HOST}%s}}`, id, id%100_000, more))
}

// settle waits until nothing more happens, and returns what an actor has received.
func settle(a *actor) []wire.Message {
	quiesce()
	return a.messages()
}

// Twenty calls that wait for the host's answers do not block others, and each gets its own
// answer.
func TestParkedCallsBlockNobody(t *testing.T) {
	onStage(t, bridged, func(t *testing.T, st *stage) {
		h, up := st.hosts[0], st.upstreams[0]
		states := map[int]string{}
		for id := range 20 {
			h.send(echoOf(h, id, ""))
		}
		for _, m := range settle(up) {
			up.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"of-%s","method":"elicitation/create","params":{"message":"?"}}`, m.ID))
		}
		for _, m := range settle(h) {
			var id int
			fmt.Sscan(string(m.ID), &id)
			states[id] = string(wire.Get(m.Result, "requestState"))
			if got := string(wire.Get(m.Result, "inputRequests")); got != `{"question-1":{"method":"elicitation/create","params":{"message":"?"}}}` {
				t.Errorf("got %s", got)
			}
		}
		if len(states) != 20 {
			t.Fatalf("%d calls were parked, want 20", len(states))
		}
		h.send(echoOf(h, 100, ""))
		for _, m := range settle(up) {
			up.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"free":true}}`, m.ID))
		}
		if got := settle(h); len(got) != 1 || string(got[0].ID) != "100" {
			t.Fatalf("a call beside them got %d answers", len(got))
		}
		for id, state := range states {
			h.send(echoOf(h, id+100_000, fmt.Sprintf(`,"inputResponses":{"question-1":{"action":"accept","n":%d}},"requestState":%s`, id, state)))
		}
		answered := map[string]bool{}
		for _, m := range settle(up) {
			answered[string(m.ID)] = string(wire.Get(m.Result, "action")) == `"accept"`
			call := strings.TrimSuffix(strings.TrimPrefix(string(m.ID), `"of-`), `"`)
			up.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"of":%s}}`, call, call))
		}
		if len(answered) != 20 {
			t.Errorf("%d questions were answered, want 20", len(answered))
		}
		if got := settle(h); len(got) != 20 {
			t.Errorf("%d calls were answered, want 20", len(got))
		}
		nothingParked(t, st)
	})
}

// The params of calls that wait for their host count as held for it. If one more does not fit,
// the oldest call is abandoned.
func TestParkedCallsAreAccountedFor(t *testing.T) {
	onStage(t, bridged, func(t *testing.T, st *stage) {
		h, up := st.hosts[0], st.upstreams[0]
		const size, most = 10_000, 8
		st.agg.calls.Budget = membudget.New(most*size, nil)
		parked, cancelled := 0, 0
		for id := range 2 * most {
			h.send(echoOf(h, id, fmt.Sprintf(`,"more":%q`, strings.Repeat("x", size))))
			for _, m := range settle(up) {
				up.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"of-%s","method":"elicitation/create","params":{"message":"?"}}`, m.ID))
			}
			for _, m := range settle(h) {
				if ask.NeedsInput(nil, m.Result) {
					parked++
				}
			}
			for _, m := range settle(up) {
				if m.Method == "notifications/cancelled" {
					cancelled++
				}
			}
			if got := st.agg.calls.Budget.Total(); got > (most/2+1)*size {
				t.Errorf("%d bytes are held for one host", got)
			}
		}
		// One host may exceed its half by one.
		if parked != 2*most || cancelled != 2*most-most/2 {
			t.Errorf("%d calls were parked, %d given up", parked, cancelled)
		}
		time.Sleep(ask.InputWait)
		settle(up)
		nothingParked(t, st)
	})
}

func nothingParked(t *testing.T, st *stage) {
	t.Helper()
	p := st.agg.fleet.Of(st.agg.set.Get("up"))
	parked := 0
	st.agg.calls.Waiting.Abandon(nil, func(*call.Flight, *host.Request) bool { parked++; return false })
	if n, size := len(p.Calls.All()), st.agg.calls.Budget.Total(); n+int(size)+parked > 0 {
		t.Errorf("%d calls stay in flight, with %d bytes of params, and %d parked", n, size, parked)
	}
}

// The notifications of a parked call are kept up to a bound, and the rest is counted.
func TestNotificationsOfAParkedCallAreBounded(t *testing.T) {
	onStage(t, bridged, func(t *testing.T, st *stage) {
		h, up := st.hosts[0], st.upstreams[0]
		h.send(echoOf(h, 1, ""))
		settle(up)
		up.send(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}`)
		state := string(wire.Get(settle(h)[0].Result, "requestState"))
		before := st.agg.calls.Budget.Total()
		for n := range 2 * call.MaxBuffered {
			up.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/x-unknown","params":{"n":%d}}`, n))
		}
		if got := settle(h); len(got) > 0 {
			t.Fatalf("got %s", got[0].Raw)
		}
		if kept := st.agg.calls.Budget.Total() - before; kept < call.MaxBuffered*int64(len(`{"n":1}`)) || kept > call.MaxBuffered*int64(len(`{"n":100}`)) {
			t.Errorf("%d bytes are charged for what is kept", kept)
		}
		h.send(echoOf(h, 100_001, `,"inputResponses":{"question-1":{"action":"accept"}},"requestState":`+state))
		got := settle(h)
		for n, m := range got {
			if string(wire.Get(m.Params, "n")) != fmt.Sprint(n) {
				t.Errorf("number %d is %s", n, m.Raw)
			}
		}
		if len(got) != call.MaxBuffered {
			t.Errorf("got %d, want the first %d", len(got), call.MaxBuffered)
		}
	})
}
