package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
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

// begin sends a call of the tool ask.
func (q *questioned) begin(input string, more ...string) *mcptest.Pending {
	return q.Go("tools/call", useParams("up/ask", input, append(more, q.meta())...))
}

// ask calls the tool ask, and answers to the end. It returns early if the user gives no
// answer.
func (q *questioned) ask(input string) mcptest.Message {
	q.t.Helper()
	return q.goOn(q.begin(input).Wait(), input)
}

// goOn answers the questions of results until the call ends.
func (q *questioned) goOn(m mcptest.Message, input string) mcptest.Message {
	q.t.Helper()
	m, _ = q.rounds(m, func(more ...string) *mcptest.Pending { return q.begin(input, more...) })
	return m
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

func TestErasAsk(t *testing.T) {
	t.Parallel()
	for _, hostEra := range []string{handshake, stateless} {
		for _, serverEra := range []string{"old", "new"} {
			for _, over := range []string{"stdio", "HTTP"} {
				t.Run(fmt.Sprintf("host of %s, %s server over %s", hostEra, serverEra, over), func(t *testing.T) {
					t.Parallel()
					testErasAsk(t, hostEra, serverEra, func() (entry, func()) {
						ledger := mcptest.NewLedger(t)
						args := []string{"-name", "up", "-ledger", ledger.Path, "-era", serverEra}
						if over == "stdio" {
							e := entry{ledger, "up", map[string]any{"command": mcptest.Fake(t), "args": args}}
							return e, func() { killStarted(t, ledger) }
						}
						server := mcptest.ServeFake(t, args...)
						return entry{ledger, "up", map[string]any{"url": server.URL}}, server.Kill
					})
				})
			}
		}
	}
}

// killStarted kills the process that a ledger says was started last.
func killStarted(t *testing.T, ledger mcptest.Ledger) {
	t.Helper()
	pid := 0
	for _, event := range ledger.Events() {
		if text, ok := strings.CutPrefix(event, "start "); ok {
			pid, _ = strconv.Atoi(text)
		}
	}
	process, err := os.FindProcess(pid)
	if pid == 0 || err != nil {
		t.Fatalf("no process: %v", err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
}

const form, sampling = `{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}`, `{"messages":[],"maxTokens":1e2}`

func testErasAsk(t *testing.T, hostEra, serverEra string, open func() (e entry, kill func())) {
	up, _ := open()
	host := answering(t, hostEra, []entry{up})
	accepted, written, rooted := `{"action":"accept","content":{"n":9007199254740993}}`,
		`{"role":"assistant","content":{"type":"text","text":"\u00e9"},"model":"m"}`, `{"roots":[{"uri":"file:///\u00e9","n":1.0}]}`
	url := `{"mode":"url","message":"Log in","url":"https://login.example/"}`
	for _, c := range []struct {
		name, input string
		asked       int
		want        []string // of the result
		params      []string // of the questions
	}{
		{"elicitation of a form", ask("elicitation/create", form), 1, []string{accepted}, []string{form}},
		{"elicitation by URL", ask("elicitation/create", url), 1, []string{accepted}, []string{`"mode":"url","message":"Log in","url":"https://login.example/"`}},
		{"sampling", ask("sampling/createMessage", sampling), 1, []string{written}, []string{sampling}},
		{"roots", ask("roots/list", ""), 1, []string{rooted}, nil},
		{"several at once", `{"method":"elicitation/create","params":` + form + `,"also":[` + ask("sampling/createMessage", sampling) + `,` + ask("roots/list", `{}`) + `]}`,
			3, []string{accepted, written, rooted}, []string{form, sampling}},
		{"three rounds", `{"method":"elicitation/create","params":` + form + `,"rounds":3}`, 3, []string{accepted}, []string{form}},
		{"refusal", ask("elicitation/create", `{"message":"refuse"}`), 1, []string{`{"action":"decline"}`}, nil},
	} {
		m := host.ask(c.input)
		n, questions := host.questions()
		if n != c.asked || m.IsError() {
			t.Errorf("%s: asked %d times, got %s", c.name, n, m.Raw)
		}
		contains(t, m.Text(), c.want...)
		contains(t, questions, c.params...)
	}
	if hostEra == handshake { // a host of the stateless era has no way to refuse but to say nothing
		contains(t, host.ask(ask("sampling/createMessage", `{"refuse":true}`)).Raw, "User rejected")
		host.questions()
	}

	// Cancelled while it is parked.
	asked := host.Count("elicitation/create")
	parked := host.begin(ask("elicitation/create", `{"message":"never"}`))
	if hostEra == handshake {
		host.WaitMethod("elicitation/create", asked+1)
	} else {
		parked.Wait()
	}
	parked.Cancel("enough")
	if serverEra == "old" {
		up.WaitFor("cancelled", 1)
	}
	if hostEra == handshake {
		host.WaitMethod("notifications/cancelled", 1)
		if host.Call("ping", nil); parked.Done() {
			t.Error("a cancelled call was answered")
		}
	}
	contains(t, host.ask(ask("elicitation/create", form)).Text(), accepted)

	// The host is gone while it is parked.
	parked = host.begin(ask("elicitation/create", `{"message":"never"}`))
	if hostEra == stateless {
		parked.Wait()
	}
	end(t, host.Host)
	if serverEra == "old" && hostEra == stateless {
		up.WaitFor("cancelled", 2)
	}

	// The upstream dies while it is parked.
	up, kill := open()
	host = answering(t, hostEra, []entry{up})
	hold := ask("elicitation/create", `{"message":"hold"}`)
	parked = host.begin(hold)
	if hostEra == handshake {
		host.WaitMethod("elicitation/create", 1)
		kill()
		close(host.release)
		m := parked.Wait()
		if serverEra == "old" {
			contains(t, m.Text(), "outcome unknown")
		} else if m.Text() == "" {
			t.Errorf("got %s", m.Raw)
		}
		return
	}
	m := parked.Wait()
	kill()
	close(host.release)
	if m = host.goOn(m, hold); serverEra == "old" {
		contains(t, m.Text(), "outcome unknown")
	} else if m.Text() == "" { // the call belongs to no process, so a new one may continue it
		t.Errorf("got %s", m.Raw)
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
