//go:build unix

package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// joinAs connects a host with these capabilities to a socket. leave closes the connection.
func joinAs(t *testing.T, socket, capabilities string, on mcptest.Handlers) (host *mcptest.Conn, leave func()) {
	t.Helper()
	conn := connection(t, socket)
	host = mcptest.Talk(t, conn, on)
	host.Initialize(handshake, capabilities)
	return host, func() { conn.Close() }
}

func call(host *mcptest.Conn, tool string, input any) mcptest.Message {
	return host.Call("tools/call", useParams(tool, input))
}

// Each host has its own process of a server that isolates sessions. The process is told what
// that host can do, asks that host alone, and ends with it.
func TestIsolatedSessions(t *testing.T) {
	t.Parallel()
	for _, load := range []string{"eager", "lazy"} {
		t.Run(load, func(t *testing.T) {
			t.Parallel()
			alone := deferred(t, "alone", "One for each.").with("isolation", "session").with("load", load)
			socket := socketPath(t)
			serveOn(t, socket, mcptest.Config(t, document([]entry{alone, fake(t, "shared")})))
			answers := func(text string) mcptest.Handlers {
				return mcptest.Handlers{"elicitation/create": func(json.RawMessage) (any, error) {
					return `{"action":"accept","content":{"who":"` + text + `"}}`, nil
				}}
			}
			ann, annLeaves := joinAs(t, socket, `{"elicitation":{},"experimental":{"ann":{}}}`, answers("ann"))
			bob, _ := joinAs(t, socket, `{"elicitation":{},"experimental":{"bob":{}}}`, answers("bob"))
			pids := map[string]string{}
			for name, host := range map[string]*mcptest.Conn{"ann": ann, "bob": bob} {
				host.Call("tools/list", nil)
				pids[name] = call(host, "alone/pid", nil).Text()
				if got := call(host, "alone/received", `{"n":20}`).Text(); !strings.Contains(got, name) {
					t.Errorf("%s's server was told: %s", name, got)
				}
				if got := call(host, "alone/ask", ask("elicitation/create", `{"message":"who","requestedSchema":{"type":"object","properties":{}}}`)).Text(); !strings.Contains(got, name) {
					t.Errorf("%s's server was answered %s", name, got)
				}
			}
			if pids["ann"] == pids["bob"] {
				t.Errorf("they share the process %s", pids["ann"])
			}
			if got, want := call(bob, "shared/pid", nil).Text(), call(ann, "shared/pid", nil).Text(); got != want {
				t.Errorf("the shared server has the processes %s and %s", got, want)
			}
			before := len(bob.Lines())
			call(ann, "alone/log", `{"level":"error","data":"ann's"}`)
			call(ann, "alone/notify", `{"method":"notifications/x","params":{"of":"ann's"}}`)
			annLeaves()
			alone.WaitFor("exit", 1)
			if got := call(bob, "alone/pid", nil).Text(); got != pids["bob"] {
				t.Errorf("bob's server is another one, %s and not %s", got, pids["bob"])
			}
			if said := strings.Join(bob.Lines()[before:], "\n"); strings.Contains(said, "ann's") {
				t.Errorf("bob was told of ann's:\n%s", said)
			}
			if got := alone.Count("start"); got != 2 {
				t.Errorf("there were %d processes, want 2", got)
			}
		})
	}
}

func TestIsolatedSessionsAreBounded(t *testing.T) {
	t.Parallel()
	alone := deferred(t, "alone", "One for each.").with("isolation", "session").with("max_sessions", 1)
	socket := socketPath(t)
	serveOn(t, socket, mcptest.Config(t, document([]entry{alone})))
	ann, annLeaves := joinAs(t, socket, "{}", nil)
	bob, _ := joinAs(t, socket, "{}", nil)
	call(ann, "alone/echo", `{}`)
	m := call(bob, "alone/echo", `{}`)
	if !m.IsError() {
		t.Errorf("got %s", m.Raw)
	}
	contains(t, m.Text(), "each session has a server of its own, and there are 1, the most that there may be", "not_sent", "max_sessions")
	annLeaves()
	mcptest.Eventually(t, "bob has a server", func() bool { return !call(bob, "alone/echo", `{}`).IsError() })
}

// All hosts on a socket belong to one user, and share the process of a server that isolates
// users.
func TestIsolatedPrincipals(t *testing.T) {
	t.Parallel()
	alone := deferred(t, "alone", "One for each user.").with("isolation", "principal").with("idle_timeout", "1s")
	socket := socketPath(t)
	serveOn(t, socket, mcptest.Config(t, document([]entry{alone})))
	ann, annLeaves := joinAs(t, socket, "{}", nil)
	again, againLeaves := joinAs(t, socket, "{}", nil)
	asleep := again.Go("tools/call", useParams("alone/sleep", `{"ms":600000}`)) // it is used all the time
	alone.WaitFor("call sleep", 1)
	pid := call(ann, "alone/pid", nil).Text()
	if got := call(again, "alone/pid", nil).Text(); got != pid {
		t.Errorf("one user has the processes %s and %s", got, pid)
	}
	annLeaves()
	if got := call(again, "alone/pid", nil).Text(); got != pid {
		t.Errorf("it is another one now, %s and not %s", got, pid)
	}
	if got := alone.Count("start"); got != 1 {
		t.Errorf("it was started %d times", got)
	}
	asleep.Cancel("")
	againLeaves()
	alone.WaitFor("exit", 1)
}

// A subscription at a host's own process concerns that host alone.
func TestSubscriptionsOfIsolatedSessions(t *testing.T) {
	t.Parallel()
	alone := fake(t, "alone").with("isolation", "session")
	socket := socketPath(t)
	serveOn(t, socket, mcptest.Config(t, document([]entry{alone})))
	ann, _ := joinAs(t, socket, "{}", nil)
	bob, _ := joinAs(t, socket, "{}", nil)
	const uri = `{"uri":"fake://alone/text"}`
	for _, host := range []*mcptest.Conn{ann, bob} {
		host.Call("resources/list", nil)
		if m := host.Call("resources/subscribe", uri); m.Error != nil {
			t.Fatalf("got %s", m.Raw)
		}
	}
	if m := ann.Call("resources/unsubscribe", uri); m.Error != nil {
		t.Fatalf("got %s", m.Raw)
	}
	call(bob, "alone/touch", uri)
	bob.WaitMethod("notifications/resources/updated", 1)
	call(ann, "alone/touch", uri)
	ann.Call("ping", nil)
	if got := ann.Count("notifications/resources/updated"); got != 0 {
		t.Errorf("ann was told of %d changes", got)
	}
}
