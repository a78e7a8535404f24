package main_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Loading a lazy server, with load_mcp or by using one of its tools.

// Notifications about lists.
const (
	toolsChanged     = "notifications/tools/list_changed"
	promptsChanged   = "notifications/prompts/list_changed"
	resourcesChanged = "notifications/resources/list_changed"
)

// counts fails the test unless this many messages of a method have come.
func counts(t *testing.T, host *mcptest.Host, method string, want int) {
	t.Helper()
	if got := host.Count(method); got != want {
		t.Errorf("%s came %d times, want %d", method, got, want)
	}
}

// mark returns a function like counts that counts what comes from now on.
func mark(t *testing.T, host *mcptest.Host) func(method string, want int) {
	before := len(host.Messages())
	return func(method string, want int) {
		t.Helper()
		got := 0
		for _, m := range host.Messages()[before:] {
			if m.Method == method {
				got++
			}
		}
		if got != want {
			t.Errorf("%s came %d times since, want %d", method, got, want)
		}
	}
}

// loadAnnounced loads a server that has tools, prompts and resources, and waits
// until the host was told of all three; resources come last.
func loadAnnounced(host *mcptest.Host, server string) mcptest.Message {
	next := host.Count(resourcesChanged) + 1
	m := load(host, server)
	host.WaitMethod(resourcesChanged, next)
	return m
}

func TestLoadAnswersWhatTheServerHas(t *testing.T) {
	t.Parallel()
	host := serve(t, deferred(t, "later", "Later", "-bare", "-tools", "2", "-instructions", "Mind the gap."))
	m := load(host, "later")
	contains(t, m.Text(), "later (2 tools): Later\n\nInstructions of this server:\nMind the gap.\n\n- later/tool_001: Generated tool 1", "\n- later/tool_002: Generated tool 2")
	lacks(t, m.Text(), "inputSchema")
	contains(t, m.Text(), "\n- fake://later/text", "\n- fake://later/item/{id}", "\n- later.greet")
	answersOnce(t, m)
}

func TestLoadedServerMovesFromOneBlockToTheOther(t *testing.T) {
	t.Parallel()
	host := serve(t, deferred(t, "one", "First"), deferred(t, "two", "Second"))
	told := mark(t, host)
	loadAnnounced(host, "one")
	settle(t, host, "one")
	told(toolsChanged, 1)
	told(resourcesChanged, 1)
	told(promptsChanged, 2) // one of settle
	text := catalogue(t, host)
	if got := block(text, "mcp_servers"); got != "- two: Second\n" {
		t.Errorf("got <mcp_servers> %q", got)
	}
	contains(t, block(text, "tools"), "one:\n- one/add_prompt: Add a prompt to the list.\n")
	contains(t, host.Call("resources/list", nil).Raw, `"fake://one/text"`)
	contains(t, host.Call("prompts/list", nil).Raw, `"one.greet"`)
}

func TestListsWithoutNewEntriesAreNotAnnounced(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "now"), deferred(t, "later", "Later", "-advertise-but-32601", "resources,prompts"))
	told := mark(t, host)
	load(host, "later")
	settle(t, host, "now")
	told(toolsChanged, 1)
	told(resourcesChanged, 0)
	told(promptsChanged, 1) // of settle
	for _, list := range []string{"resources/list", "prompts/list"} {
		contains(t, host.WaitStderr(list), "advertised but not known")
	}
}

func TestLoadingWhatIsLoadedIsNoWork(t *testing.T) {
	t.Parallel()
	eager, lazy := fake(t, "eager"), deferred(t, "lazy", "Later")
	host := serve(t, eager, lazy)
	first := loadAnnounced(host, "lazy")
	settle(t, host, "lazy")
	told := mark(t, host)
	events := len(eager.Events()) + len(lazy.Events())
	if again := load(host, "lazy"); again.Text() == first.Text() || again.IsError() {
		// the prompt that settle added is the difference
		t.Errorf("got %s", again.Raw)
	}
	third, fourth := load(host, "lazy"), load(host, "lazy")
	if string(third.Result) != string(fourth.Result) {
		t.Errorf("got\n%s\nand\n%s", third.Result, fourth.Result)
	}
	contains(t, load(host, "eager").Text(), "eager (", "eager/echo")
	if got := len(eager.Events()) + len(lazy.Events()); got != events {
		t.Errorf("the servers were asked: %q %q", eager.Events(), lazy.Events())
	}
	settle(t, host, "eager")
	told(toolsChanged, 0)
}

func TestThereIsNoLoadInSingleWrap(t *testing.T) {
	t.Parallel()
	if m := load(wrap(t, "-name", "x"), "x"); m.Code() != -32602 {
		t.Errorf("got %s", m.Raw)
	}
}

func TestUseLoadsTheServer(t *testing.T) {
	t.Parallel()
	e := deferred(t, "later", "Later")
	host := serve(t, e)
	m := use(host, "later/ecko", `{}`) // it is known only once the server was started
	contains(t, m.Text(), "Unknown tool: later/ecko", "Did you mean: later/echo")
	if !m.IsError() || e.Count("start") != 1 {
		t.Errorf("got %s, %q", m.Raw, e.Events())
	}
	if got := use(host, "later/echo", quote(`{"n":1.0}`)).Text(); got != `{"n":1.0}` {
		t.Errorf("got %s", got)
	}
	if e.Count("start") != 1 || e.Count("call") != 1 {
		t.Errorf("got %q", e.Events())
	}
}

func TestWaitingForALoadIsShown(t *testing.T) {
	t.Parallel()
	gate := mcptest.NewGate(t)
	host := serve(t, deferred(t, "later", "Later", "-fault", "gate-init:"+gate.Path))
	call := host.Go("tools/call", mcptest.ToolParams("load_mcp", loadArguments("later"), `"_meta":{"progressToken":"tök"}`))
	m := host.WaitMethod("notifications/progress", 1)
	if string(m.Member("progressToken")) != `"tök"` || !strings.Contains(string(m.Member("message")), "starting later") {
		t.Errorf("got %s", m.Raw)
	}
	gate.Open()
	if m := call.Wait(); m.IsError() {
		t.Error(m.Raw)
	}
	last := slices.IndexFunc(host.Messages(), func(m mcptest.Message) bool { return m.IsAnswer() && string(m.ID) == string(call.ID) })
	for _, m := range host.Messages()[last:] {
		if m.Method == "notifications/progress" {
			t.Errorf("progress behind the result: %s", m.Raw)
		}
	}
}
