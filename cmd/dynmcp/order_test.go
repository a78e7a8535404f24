package main_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Messages of an upstream arrive in the order in which it sent them.

// story returns what a host receives of some calls, in order.
func story(host *mcptest.Host, call func(tool, input, token string)) []string {
	before := len(host.Messages())
	for n := range 20 {
		call("log", fmt.Sprintf(`{"times":%d,"data":"log %d"}`, n%5, n), "")
		call("progress", fmt.Sprintf(`{"steps":%d}`, n%4), fmt.Sprintf("token %d", n))
	}
	var told []string
	for _, m := range host.Messages()[before:] {
		switch m.Method {
		case "":
			told = append(told, "result "+m.Text())
		case "notifications/message":
			told = append(told, "log "+string(m.Member("data")))
		case "notifications/progress":
			told = append(told, "progress "+string(m.Member("progressToken"))+string(m.Member("progress")))
		}
	}
	return told
}

func TestOrderIsThatOfTheUpstream(t *testing.T) {
	t.Parallel()
	params := func(tool, input, token string) any {
		if token == "" {
			return mcptest.ToolParams(tool, input)
		}
		return mcptest.ToolParams(tool, input, `"_meta":{"progressToken":`+quote(token)+`}`)
	}
	plain := direct(t, "fakemcp")
	want := story(plain, func(tool, input, token string) { plain.Call("tools/call", params(tool, input, token)) })
	through := func(host *mcptest.Host, prefix string) func(tool, input, token string) {
		return func(tool, input, token string) {
			var more []string
			if token != "" {
				more = append(more, `"_meta":{"progressToken":`+quote(token)+`}`)
			}
			host.Call("tools/call", useParams(prefix+tool, input, more...))
		}
	}
	single, config := wrap(t), serve(t, fake(t, "alpha"))
	if got := story(single, through(single, "")); !slices.Equal(got, want) {
		t.Errorf("single: got  %q\nwant %q", got, want)
	}
	if got := story(config, through(config, "alpha/")); !slices.Equal(got, want) {
		t.Errorf("config: got  %q\nwant %q", got, want)
	}
}

func TestNothingOfACallComesBehindItsResult(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha"), fake(t, "beta"))
	var calls []*mcptest.Pending
	for n := range 20 {
		server := []string{"alpha", "beta"}[n%2]
		calls = append(calls, host.Go("tools/call", useParams(server+"/progress", `{"steps":20}`, fmt.Sprintf(`"_meta":{"progressToken":%d}`, n))))
	}
	for _, call := range calls {
		call.Wait()
	}
	ended := map[string]bool{} // tokens of the calls that were answered
	steps := map[string]int{}
	for _, m := range host.Messages() {
		switch {
		case m.Method == "notifications/progress":
			token := string(m.Member("progressToken"))
			steps[token]++
			if got, want := string(m.Member("progress")), fmt.Sprintf("%d.0", steps[token]); got != want {
				t.Errorf("token %s: got step %s, want %s", token, got, want)
			}
			if ended[token] {
				t.Errorf("progress of %s behind its result", token)
			}
		case m.IsAnswer():
			for n, call := range calls {
				if string(call.ID) == string(m.ID) {
					ended[fmt.Sprint(n)] = true
				}
			}
		}
	}
	for n := range calls {
		if got := steps[fmt.Sprint(n)]; got != 20 {
			t.Errorf("token %d: got %d steps, want 20", n, got)
		}
	}
}

func TestSlowCallHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha"))
	slow := host.Go("tools/call", useParams("alpha/sleep", nil))
	for range 10 {
		checkEcho(t, host, "alpha/echo", `{}`)
	}
	if slow.Done() {
		t.Error("sleep was answered")
	}
	slow.Cancel("done")
}
