package main_test

import (
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// When servers start, and which requests wait for them.

// impatient runs dynmcp with lists that wait only a moment for servers.
func impatient(t *testing.T, entries ...entry) *mcptest.Host {
	t.Helper()
	host := mcptest.StartDynmcp(t, "-c", mcptest.Config(t, document(entries, `"startup_wait": "200ms"`)))
	host.Initialize(handshake, nil)
	return host
}

func TestServerThatHangsDelaysNobody(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"hang-init", "hang-list:tools"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			bad := fake(t, "bad", "-fault", fault)
			host := impatient(t, bad, deferred(t, "later", "Later"))
			// Calls do not wait for it at all: all of this while it hangs.
			checkEcho(t, host, "later/echo", `{"n":1}`)
			text := catalogue(t, host)
			contains(t, text, "- later/echo", "Still starting; use_tool works on their tools", "\n- bad")
			for _, list := range []string{"resources/list", "prompts/list"} {
				contains(t, host.Call(list, nil).Raw, "later")
			}
			bad.WaitFor("initialize", 1)
			if n := bad.Count("exit"); n > 0 {
				t.Errorf("it does not hang any more: %q", bad.Events())
			}
		})
	}
}

func TestInitializeWaitsForNoServerOfAConfig(t *testing.T) {
	t.Parallel()
	bad := fake(t, "bad", "-fault", "hang-init")
	host := start(t, bad)
	contains(t, string(host.Initialize(handshake, nil).Member("instructions")), "use_tool")
}

func TestLateServerIsAnnounced(t *testing.T) {
	t.Parallel()
	gate := mcptest.NewGate(t)
	late := fake(t, "late", "-fault", "gate-init:"+gate.Path)
	host := impatient(t, late, fake(t, "early"))
	greet := func() string { return catalogue(t, host) }
	lacks(t, greet(), "late/echo")
	contains(t, discover(host, `{}`).Text(), "- late (still starting, its tools can be called)")
	definition := host.Go("tools/call", mcptest.ToolParams("discover_tool", `{"tool_name":"late/echo"}`)) // joins the start
	host.Call("ping", nil)
	line := len(host.Messages())
	gate.Open()
	contains(t, definition.Wait().Text(), "Name: late/echo")
	for {
		host.WaitAfter(line, func(m mcptest.Message) bool { return m.Method == toolsChanged })
		line = len(host.Messages())
		text := greet()
		if !strings.Contains(text, "\nlate") || strings.Contains(text+"\n", "\n- early\n") { // a slow machine is still starting that, too
			continue
		}
		contains(t, discover(host, `{"server":"late"}`).Text(), "- late/echo")
		lacks(t, text, "Still starting")
		return
	}
}

func TestUseJoinsTheStartOfAServer(t *testing.T) {
	t.Parallel()
	gate := mcptest.NewGate(t)
	late := fake(t, "late", "-fault", "gate-init:"+gate.Path)
	host := impatient(t, late)
	calls := []*mcptest.Pending{
		host.Go("tools/call", useParams("late/echo", `{"n":1}`)),
		host.Go("tools/call", useParams("late/echo", `{"n":2}`)),
	}
	host.Call("ping", nil)
	late.WaitFor("initialize", 1)
	gate.Open()
	for n, want := range []string{`{"n":1}`, `{"n":2}`} {
		if got := calls[n].Wait().Text(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if late.Count("start") != 1 {
		t.Errorf("got %q", late.Events())
	}
}

func TestServerThatFailsAtFirstComesLater(t *testing.T) {
	t.Parallel()
	shaky := fake(t, "shaky", "-fault", "fail-first:2")
	host := serve(t, shaky, fake(t, "good"))
	for line := 0; ; {
		if strings.Contains(catalogue(t, host), "\nshaky") {
			break
		}
		host.WaitAfter(line, func(m mcptest.Message) bool { return m.Method == toolsChanged })
		line = len(host.Messages())
	}
	if got := use(host, "shaky/echo", `{}`).Text(); got != "{}" || shaky.Count("start") != 3 {
		t.Errorf("got %s, %q", got, shaky.Events())
	}
}

func TestFailingServerLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"exit-now", "exit-on-init", "fail-init", "fail-list", "exit-on-list", "bad-version", "close-stdout"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			bad := fake(t, "bad", "-fault", fault)
			if fault == "close-stdout" {
				bad = fake(t, "bad", "-fault", fault, "-fault-on", "initialize")
			}
			host := serve(t, bad, fake(t, "good"))
			checkEcho(t, host, "good/echo", `{}`)
			m := use(host, "bad/echo", `{}`)
			contains(t, m.Text(), "bad: ", "not_sent")
			if !m.IsError() {
				t.Errorf("got %s", m.Raw)
			}
			contains(t, catalogue(t, host), "Could not be started so far; discover_tool {\"server\": \"name\"} says why:\n- bad")
			lacks(t, string(m.Text()), "load_mcp") // there is no such tool
			contains(t, discover(host, `{}`).Text(), "- bad (could not be started: ")
		})
	}
}

func TestConfigModeStartsNothingBeforeItIsAsked(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	host := start(t, e)
	host.Call("ping", nil)
	nothingStarted(t, e)
	host.Initialize(handshake, nil)
	e.WaitFor("start", 1)
}

func TestSingleWrapStartsAtOnce(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	host := mcptest.StartDynmcp(t, "--", mcptest.Fake(t), "-ledger", ledger.Path)
	ledger.WaitFor("start", 1)
	host.Initialize(handshake, nil)
	if ledger.Count("start") != 1 {
		t.Errorf("got %q", ledger.Events())
	}
}
