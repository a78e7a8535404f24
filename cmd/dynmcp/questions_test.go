package main_test

import (
	"encoding/json"
	"strings"
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

func TestQuestionsAndAnswersAreVerbatim(t *testing.T) {
	t.Parallel()
	const params = `{"z":1.0,"messages":[{"role":"user","content":{"type":"text","text":"\u00e9 é"}}],"n":9007199254740993,"_meta":{"k":1e2}}`
	const answer = `{"role":"assistant","n":9007199254740993,"f":1.0,"text":"\u00e9 <é>"}`
	got := make(chan string, 1)
	on := map[string]func(json.RawMessage) (any, error){}
	methods := []string{"sampling/createMessage", "elicitation/create", "roots/list"}
	for _, method := range methods {
		on[method] = func(params json.RawMessage) (any, error) {
			got <- method + " " + string(params)
			return answer, nil
		}
	}
	for tool, host := range map[string]*mcptest.Host{
		"alpha/ask": asked(t, everything, on, "-c", mcptest.Config(t, document([]entry{fake(t, "alpha"), fake(t, "beta")}))),
		"ask":       asked(t, everything, on, "--", mcptest.Fake(t)),
	} {
		for _, method := range methods {
			if got := use(host, tool, ask(method, params)).Text(); got != answer {
				t.Errorf("%s %s: got %s, want %s", tool, method, got, answer)
			}
			if got, want := <-got, method+" "+params; got != want {
				t.Errorf("the host got %s, want %s", got, want)
			}
		}
	}
}

func TestRefusalOfTheHostIsVerbatim(t *testing.T) {
	t.Parallel()
	host := asked(t, everything, map[string]func(json.RawMessage) (any, error){
		"sampling/createMessage": func(json.RawMessage) (any, error) {
			return nil, &mcptest.RPCError{Code: -1, Message: "User <refused> é", Data: json.RawMessage(`{"f":1.0}`)}
		},
	}, "--", mcptest.Fake(t))
	got := string(use(host, "ask", ask("sampling/createMessage", `{}`)).Member("structuredContent", "error"))
	if want := `{"code":-1,"message":"User <refused> é","data":{"f":1.0}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
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

func TestQuestionThatTheHostCannotAnswer(t *testing.T) {
	t.Parallel()
	host := asked(t, `{"roots":{}}`, nil, "-c", mcptest.Config(t, document([]entry{fake(t, "alpha")})))
	for method, capability := range map[string]string{"sampling/createMessage": "sampling", "elicitation/create": "elicitation"} {
		m := use(host, "alpha/ask", ask(method, `{}`))
		contains(t, string(m.Member("structuredContent", "error")), "-32601", capability)
		counts(t, host, method, 0)
	}
	if got := use(host, "alpha/ask", ask("ping", "")).Text(); got != "{}" { // answered here
		t.Errorf("got %s", got)
	}
	counts(t, host, "ping", 0)
}

func TestUnknownQuestionPassesInSingleWrapOnly(t *testing.T) {
	t.Parallel()
	on := map[string]func(json.RawMessage) (any, error){"x/odd": func(p json.RawMessage) (any, error) { return p, nil }}
	single := asked(t, `{}`, on, "--", mcptest.Fake(t))
	if got := use(single, "ask", ask("x/odd", `{"f":1.0}`)).Text(); got != `{"f":1.0}` {
		t.Errorf("got %s", got)
	}
	config := asked(t, `{}`, on, "-c", mcptest.Config(t, document([]entry{fake(t, "alpha")})))
	contains(t, use(config, "alpha/ask", ask("x/odd", `{}`)).Text(), "-32601", "x/odd")
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

func TestCallAndQuestionMayHaveTheSameID(t *testing.T) {
	t.Parallel()
	host := asked(t, everything, map[string]func(json.RawMessage) (any, error){
		"roots/list": func(json.RawMessage) (any, error) { return `{"roots":[]}`, nil },
	}, "--", mcptest.Fake(t))
	// The question's id is a number of dynmcp's; a call with that very id must not
	// be taken for its answer.
	for _, id := range []string{"1001", "1", "2", "3"} {
		if m := host.CallRaw(id, "tools/call", useParams("ask", ask("roots/list", ""))); !strings.Contains(m.Text(), `"roots"`) {
			t.Errorf("got %s", m.Raw)
		}
	}
}
