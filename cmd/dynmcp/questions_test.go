package main_test

import (
	"encoding/json"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// What servers ask the host: sampling, elicitation, roots. Questions and answers
// pass as bytes, to the host that has a call in flight.

// asked runs dynmcp with a host that declares capabilities and answers with on.
func asked(t *testing.T, capabilities string, on map[string]func(json.RawMessage) (any, error), args ...string) *mcptest.Host {
	t.Helper()
	host := mcptest.Start(t, mcptest.HostOptions{Args: append([]string{mcptest.Dynmcp(t)}, args...), OnRequest: on})
	host.Initialize(handshake, capabilities)
	host.Call("tools/list", nil)
	return host
}

const everything = `{"sampling":{},"elicitation":{"form":{}},"roots":{"listChanged":true},"experimental":{"x":{"f":1.0}}}`

func ask(method, params string) string {
	if params == "" {
		return `{"method":` + quote(method) + `}`
	}
	return `{"method":` + quote(method) + `,"params":` + params + `}`
}

func TestServersAreToldWhatTheHostCanDo(t *testing.T) {
	t.Parallel()
	for _, capabilities := range []string{everything, `{}`, `{"roots":{}}`} {
		config := asked(t, capabilities, nil, "-c", mcptest.Config(t, document([]entry{fake(t, "alpha"), deferred(t, "later", "Later")})))
		single := asked(t, capabilities, nil, "--", mcptest.Fake(t))
		for tool, host := range map[string]*mcptest.Host{"alpha/received": config, "later/received": config, "received": single} {
			seen := false
			for _, m := range heard(t, use(host, tool, nil)) {
				if m.Method == "initialize" {
					seen = true
					if got := string(m.Member("capabilities")); got != capabilities {
						t.Errorf("%s: got %s, want %s", tool, got, capabilities)
					}
				}
			}
			if !seen {
				t.Errorf("%s: no initialize was received", tool)
			}
		}
	}
}

func TestCancelledCallTakesItsQuestionBack(t *testing.T) {
	t.Parallel()
	alpha := fake(t, "alpha")
	host := asked(t, everything, map[string]func(json.RawMessage) (any, error){
		"elicitation/create": func(json.RawMessage) (any, error) { return nil, mcptest.ErrNoAnswer },
	}, "-c", mcptest.Config(t, document([]entry{alpha})))
	call := host.Go("tools/call", useParams("alpha/ask", ask("elicitation/create", `{}`)))
	question := host.WaitMethod("elicitation/create", 1)
	call.Cancel("enough")
	cancelled := host.WaitMethod("notifications/cancelled", 1)
	if got := string(cancelled.Member("requestId")); got != string(question.ID) {
		t.Errorf("got %s, want %s", got, question.ID)
	}
	alpha.WaitFor("cancelled", 1)
	host.Call("ping", nil)
	if call.Done() {
		t.Error("a cancelled call was answered")
	}
}

func TestServersAskAtTheSameTime(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	host := asked(t, everything, map[string]func(json.RawMessage) (any, error){
		"roots/list": func(params json.RawMessage) (any, error) {
			<-release
			return params, nil
		},
	}, "-c", mcptest.Config(t, document([]entry{fake(t, "alpha"), fake(t, "beta")})))
	first := host.Go("tools/call", useParams("alpha/ask", ask("roots/list", `{"of":"alpha"}`)))
	second := host.Go("tools/call", useParams("beta/ask", ask("roots/list", `{"of":"beta"}`)))
	host.WaitMethod("roots/list", 2)
	close(release)
	for call, want := range map[*mcptest.Pending]string{first: `{"of":"alpha"}`, second: `{"of":"beta"}`} {
		if got := call.Wait().Text(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
