package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// use_tool: what reaches the upstream, and what comes back.

// awkward are JSON texts that do not survive a decoder and an encoder.
var awkward = []string{
	`{"content":[],"big":9007199254740993,"huge":123456789012345678901234567890,"one":1.0,"exp":1e400,"neg":-0.0}`,
	`{"z":1,"content":[{"type":"text","text":"a"}],"a":{"y":2,"b":3}}`,
	`{"content":[{"type":"text","text":"\u00e9 é \ud83c\udf89 🎉 \/ / <&> \u2028"}]}`,
	`{ "content" : [ ] , "spaces" :	{ } }`,
	`{"content":[{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"priority":1.0,"audience":["user"]}}],"structuredContent":{"n":1.0,"n2":[]},"isError":false,"_meta":{"k":{"v":1.0}}}`,
	`{"content":[{"type":"strange","x":null}],"":"empty key","content2":null}`,
	`{"content":[],"dup":1,"dup":2}`,
	`{"content":[],"lone":"\ud800","nul":"\u0000"}`,
}

func TestNameIsSplitAtTheFirstSlash(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-tool", `{"name":"a/b","inputSchema":{"type":"object"}}`))
	contains(t, catalogue(t, host), "- alpha/a/b")
	use(host, "alpha/a/b", `{"n":1}`)
	contains(t, use(host, "alpha/received", `{"n":2}`).Text(), `\"name\":\"a/b\"`)
}

func TestSlashIsNoSeparatorInSingleWrap(t *testing.T) {
	t.Parallel()
	host := wrap(t, "-tool", `{"name":"a/b","inputSchema":{"type":"object"}}`)
	if got := use(host, "a/b", `{"n":1}`).Text(); got != `{"n":1}` {
		t.Errorf("got %q", got)
	}
	contains(t, use(host, "received", `{"n":2}`).Text(), `\"name\":\"a/b\"`)
}

func TestCrashOfTheUpstreamIsSaidAndTheNextCallWorks(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	host := serve(t, e, fake(t, "beta"))
	m := use(host, "alpha/fault", `{"mode":"crash-call"}`)
	if !m.IsError() || m.Error != nil {
		t.Errorf("got %s", m.Raw)
	}
	contains(t, m.Text(), "alpha: ", "exited with status 3", "outcome unknown", "fakemcp: panic: as asked")
	checkEcho(t, host, "beta/echo", `{}`)
	checkEcho(t, host, "alpha/echo", `{"again":1}`)
	if e.Count("start") != 2 || e.Count("call fault") != 1 {
		t.Errorf("got %q", e.Events())
	}
}

func TestCrashEndsEveryCallInFlight(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	host := serve(t, e)
	var calls []*mcptest.Pending
	for range 5 {
		calls = append(calls, host.Go("tools/call", useParams("alpha/sleep", nil)))
	}
	e.WaitFor("call sleep", 5)
	use(host, "alpha/crash", nil)
	for _, call := range calls {
		contains(t, call.Wait().Text(), "outcome unknown")
	}
}

func TestAnswerOverTheLimitFailsOnlyItsCall(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha").with("max_message_bytes", 100000)
	host := serve(t, e)
	small := host.Go("tools/call", useParams("alpha/sleep", `{"ms":1}`))
	m := use(host, "alpha/big", `{"bytes":1000000}`)
	contains(t, m.Text(), "100000")
	if !m.IsError() || small.Wait().Text() != "slept" {
		t.Errorf("got %s", m.Raw)
	}
	if got := len(use(host, "alpha/big", `{"bytes":90000}`).Text()); got != 90000 {
		t.Errorf("got %d bytes", got)
	}
	if e.Count("start") != 1 {
		t.Error("the upstream was started again")
	}
}

func TestLargeMessagesPassWhole(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha"))
	const size = 5 << 20
	if got := use(host, "alpha/big", fmt.Sprintf(`{"bytes":%d}`, size)).Text(); got != strings.Repeat("x", size) {
		t.Errorf("got %d bytes, want %d", len(got), size)
	}
	text := `{"text":"` + strings.Repeat("é\\u00e9", 100_000) + `"}`
	checkEcho(t, host, "alpha/echo", text)
}

func TestThousandCallsAtOnce(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha"), fake(t, "beta"), deferred(t, "later", "Later"))
	input := func(n int) string { return fmt.Sprintf(`{"n":%d,"text":%q}`, n, strings.Repeat("x", n)) }
	var calls []*mcptest.Pending
	for n := range 1000 {
		server := []string{"alpha", "beta", "later"}[n%3]
		calls = append(calls, host.Go("tools/call", useParams(server+"/echo", input(n))))
	}
	answers := map[string]string{}
	for _, call := range calls {
		if m := call.Wait(); answers[string(m.ID)] != "" {
			t.Errorf("two answers to %s", m.ID)
		} else {
			answers[string(m.ID)] = m.Text()
		}
	}
	for n, call := range calls {
		if got := answers[string(call.ID)]; got != input(n) {
			t.Errorf("call %d: got %.100s", n, got)
		}
	}
}
