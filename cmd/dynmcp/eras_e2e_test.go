//go:build e2e

package main_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

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
