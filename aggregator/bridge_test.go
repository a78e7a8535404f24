package aggregator

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/wire"
)

const bridged = `-- setup --
host 2026-07-28 {"elicitation":{}}
upstream 2025-11-25 {"tools":{}}
-- upstream tools/list --
{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}
`

// echoOf is a call of echo by a host of the stateless era.
func echoOf(h *actor, id int, more string) string {
	return h.message(fmt.Sprintf(`{"id":%d,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"up/echo","tool_input":{"n":%d}},"_meta":{$HOST}%s}}`, id, id%100_000, more))
}

// settle returns what an actor has received when nothing more happens.
func settle(a *actor) (received []wire.Message) {
	time.Sleep(settling)
	synctest.Wait()
	for _, text := range a.take() {
		m, _ := wire.Parse([]byte(text))
		received = append(received, m)
	}
	return received
}

// Twenty calls that wait for the host's answers are in nobody's way: others pass, and
// each gets its own answer.
func TestParkedCallsBlockNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, txtar.Parse([]byte(bridged)))
		defer st.close()
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

// Calls that their host never continues leave nothing: the oldest make room for new
// ones, the last end by their deadline.
func TestAbandonedCallsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, txtar.Parse([]byte(bridged)))
		defer st.close()
		h, up := st.hosts[0], st.upstreams[0]
		const calls, together = 10_000, 100
		parked, cancelled, refusals := 0, 0, 0
		upstreamGot := func() {
			for _, m := range settle(up) {
				switch {
				case m.Method == "tools/call":
					up.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"of-%s","method":"elicitation/create","params":{"message":"?"}}`, m.ID))
				case m.Method == "notifications/cancelled":
					cancelled++
				case m.Error != nil:
					refusals++
				}
			}
		}
		for id := 0; id < calls; id += together {
			for n := range together {
				h.send(echoOf(h, id+n, ""))
			}
			upstreamGot()
			for _, m := range settle(h) {
				if ask.NeedsInput(nil, m.Result) {
					parked++
				}
			}
		}
		time.Sleep(parkedFor)
		upstreamGot()
		if parked != calls || cancelled != calls || refusals != calls {
			t.Errorf("%d calls were parked, %d cancelled, %d questions refused, want %d each", parked, cancelled, refusals, calls)
		}
		nothingParked(t, st)
	})
}

func nothingParked(t *testing.T, st *stage) {
	t.Helper()
	p := st.agg.peerOf(st.agg.set.Get("up"))
	if n, size, parked := len(p.calls.all()), st.agg.paramsInFlight.Load(), len(st.agg.parked.byID); n+int(size)+parked > 0 {
		t.Errorf("%d calls stay in flight, with %d bytes of params, and %d parked", n, size, parked)
	}
}

// What an upstream says of a parked call is kept within bounds, and the rest counted.
func TestNotificationsOfAParkedCallAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, txtar.Parse([]byte(bridged)))
		defer st.close()
		h, up := st.hosts[0], st.upstreams[0]
		h.send(echoOf(h, 1, ""))
		settle(up)
		up.send(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}`)
		state := string(wire.Get(settle(h)[0].Result, "requestState"))
		for n := range 2 * maxKept {
			up.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/x-unknown","params":{"n":%d}}`, n))
		}
		if got := settle(h); len(got) > 0 {
			t.Fatalf("got %s", got[0].Raw)
		}
		h.send(echoOf(h, 100_001, `,"inputResponses":{"question-1":{"action":"accept"}},"requestState":`+state))
		got := settle(h)
		for n, m := range got {
			if string(wire.Get(m.Params, "n")) != fmt.Sprint(n) {
				t.Errorf("number %d is %s", n, m.Raw)
			}
		}
		if len(got) != maxKept {
			t.Errorf("got %d, want the first %d", len(got), maxKept)
		}
	})
}

// A state is opened only by who sealed it, and as it was sealed.
func TestStatesAreSealed(t *testing.T) {
	keys := seal.Random()
	ours := &Aggregator{opts: Options{Keys: keys}}
	other := &Aggregator{opts: Options{Keys: seal.Random()}}
	want := requestState{Owner: "a", Call: "c", Principal: "p", Upstream: "u", Request: digest("m", []byte(`{"n":1}`)), Expires: 7, State: []byte(`"\u00e9"`)}
	text := ours.sealState(want)
	if got, err := ours.openState(text); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if again := ours.sealState(want); again == text {
		t.Error("two states are the same text")
	}
	if _, err := other.openState(text); err == nil {
		t.Error("another key opens it")
	}
	for i := range len(text) {
		changed := []byte(text)
		changed[i] ^= 1
		if _, err := ours.openState(string(changed)); err == nil {
			t.Errorf("changed at %d it is opened", i)
		}
		if _, err := ours.openState(text[:i]); err == nil {
			t.Errorf("cut at %d it is opened", i)
		}
	}
	replica := &Aggregator{opts: Options{Keys: keys, Replica: "b"}}
	if owner, ok := replica.OwnerOf(statePrefix + text); owner != "a" || !ok {
		t.Errorf("another replica reads that it is of %q, %v", owner, ok)
	}
	for _, text := range []string{text, statePrefix, statePrefixOffer + "x.e30", statePrefixOffer + "x.e30." + text[1:], "its own"} {
		if owner, ok := replica.OwnerOf(text); ok {
			t.Errorf("%q is of %q", text, owner)
		}
	}
	asked := replica.loginQuestion(&offer{id: "x"}, nil)
	state, _ := wire.Text(wire.Get(asked, "requestState"))
	if owner, ok := ours.OwnerOf(state); owner != "b" || !ok {
		t.Errorf("the offer of a login is of %q, %v", owner, ok)
	}
}

// A digest is that of what is wanted, not of how it is written.
func TestDigest(t *testing.T) {
	const params = `{"name":"x","arguments":{"a":1.0,"b":[9007199254740993]}}`
	same := []string{
		`{ "arguments":{"b":[9007199254740993],"a":1.0}, "name":"x" }`,
		`{"name":"x","arguments":{"a":1.0,"b":[9007199254740993]},"_meta":{"x":1},"inputResponses":{},"requestState":"s"}`,
	}
	for _, other := range same {
		if digest("m", []byte(other)) != digest("m", []byte(params)) {
			t.Errorf("%s is another request", other)
		}
	}
	for _, other := range []string{`{}`, ``, `[1]`, strings.Replace(params, "993", "992", 1), strings.Replace(params, "1.0", "1", 1), strings.Replace(params, `"x"`, `"y"`, 1)} {
		if digest("m", []byte(other)) == digest("m", []byte(params)) {
			t.Errorf("%s is the same request", other)
		}
	}
	if digest("m", []byte(params)) == digest("n", []byte(params)) {
		t.Error("the method makes no difference")
	}
}
