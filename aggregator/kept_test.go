package aggregator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

const keeping = `
-- setup --
host here 2025-11-25 {}
upstream 2025-11-25 {"resources":{"subscribe":true},"logging":{}}
-- upstream resources/list --
{"resources":[{"uri":"x://a","name":"a"}]}
-- upstream resources/templates/list --
{"resourceTemplates":[{"uriTemplate":"x://{+path}","name":"b"}]}
`

// ask sends a request of a host, answers what the upstream is sent for it, and returns the code of the
// error of the answer, "" for a result.
func (st *stage) ask(t *testing.T, h *actor, request string) (code string) {
	t.Helper()
	h.send(request)
	for _, m := range settle(st.upstreams[0]) {
		if m.IsRequest() {
			st.upstreams[0].send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
		}
	}
	for _, m := range settle(h) {
		if !m.IsRequest() && m.Method == "" {
			return string(wire.Get(m.Raw, "error", "code"))
		}
	}
	t.Fatalf("%.200s is not answered", request)
	return ""
}

// What a session keeps of what its host said counts as held for it, until the session ends.
// Not in parallel: large messages are counted for the process.
func TestWhatASessionKeepsIsCharged(t *testing.T) {
	onStage(t, keeping, func(t *testing.T, st *stage) {
		settle(st.hosts[0])
		budget := st.agg.calls.Budget
		before := budget.Total()
		h, end := st.connect()
		last := budget.Total()
		uri := "x://" + strings.Repeat("u", 1000)
		for id, step := range []struct {
			method, params string
			grows          int64 // at least
		}{
			{"resources/subscribe", fmt.Sprintf(`{"uri":%q}`, uri), 1004},
			{"resources/subscribe", fmt.Sprintf(`{"uri":%q}`, uri), 0},
			{"logging/setLevel", fmt.Sprintf(`{"level":"debug","_meta":{"x":%q}}`, uri), 1004},
			{"logging/setLevel", `{"level":"debug"}`, -1004},
			{"resources/unsubscribe", fmt.Sprintf(`{"uri":%q}`, uri), -1004},
			{"resources/unsubscribe", fmt.Sprintf(`{"uri":%q}`, uri), 0},
			{"resources/subscribe", fmt.Sprintf(`{"uri":%q}`, uri), 1004},
		} {
			if code := st.ask(t, h, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, step.method, step.params)); code != "" {
				t.Errorf("%s, step %d: error %s", step.method, id, code)
			}
			now := budget.Total()
			if grown := now - last; step.grows > 0 && grown < step.grows || step.grows < 0 && grown > step.grows || step.grows == 0 && grown != 0 {
				t.Errorf("after %s, step %d, %d bytes more are held, want about %d", step.method, id, grown, step.grows)
			}
			last = now
		}
		end()
		settle(h)
		if got := budget.Total(); got != before {
			t.Errorf("%d bytes are held after the end, want %d", got, before)
		}
	})
}

// What is too long to be kept is refused.
// Not in parallel: large messages are counted for the process.
func TestLongPartsAreRefused(t *testing.T) {
	onStage(t, keeping, func(t *testing.T, st *stage) {
		settle(st.hosts[0])
		before := st.agg.calls.Budget.Total()
		for _, size := range []int{maxKept - 100, maxKept + 1} {
			text, want := strings.Repeat("u", size), ""
			if size > maxKept {
				want = "-32602"
			}
			for _, request := range []string{
				fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x://%s"}}`, text),
				fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug","_meta":{"x":%q}}}`, text),
			} {
				if code := st.ask(t, st.hosts[0], request); code != want {
					t.Errorf("%d bytes of %.80s: code %q, want %q", size, request, code, want)
				}
			}
			if size < maxKept {
				before = st.agg.calls.Budget.Total()
			}
		}
		if got := st.agg.calls.Budget.Total(); got != before {
			t.Errorf("%d bytes are held, before it were %d", got, before)
		}
	})
}

// The sessions of an account that holds too much keep no more, until they keep less.
func TestSessionsKeepNoMoreThanTheyMay(t *testing.T) {
	onStage(t, keeping, func(t *testing.T, st *stage) {
		st.agg.calls.Budget = membudget.New(20_000, nil)
		h, _ := st.connect()
		subscribe := func(method string, n int) string {
			return st.ask(t, h, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/%s","params":{"uri":"x://%0*d"}}`, n, method, 1000, n))
		}
		n := 1
		for ; n < 20 && subscribe("subscribe", n) == ""; n++ {
		}
		if got := st.agg.calls.Budget.Total(); n < 5 || n > 8 || got > 12_000 {
			t.Errorf("%d subscriptions of 1.5 KB hold %d bytes, want about half of 20,000", n-1, got)
		}
		if code := subscribe("subscribe", n); code != fmt.Sprint(transports.CodeOverloaded) {
			t.Errorf("one more has the code %q", code)
		}
		if code := subscribe("unsubscribe", 1); code != "" {
			t.Errorf("the end of one has the code %q", code)
		}
		if code := subscribe("subscribe", n); code != "" {
			t.Errorf("one more in its place has the code %q", code)
		}
	})
}
