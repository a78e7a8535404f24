package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Servers ask hosts of both eras. Every question is answered, whatever its form and the form
// in which its host can be asked.

// A questioned host answers what servers ask, in the form of its era.
type questioned struct {
	*mcptest.Host
	t       *testing.T
	era     string
	release chan struct{} // closed when it answers what says "hold"
	asked   chan string   // the method of every question, with its params
}

const questionable = `{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}`

// answering runs dynmcp on a config of these entries, for a host that answers questions.
func answering(t *testing.T, era string, entries []entry, more ...string) *questioned {
	t.Helper()
	q := &questioned{t: t, era: era, release: make(chan struct{}), asked: make(chan string, 100)}
	on := mcptest.Handlers{}
	for _, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list"} {
		on[method] = func(params json.RawMessage) (any, error) { return q.answer(method, params) }
	}
	q.Host = mcptest.Start(t, mcptest.HostOptions{
		Args:      []string{mcptest.Dynmcp(t), "-c", mcptest.Config(t, document(entries, more...))},
		OnRequest: on,
	})
	if era == handshake {
		q.Initialize(handshake, questionable)
	}
	q.Call("tools/list", q.params())
	return q
}

func (q *questioned) meta() string {
	if q.era == handshake {
		return `"_meta":{}`
	}
	return mcptest.ModernMeta(questionable)
}

func (q *questioned) params() string { return "{" + q.meta() + "}" }

// answer returns the user's answer to a question.
func (q *questioned) answer(method string, params json.RawMessage) (any, error) {
	q.asked <- method + " " + string(params)
	switch text := string(params); {
	case strings.Contains(text, "never"):
		return nil, mcptest.ErrNoAnswer
	case strings.Contains(text, "hold"):
		<-q.release
	case strings.Contains(text, "refuse") && method == "sampling/createMessage":
		return nil, &mcptest.RPCError{Code: -1, Message: "User rejected"}
	case strings.Contains(text, "refuse"):
		return `{"action":"decline"}`, nil
	}
	return map[string]string{
		"elicitation/create":     `{"action":"accept","content":{"n":9007199254740993}}`,
		"sampling/createMessage": `{"role":"assistant","content":{"type":"text","text":"\u00e9"},"model":"m"}`,
		"roots/list":             `{"roots":[{"uri":"file:///\u00e9","n":1.0}]}`,
	}[method], nil
}

// rounds answers the questions of results, and sends the call again with them, until it ends or
// the user gives no answer. n is the number of results that asked.
func (q *questioned) rounds(m mcptest.Message, again func(more ...string) *mcptest.Pending) (last mcptest.Message, n int) {
	q.t.Helper()
	for ; string(m.Member("resultType")) == `"input_required"`; n++ {
		var requests map[string]struct {
			Method string
			Params json.RawMessage
		}
		if err := json.Unmarshal(m.Member("inputRequests"), &requests); err != nil {
			q.t.Fatal(err)
		}
		var responses []string
		for key, r := range requests {
			answer, err := q.answer(r.Method, r.Params)
			if errors.Is(err, mcptest.ErrNoAnswer) {
				return m, n
			}
			if err != nil {
				q.t.Fatal(err)
			}
			responses = append(responses, fmt.Sprintf("%s:%s", quote(key), answer))
		}
		m = again(`"inputResponses":{`+strings.Join(responses, ",")+`}`, `"requestState":`+string(m.Member("requestState"))).Wait()
	}
	return m, n
}

// questions returns the number of questions since its last call, and their texts.
func (q *questioned) questions() (n int, all string) {
	for {
		select {
		case one := <-q.asked:
			n++
			all += one + "\n"
		default:
			return n, all
		}
	}
}

// TestRootsComeBeforeTheFirstCall runs a server that asks for the roots when it is
// initialized, and checks that they reach it before the first call.
func TestRootsComeBeforeTheFirstCall(t *testing.T) {
	t.Parallel()
	for _, era := range []string{handshake, stateless} {
		for _, over := range []string{"stdio", "HTTP"} {
			for _, description := range []string{"", "It asks for roots."} {
				name := fmt.Sprintf("host of %s, over %s, %s", era, over, map[bool]string{true: "lazy", false: "eager"}[description != ""])
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					args := []string{"-name", "up", "-ask-roots"}
					e := entry{name: "up", fields: map[string]any{"command": mcptest.Fake(t), "args": args}}
					if over == "HTTP" {
						e.fields = map[string]any{"url": mcptest.ServeFake(t, args...).URL}
					}
					if description != "" {
						e = e.with("description", description)
					}
					host := answering(t, era, []entry{e})
					input := `{"n":100}`
					call := func(more ...string) mcptest.Message {
						return host.Call("tools/call", useParams("up/received", input, append(more, host.meta())...))
					}
					m := call()
					if era == stateless {
						contains(t, string(m.Result), `"resultType":"input_required"`, `"roots/list"`)
						m = call(`"inputResponses":{"question-1":{"roots":[{"uri":"file:///a"}]}}`, `"requestState":`+string(m.Member("requestState")))
					}
					var lines []string
					if err := json.Unmarshal([]byte(m.Text()), &lines); err != nil {
						t.Fatalf("%v: %s", err, m.Raw)
					}
					roots := false
					for _, line := range lines {
						m := mcptest.Parse(line)
						roots = roots || strings.Contains(string(m.Result), `"roots"`)
						if m.Method == "tools/call" && !roots {
							t.Errorf("a call came before the roots: %q", lines)
						}
					}
					if !roots {
						t.Errorf("no roots came: %q", lines)
					}
				})
			}
		}
	}
}
