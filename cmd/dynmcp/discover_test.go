package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/transports"
)

// discover_tool: its answers for a tool, a query, a server, and unknown names.

const fullTool = `{"outputSchema":{"type":"object","x":1.0},"name":"full","inputSchema":{"z":1e2,"type":"object","a":[9007199254740993]},` +
	`"annotations":{"readOnlyHint":true,"openWorldHint":false,"title":"Full <one>"},"description":"Does all.\nSecond line.","x-grease":{"f":1.0}}`

func discover(host *mcptest.Host, arguments string) mcptest.Message {
	return host.Tool("discover_tool", arguments)
}

func TestDetailsOfATool(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-tool", fullTool))
	m := discover(host, `{"tool_name":"alpha/full"}`)
	contains(t, m.Text(), "alpha/full", "Does all.\nSecond line.", "Output Schema:", `{"type":"object","x":1.0}`,
		`{"z":1e2,"type":"object","a":[9007199254740993]}`, "readOnlyHint: true", "openWorldHint: false", "title: Full <one>")
	answersOnce(t, m)
	lacks(t, discover(host, `{"tool_name":"alpha/echo"}`).Text(), "Output Schema:")
}

// answersOnce checks that a tool of ours answers one text and nothing beside it:
// hosts that know structured content show the model that alone.
func answersOnce(t *testing.T, m mcptest.Message) {
	t.Helper()
	if n := len(names(m.Member("content"), "type")); n != 1 || m.IsError() || m.Member("structuredContent") != nil {
		t.Errorf("got %s", m.Raw)
	}
}

func TestLargeOutputSchemaIsNamedAndGivenInFull(t *testing.T) {
	t.Parallel()
	large := `{"type":"object","description":"` + strings.Repeat("long ", 1000) + `"}`
	host := serve(t, fake(t, "alpha", "-tool", `{"name":"wide","inputSchema":{"type":"object"},"outputSchema":`+large+`}`))
	m := discover(host, `{"tool_name":"alpha/wide"}`)
	contains(t, m.Text(), "Output Schema:\nleft out, about 10", ` tokens: discover_tool {"tool_name": "alpha/wide", "full": true} shows it.`)
	lacks(t, m.Text(), "long long")
	contains(t, discover(host, `{"tool_name":"alpha/wide","full":true}`).Text(), large)
}

func TestUnknownNamesAreAnsweredWithNearOnes(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-bare", "-tools", "3"), deferred(t, "later", "Later"))
	for _, m := range []mcptest.Message{
		discover(host, `{"tool_name":"alpha/tool_01"}`),
		use(host, "alpha/tool_01", nil),
	} {
		contains(t, m.Text(), "Unknown tool: alpha/tool_01", "Did you mean: alpha/tool_001, alpha/tool_002, alpha/tool_003?", "Server alpha has 3 tools")
		if !m.IsError() {
			t.Errorf("no isError in %s", m.Raw)
		}
	}
	contains(t, host.Call("resources/read", `{"uri":"fake://later/text"}`).Text(), "Unknown resource: fake://later/text. Servers not started yet, which may have it: later")
	contains(t, host.Call("prompts/get", `{"name":"later.greet"}`).Text(), "Unknown prompt: later.greet. Servers not started yet, which may have it: later")
}

func TestDirectToolOfAServerThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	gone := entry{name: "gone", fields: map[string]any{"command": "no-such-command-anywhere"}}
	host := mcptest.StartDynmcp(t, "-c", mcptest.Config(t, document([]entry{gone, fake(t, "alpha")}, `"expose": ["direct"]`)))
	greet(host)
	m := host.Tool("gone__x", `{}`)
	contains(t, m.Text(), `gone: cannot find the command "no-such-command-anywhere" on PATH`, "(outcome not_sent: the call did not run)")
	if m.Code() != transports.CodeStartFailed {
		t.Errorf("got %s", m.Raw)
	}
}

// Definitions are shown for any spelling of a name, which does no harm. A call needs the
// exact name, by which hosts and their guards decide.
func TestOtherSpellingsAreUnderstoodAndNotCalled(t *testing.T) {
	t.Parallel()
	alpha, later := fake(t, "alpha"), deferred(t, "later-one", "Later")
	host := serve(t, alpha, later)
	for _, name := range []string{"alpha__echo", "alpha.echo", "alpha:echo", "Alpha/Echo", "ALPHA__ECHO", "mcp__alpha__echo", " alpha/echo "} {
		contains(t, discover(host, `{"tool_name":`+quote(name)+`}`).Text(), "Name: alpha/echo\n", "Input Schema:")
		m := use(host, name, `{"n":1}`)
		contains(t, m.Text(), "Unknown tool: ", "(outcome not_sent: nothing was called)\n", `Call it by its name: use_tool {"tool_name": "alpha/echo", "tool_input": {…}}.`)
		if !m.IsError() {
			t.Errorf("%s: got %s", name, m.Raw)
		}
	}
	contains(t, discover(host, `{"tool_name":"echo"}`).Text(), "Unknown tool: echo", "Did you mean: alpha/echo")
	contains(t, use(host, "echo", nil).Text(), "Unknown tool: echo", "Did you mean: alpha/echo", `Call it by its name: use_tool {"tool_name": "alpha/echo", "tool_input": {…}}`)
	contains(t, use(host, "nobody/echo", `{}`).Text(), "Unknown tool: nobody/echo")
	contains(t, use(host, "alpha/no_such_tool", `{}`).Text(), "Unknown tool: alpha/no_such_tool")
	m := host.Tool("alpha/echo", `{"n":1}`)
	contains(t, m.Raw, `Call it through use_tool: {\"tool_name\": \"alpha/echo\", \"tool_input\": {…}}`)
	if m.Code() != -32602 || alpha.Count("call") > 0 {
		t.Errorf("got %s, %q", m.Raw, alpha.Events())
	}
	nothingStarted(t, later)
	contains(t, use(host, "later_one__echo", nil).Text(), "Unknown tool: ")
	contains(t, use(host, "Later-One__echo", nil).Text(), `{"tool_name": "later-one/echo"`)
	contains(t, load(host, "Later_One").Text(), "later-one (")
}

func TestDefinitionOfALazyServersToolLoadsIt(t *testing.T) {
	t.Parallel()
	later := deferred(t, "later", "Later")
	host := serve(t, later)
	contains(t, discover(host, `{"tool_name":"later/echo"}`).Text(), "Name: later/echo\n")
	contains(t, discover(host, `{"tool_name":"later/ecko"}`).Text(), "Did you mean: later/echo")
	if later.Count("start") != 1 {
		t.Errorf("got %q", later.Events())
	}
	bad := deferred(t, "bad", "Broken", "-fault", "exit-now")
	m := discover(serve(t, bad), `{"tool_name":"bad/echo"}`)
	contains(t, m.Text(), "bad: ", "exited with status 7", "not_sent")
}

// A check before calls names servers that are off, given up, or to be tried again later.
func TestCheckSaysWhatStopsACall(t *testing.T) {
	t.Parallel()
	once := deferred(t, "once", "Fails", "-fault", "exit-now").with("load_budget", 1)
	off := fake(t, "off").with("env", map[string]string{"TOKEN": "${NO_SUCH_VARIABLE}"})
	failing := fake(t, "failing", "-fault", "exit-now")
	later := deferred(t, "later", "Later")
	host := mcptest.StartDynmcp(t, "-c", mcptest.Config(t, document([]entry{fake(t, "alpha"), once, off, failing, later}, `"startup_wait": "1s"`)))
	greet(host)
	host.Tool("load_mcp", `{"mcp_name":"once"}`)
	text := discover(host, `{"check":true,"tool_name":["alpha/echo","once/echo","off/echo","failing/echo","later/echo"]}`).Text()
	contains(t, text, "1 of 5 can be called now:", "- alpha/echo: yes\n", "- once/echo: no: once was given up after 1 failure", "- off/echo: no: off is off: NO_SUCH_VARIABLE is not set",
		"- later/echo: no: unknown. No tools of server later are known")
	if why := regexp.MustCompile(`(?m)^- failing/echo: no: .*it exited with status 7`); !why.MatchString(text) { // it waits, or starts just now
		t.Errorf("no %v in %s", why, text)
	}
	nothingStarted(t, later)
	m := discover(host, `{"check":true,"tool_name":["a`+strings.Repeat(`","a`, 50)+`"]}`)
	contains(t, m.Text(), `with "check", "tool_name" names 1 to 50 tools`)
}

// dynmcp test says of tools whether they can be called, and waits for a server that does not start yet.
func TestToolsThatCanBeCalled(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "marker")
	slow := entry{mcptest.NewLedger(t), "slow", map[string]any{"command": "sh", "args": []string{"-c", `test -e "$0" || { touch "$0"; exit 3; }; exec "$1" -name slow`, marker, mcptest.Fake(t)}}}
	config := mcptest.Config(t, document([]entry{fake(t, "alpha"), slow}, `"policy": [{"match": "alpha/fail", "do": "deny"}, {"do": "allow"}]`))
	contains(t, runVerb(t, nil, 1, "test", "-c", config, "alpha/echo", "slow/echo"), "alpha/echo ... PASS", "slow/echo ... FAIL", "status 3", "1 of 2 tools cannot be called")
	if err := os.Remove(marker); err != nil {
		t.Fatal(err)
	}
	contains(t, runVerb(t, nil, 0, "test", "-c", config, "alpha/echo", "slow/echo", "--wait", "60s"), "alpha/echo ... PASS", "slow/echo ... PASS")
	contains(t, runVerb(t, nil, 1, "test", "-c", config, "alpha/fail", "alpha/nope", "none/x", "--json"), "policy rule 1 denies alpha/fail", `unknown tool \"alpha/nope\"`, `Unknown server \"none\"`)
}

func TestNamesOfOtherServersSayWhy(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-bare", "-tools", "2"), deferred(t, "later", "Later"),
		entry{name: "gone", fields: map[string]any{"command": "no-such-command-anywhere"}})
	contains(t, discover(host, `{"tool_name":"later/x"}`).Text(), "Unknown tool: later/x", "Server later has ")
	contains(t, discover(host, `{"tool_name":"gone/x"}`).Text(), "gone: ", "no-such-command-anywhere")
	contains(t, discover(host, `{"server":"gone"}`).Text(), "gone: ", "no-such-command-anywhere")
	contains(t, discover(host, `{}`).Text(), "- gone (could not be started: ", "no-such-command-anywhere")
	contains(t, discover(host, `{"tool_name":"alpha/x"}`).Text(), `discover_tool {"server": "alpha"}`)
	contains(t, discover(host, `{"tool_name":"nobody/x"}`).Text(), "Unknown tool: nobody/x", "Servers that could not be started: gone", "tools in all")
}

func TestQueryFindsTools(t *testing.T) {
	t.Parallel()
	host := serve(t,
		fake(t, "alpha", "-bare", "-tools", "5",
			"-tool", `{"name":"send_mail","description":"Send a letter to someone.","inputSchema":{"type":"object"}}`),
		deferred(t, "post", "Letters on paper"))
	m := discover(host, `{"query":"letter"}`)
	contains(t, m.Text(), "- alpha/send_mail (below)", "\nDescription: Send a letter to someone.", "post", "load_mcp")
	answersOnce(t, m)
	lacks(t, m.Text(), "alpha/tool_")
	for _, limit := range []string{`2`, `"2"`, `2.0`} {
		m := discover(host, `{"query":"generated","limit":`+limit+`}`)
		if strings.Count(m.Text(), "- alpha/tool_") != 2 {
			t.Errorf("limit %s: got %q", limit, m.Text())
		}
	}
	contains(t, discover(host, `{"query":"xyzzy"}`).Text(), "No tool matches", "post")
}

func TestListingOfEverything(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-bare", "-tools", "2", "-instructions", "Mind the gap."), deferred(t, "later", "Later"))
	m := discover(host, `{}`)
	contains(t, m.Text(), "- alpha (2 tools): Mind the gap.\n- later (no tools known, call load_mcp): Later\n", `discover_tool {"server": "name"} lists the tools of one`)
	lacks(t, m.Text(), "alpha/tool_002")
	answersOnce(t, m)
	if all := host.Tool("discover_tool", nil); string(all.Result) != string(m.Result) {
		t.Errorf("without arguments: got %s", all.Raw)
	}
	contains(t, discover(host, `{"server":"alpha"}`).Text(), "Mind the gap.", "- alpha/tool_002:")
	contains(t, discover(host, `{"server":"ALPHA"}`).Text(), "- alpha/tool_002:")
	contains(t, discover(host, `{"server":"later"}`).Text(), "- later/echo")
	contains(t, discover(host, `{"server":"alpah"}`).Text(), "Unknown server: alpah. Did you mean alpha?", "later")
}

func TestWrongArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	host := serve(t, deferred(t, "later", "Later"))
	for _, c := range []struct{ tool, arguments, want string }{
		{"discover_tool", `{"tool_name":7}`, `"tool_name" must be a string`},
		{"discover_tool", `{"limit":"many"}`, `"limit" must be`},
		{"discover_tool", `[]`, "must be an object"},
		{"discover_tool", `{"full":"perhaps"}`, `"full" must be true or false`},
		{"discover_tool", `{"tool":"later/echo"}`, `it has no argument "tool", only tool_name, full, query, server, limit, offset, check (outcome not_sent`},
		{"discover_tool", `{"name":"later/echo"}`, `it has no argument "name"`},
		{"use_tool", `{}`, `"tool_name" is missing`},
		{"use_tool", `{"tool_name":"later/echo","n":1}`, `it has no argument "n"; the arguments of the tool go into "tool_input"`},
		{"use_tool", `{"tool_name":"later/echo","n":1}`, `outcome not_sent`},
		{"use_tool", `{"tool_name":"later/echo","tool_input":{},"arguments":{"n":1}}`, `it has no argument "arguments"`},
		{"use_tool", `{"tool_name":"later/echo","args":{},"params":{"n":1}}`, `it has no argument "params"`},
		{"use_tool", `{"tool_name":"later/echo","tool_name":"later/crash"}`, `"tool_name" is there twice`},
		{"load_mcp", `{"name":"later"}`, `it has no argument "name", only mcp_name, query, retry`},
		{"use_tool", `{"tool_name":7}`, `"tool_name" must be a string`},
		{"use_tool", `{"tool_name":"later/x","tool_input":[1]}`, `"tool_input" must be an object`},
		{"use_tool", `{"tool_name":"later/x","tool_input":"{"}`, `"tool_input" is a string that holds no JSON`},
		{"use_tool", `{"tool_name":"later/x","tool_input":"[1]"}`, `"tool_input" must be an object`},
		{"load_mcp", `{}`, `"mcp_name" is missing`},
		{"load_mcp", `{"mcp_name":["later"]}`, `"mcp_name" must be a string`},
	} {
		m := host.Tool(c.tool, c.arguments)
		if !m.IsError() || m.Error != nil {
			t.Errorf("%s %s: got %s, want a result with isError", c.tool, c.arguments, m.Raw)
		}
		contains(t, m.Text(), c.tool, c.want)
	}
	if m := host.Tool("no_such_tool", nil); m.Code() != -32602 {
		t.Errorf("got %s", m.Raw)
	}
	contains(t, block(catalogue(t, host), "mcp_servers"), "- later: Later") // nothing was called
}

func TestToolsWithOddEntriesAreSkipped(t *testing.T) {
	t.Parallel()
	host := wrap(t, "-fault", "bad-entry,dup-tool")
	checkEcho(t, host, "echo", `{}`)
	contains(t, discover(host, `{}`).Text(), "- echo")
}

// TestOneQueryIsEnoughForACall wants what a query answers to be all that a call needs.
func TestOneQueryIsEnoughForACall(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha"), deferred(t, "other", "Letters that echo"))
	m := discover(host, `{"query":"echo the arguments"}`)
	contains(t, m.Text(), "- alpha/echo (below)", "Name: alpha/echo\n", "Input Schema:\n{", "other: Letters that echo")
	if m := use(host, "alpha/echo", map[string]any{"text": "hi"}); m.IsError() {
		t.Errorf("got %s", m.Raw)
	}
}

func TestAQueryWithinAServerLoadsIt(t *testing.T) {
	t.Parallel()
	for _, ask := range []func(host *mcptest.Host) mcptest.Message{
		func(host *mcptest.Host) mcptest.Message {
			return discover(host, `{"query":"generated","server":"Later"}`)
		},
		func(host *mcptest.Host) mcptest.Message {
			return host.Tool("load_mcp", `{"mcp_name":"later","query":"generated"}`)
		},
	} {
		later := deferred(t, "later", "Later", "-tools", "120")
		host := serve(t, later, fake(t, "alpha", "-bare", "-tools", "3"))
		m := ask(host)
		answersOnce(t, m)
		contains(t, m.Text(), "- later/tool_", "Name: later/tool_", `discover_tool with this query, "server": "later" and "offset": `, " goes on.")
		lacks(t, m.Text(), "alpha/")
		if later.Count("start") != 1 {
			t.Errorf("got %q", later.Events())
		}
	}
}

// load_mcp searches for several things at once, as discover_tool does.
func TestLoadSearchesForSeveral(t *testing.T) {
	t.Parallel()
	host := serve(t, deferred(t, "later", "Later", "-tools", "120"))
	m := host.Tool("load_mcp", `{"mcp_name":"later","query":["return a text of many bytes","wait for some milliseconds"]}`)
	contains(t, m.Text(), "later is loaded, with 148 tools", "For \"return a text of many bytes\":\n- later/big (below)", "For \"wait for some milliseconds\":\n- later/sleep (below)", "Name: later/big\n", "Name: later/sleep\n")
	contains(t, host.Tool("load_mcp", `{"mcp_name":"later","query":["a","a","a","a","a","a","a","a","a","a","a"]}`).Text(), `"query" has 11 texts, at most 10`)
}
