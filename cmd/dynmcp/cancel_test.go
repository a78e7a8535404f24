package main_test

import (
	"encoding/json"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Cancellation reaches the server under the id that it knows, and the host gets no answer.

// heard are the messages that a fake received last.
func heard(t *testing.T, m mcptest.Message) []mcptest.Message {
	t.Helper()
	var lines []string
	if err := json.Unmarshal([]byte(m.Text()), &lines); err != nil {
		t.Fatalf("%v in %s", err, m.Raw)
	}
	var all []mcptest.Message
	for _, line := range lines {
		all = append(all, mcptest.Parse(line))
	}
	return all
}

func TestCancelOfAnythingElseIsIgnored(t *testing.T) {
	t.Parallel()
	alpha := fake(t, "alpha")
	host := serve(t, alpha)
	done := host.Go("tools/call", useParams("alpha/echo", `{}`))
	done.Wait()
	done.Cancel("too late")
	for _, params := range []any{`{"requestId":"nobody"}`, `{"requestId":null}`, `{}`, `[]`, nil} {
		host.Notify("notifications/cancelled", params)
	}
	checkEcho(t, host, "alpha/echo", `{"n":1}`)
	if n := alpha.Count("cancelled"); n > 0 {
		t.Errorf("the server was told of %d cancels", n)
	}
}

func TestCancelOfEveryKindOfRequest(t *testing.T) {
	t.Parallel()
	for method, params := range map[string]string{
		"resources/read":      `{"uri":"fake://alpha/text"}`,
		"prompts/get":         `{"name":"alpha.greet"}`,
		"completion/complete": `{"ref":{"type":"ref/prompt","name":"alpha.greet"},"argument":{"name":"who","value":"x"}}`,
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			alpha := fake(t, "alpha", "-fault", "hang-call", "-fault-on", method)
			host := serve(t, alpha)
			call := host.Go(method, params)
			alpha.WaitFor("fault hang-call", 1)
			call.Cancel("enough")
			alpha.WaitFor("cancelled", 1)
			host.Call("ping", nil)
			if call.Done() {
				t.Error("answered")
			}
		})
	}
}
