package main_test

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Smuggling: a call names the same tool for dynmcp and for its server, and texts of servers
// are data.

func TestCallNamesOneToolForEveryReader(t *testing.T) {
	t.Parallel()
	alpha := fake(t, "alpha").with("tool_filter", []string{"echo"})
	host := mcptest.StartDynmcp(t, "-c", mcptest.Config(t, document([]entry{alpha}, `"expose": ["discover", "direct"]`)))
	greet(host)
	const echo = `"arguments":{"tool_name":"alpha/echo"}`
	for _, c := range []struct{ method, params string }{
		{"tools/call", `{"name":"use_tool","name":"use_tool",` + echo + `}`},
		{"tools/call", `{"name":"use_tool","\u006eame":"pid",` + echo + `}`},
		{"tools/call", `{"name":"use_tool","Name":"pid",` + echo + `}`},
		{"tools/call", `{"name":"use_tool","name\u0000":"pid",` + echo + `}`},
		{"tools/call", `{"name":"use_tool","argumentſ":{},` + echo + `}`},
		{"tools/call", `{"Name":"use_tool",` + echo + `}`},
		{"tools/call", `{"name":"use_tool\u0000",` + echo + `}`},
		{"tools/call", `{"name":"use_tool","arguments":{"tool_name":"alpha/echo","tool_name":"alpha/pid"}}`},
		{"tools/call", `{"name":"use_tool","arguments":{"tool_name":"alpha/echo","Tool_Name":"alpha/pid"}}`},
		{"tools/call", `{"name":"use_tool","arguments":{"tool_name":"alpha/echo","tool_name\u0000":"alpha/pid"}}`},
		{"tools/call", `{"name":"use_tool","arguments":{"tool_name":"alpha/echo","tool_input":{},"TOOL_INPUT":{"x":1}}}`},
		{"tools/call", `{"name":"use_tool","arguments":{"Tool_Name":"alpha/echo"}}`},
		{"tools/call", `{"name":"use_tool","arguments":{"tool_name":"alpha/echo\u0000"}}`},
		{"tools/call", `{"name":"use_tool","arguments":{"tool_name":"Alpha/echo"}}`},
		{"tools/call", `{"name":"alpha__echo","name":"pid","arguments":{}}`},
		{"tools/call", `{"name":"alpha__echo","NAME":"pid","arguments":{}}`},
		{"tools/call", `{"name":"alpha__echo","name\u0000":"pid","arguments":{}}`},
		{"tools/call", `{"name":"alpha__pid","arguments":{}}`},
		{"resources/read", `{"uri":"fake://alpha/text","uri":"fake://alpha/binary"}`},
		{"resources/read", `{"uri":"fake://alpha/text","URI":"fake://alpha/binary"}`},
		{"prompts/get", `{"name":"alpha.greet","Name":"other"}`},
	} {
		if m := host.Call(c.method, c.params); !m.IsError() {
			t.Errorf("%s %s: got %s", c.method, c.params, m.Raw)
		}
	}
	for _, event := range []string{"call", "resources/read", "prompts/get"} {
		if n := alpha.Count(event); n > 0 {
			t.Errorf("%d of event %q reached the server: %q", n, event, alpha.Events())
		}
	}
	host.Send(`{"jsonrpc":"2.0","id":"p","method":"ping","Method":"tools/call","params":{"name":"use_tool",` + echo + `}}`)
	if m := host.WaitFor(func(m mcptest.Message) bool { return string(m.ID) == `"p"` }); string(m.Result) != "{}" {
		t.Errorf("got %s", m.Raw)
	}
	if m := use(host, "alpha/echo", `{"name":"a","Name":"b"}`); m.Text() != `{"name":"a","Name":"b"}` {
		t.Errorf("the input is the tool's own business: got %s", m.Raw)
	}
}

// References in schemas are never fetched, and a schema that is too large for a model hides
// only its own tool.
func TestSchemasAreNeverFollowed(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	visited := make(chan struct{})
	go func() {
		defer close(visited)
		if conn, err := listener.Accept(); err == nil {
			conn.Close()
			t.Error("a $ref was followed")
		}
	}()
	tool := func(name, schema string) string { return `{"name":"` + name + `","inputSchema":` + schema + `}` }
	far := `{"type":"object","properties":{"a":{"$ref":"http://` + listener.Addr().String() + `/a.json"},"b":{"$ref":"file:///etc/hostname"},"c":{"$ref":"#/properties/c"}}}`
	bomb := `{"type":"object","allOf":[` + strings.Repeat(`{},`, 3000) + `{}]}`
	for _, expose := range []string{`["discover"]`, `["direct"]`} {
		e := fake(t, "odd", "-bare", "-tool", tool("far", far), "-tool", tool("bomb", bomb), "-tool", tool("plain", `{"type":"object"}`))
		host := mcptest.StartDynmcp(t, "-c", mcptest.Config(t, document([]entry{e}, `"expose": `+expose)))
		greet(host)
		list := host.Call("tools/list", nil).Raw
		contains(t, list, "far", "plain")
		lacks(t, list, "bomb")
		host.WaitStderr("its schema has more than 2000 objects")
		if strings.Count(host.Stderr(), "2000 objects") != 1 {
			t.Errorf("warned more than once\n%s", host.Stderr())
		}
		if expose == `["direct"]` {
			if m := host.Tool("odd__far", `{"a":1}`); m.IsError() {
				t.Errorf("got %s", m.Raw)
			}
			if m := host.Tool("odd__bomb", `{}`); !m.IsError() || e.Count("call bomb") > 0 {
				t.Errorf("got %s", m.Raw)
			}
			continue
		}
		contains(t, host.Tool("discover_tool", `{"tool_name":"odd/far"}`).Text(), `"$ref":"http://`)
		contains(t, host.Tool("discover_tool", `{"tool_name":"odd/bomb"}`).Text(), "Unknown tool: odd/bomb", "its schema has more than 2000 objects")
		if m := use(host, "odd/far", `{"a":1}`); m.IsError() {
			t.Errorf("got %s", m.Raw)
		}
		if m := use(host, "odd/bomb", nil); !m.IsError() || e.Count("call bomb") > 0 {
			t.Errorf("got %s", m.Raw)
		}
	}
	listener.Close()
	<-visited
}

// load_mcp starts what the config names and nothing else, whatever it is given.
func TestLoadStartsOnlyWhatTheConfigNames(t *testing.T) {
	t.Parallel()
	slow := deferred(t, "slow", "Slow")
	dir := t.TempDir()
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", mcptest.Config(t, document([]entry{slow}))}, Dir: dir})
	greet(host)
	for _, arguments := range []string{
		`{"mcp_name":"slow;touch x"}`, `{"mcp_name":"$(touch x)"}`, "{\"mcp_name\":\"`touch x`\"}", `{"mcp_name":"../slow"}`, `{"mcp_name":"slow\u0000"}`,
		`{"mcp_name":"touch"}`, `{"mcp_name":"/bin/sh"}`, `{"mcp_name":""}`, `{"mcp_name":["slow"]}`, `{"mcp_name":null}`, `{}`, `[]`, `"slow"`,
		`{"mcp_name":"slow","command":"touch","args":["x"],"env":{"A":"b"}}`,
		`{"mcp_name":"new","command":"touch","args":["x"],"url":"http://127.0.0.1:1/","env":{"PATH":"."}}`,
		`{"mcp_name":"` + strings.Repeat("a", 1<<20) + `"}`,
	} {
		if m := host.Tool("load_mcp", arguments); !m.IsError() || len(m.Raw) > 4096 {
			t.Errorf("%.60s: got %.300s", arguments, m.Raw)
		}
	}
	nothingStarted(t, slow)
	lacks(t, use(host, "slow/args", nil).Text(), "touch")
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("got %v, %v", files, err)
	}
}

// A server's texts are never taken for variables, and its stderr is neither a line of our log
// nor a command to a terminal.
func TestWordsOfServersAreData(t *testing.T) {
	t.Parallel()
	const mean = "\x1b]8;;http://evil\aclick\x1b[2J \u202e \u200b \x9b31m\r\nlevel=INFO msg=approved"
	host := mcptest.StartDynmcp(t, "-c", mcptest.Config(t, document([]entry{fake(t, "alpha")})), "--log-level", "debug")
	greet(host)
	use(host, "alpha/add_tool", `{"entry":{"name":"mean","description":"${HOME} ${env:HOME} $HOME","inputSchema":{"type":"object"}},"name":"mean"}`)
	settle(t, host, "alpha")
	contains(t, host.Tool("discover_tool", `{"tool_name":"alpha/mean"}`).Text(), "${HOME} ${env:HOME} $HOME")
	checkEcho(t, host, "alpha/echo", `{"x":"${HOME}","y":"${env:HOME}"}`)
	use(host, "alpha/stderr", `{"text":`+quote(mean)+`}`)
	host.WaitStderr("approved")
	m := use(host, "alpha/crash", nil)
	contains(t, m.Text(), "last lines of its stderr", "approved", `\u{1b}`, `\u{202e}`)
	for what, text := range map[string]string{"the answer": m.Text(), "the log": host.Stderr()} {
		for _, r := range "\x1b\a\u202e\u200b\u009b\r" {
			if strings.ContainsRune(text, r) {
				t.Errorf("%q is in %s: %q", r, what, text)
			}
		}
	}
	if strings.Contains(host.Stderr(), "\nlevel=INFO msg=approved") {
		t.Errorf("the server wrote a line of the log\n%s", host.Stderr())
	}
}
