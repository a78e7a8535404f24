package main_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Calls of tools whose definition has changed since the model saw it: their server was
// updated between two runs, or while it ran.

const (
	pathTool  = `{"name":"read","description":"Reads a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`
	filesTool = `{"name":"read","description":"Reads files.","inputSchema":{"type":"object","properties":{"paths":{"type":"array","items":{"type":"string"}}},"required":["paths"]}}`
	sameTool  = `{ "inputSchema":{"required":["path"],"type":"object","properties":{"path":{"type":"string"}}}, "description":"Reads a file.", "_meta":{"x":1}, "name":"read" }`
)

// An updated server is an entry whose command is a script, which a test can replace.
type updated struct {
	entry
	mcptest.Ledger
	t      *testing.T
	script string
}

func updatable(t *testing.T, name string) *updated {
	t.Helper()
	u := &updated{Ledger: mcptest.NewLedger(t), t: t, script: filepath.Join(t.TempDir(), "server.sh")}
	u.entry = entry{u.Ledger, name, map[string]any{"command": "sh", "args": []string{u.script}, "description": "Files."}}
	return u
}

// offer makes the server list this tool from its next start on.
func (u *updated) offer(tool string) {
	u.t.Helper()
	line := "exec " + mcptest.Fake(u.t) + " -bare -name " + u.name + " -ledger " + u.Ledger.Path + " -tool '" + tool + "'"
	writeFile(u.t, filepath.Dir(u.script), filepath.Base(u.script), line+"\n")
}

// updatedHost returns a host that knows a tool from an earlier run, and its server, which lists
// the tool now when it starts. catalog holds further members of the config's catalog.
func updatedHost(t *testing.T, now, catalog string, more ...string) (*mcptest.Host, *updated) {
	t.Helper()
	u := updatable(t, "files")
	u.offer(pathTool)
	dir := filepath.Join(t.TempDir(), "catalog")
	more = append(more, `"catalog": {"dir": `+quote(dir)+catalog+`}`)
	m := remembered{t, mcptest.Config(t, document([]entry{u.entry}, more...)), dir}
	m.verb("warm")
	u.offer(now)
	host := m.run()
	greet(host)
	return host, u
}

// staleHost returns an updatedHost that has read the stored definition of the tool.
func staleHost(t *testing.T, now, catalog string) (*mcptest.Host, *updated) {
	t.Helper()
	host, u := updatedHost(t, now, catalog)
	contains(t, discover(host, `{"tool_name":"files/read"}`).Text(), "Reads a file.")
	return host, u
}

func TestChangedToolIsNotCalledOnce(t *testing.T) {
	t.Parallel()
	host, files := staleHost(t, filesTool, "")
	m := use(host, "files/read", `{"path":"/a"}`)
	contains(t, m.Text(),
		"files: the definition of files/read has changed since it was shown (outcome not_sent: the call did not run)",
		"hint: see that the input fits the definition below, then call again",
		"\n-Description: Reads a file.\n+Description: Reads files.\n",
		`+  "paths": {`,
		`Input Schema:`+"\n"+`{"type":"object","properties":{"paths":{"type":"array","items":{"type":"string"}}},"required":["paths"]}`)
	if !m.IsError() || files.Count("call read") != 0 {
		t.Errorf("%d calls; got %s", files.Count("call read"), m.Raw)
	}
	if got := use(host, "files/read", `{"paths":["/a"]}`).Text(); got != `{"paths":["/a"]}` {
		t.Errorf("the next call: got %s", got)
	}
}

func TestChangedToolIsBlockedUntilItWasRead(t *testing.T) {
	t.Parallel()
	host, files := staleHost(t, filesTool, `, "on_change": "block"`)
	for range 2 {
		contains(t, use(host, "files/read", `{"path":"/a"}`).Text(), "has changed since it was shown", `hint: read it again with discover_tool {"tool_name": "files/read"}, then call again`)
	}
	if n := files.Count("call read"); n != 0 {
		t.Errorf("%d calls", n)
	}
	contains(t, discover(host, `{"tool_name":"files/read"}`).Text(), "Reads files.")
	if got := use(host, "files/read", `{"paths":["/a"]}`).Text(); got != `{"paths":["/a"]}` {
		t.Errorf("got %s", got)
	}
}

func TestChangedToolIsCalledWhereTheConfigSaysSo(t *testing.T) {
	t.Parallel()
	host, _ := staleHost(t, filesTool, `, "on_change": "ignore"`)
	if got := use(host, "files/read", `{"path":"/a"}`).Text(); got != `{"path":"/a"}` {
		t.Errorf("got %s", got)
	}
}

func TestToolWithTheSameMeaningIsCalled(t *testing.T) {
	t.Parallel()
	host, _ := staleHost(t, sameTool, "")
	if got := use(host, "files/read", `{"path":"/a"}`).Text(); got != `{"path":"/a"}` {
		t.Errorf("got %s", got)
	}
}

func TestToolThatIsGoneIsNotCalled(t *testing.T) {
	t.Parallel()
	host, files := staleHost(t, strings.Replace(pathTool, `"read"`, `"read_text"`, 1), "")
	m := use(host, "files/read", `{"path":"/a"}`)
	contains(t, m.Text(), "Unknown tool: files/read", "Did you mean: files/read_text?")
	if !m.IsError() || files.Count("call") != 0 {
		t.Errorf("got %s", m.Raw)
	}
}

// A model that has read no definition has no old one in mind.
func TestToolThatWasNotShownIsCalled(t *testing.T) {
	t.Parallel()
	host, _ := updatedHost(t, filesTool, "")
	if got := use(host, "files/read", `{"paths":["/a"]}`).Text(); got != `{"paths":["/a"]}` {
		t.Errorf("got %s", got)
	}
}

func TestToolShownByASearchIsChecked(t *testing.T) {
	t.Parallel()
	host, _ := updatedHost(t, filesTool, "")
	contains(t, discover(host, `{"query":"reads a file"}`).Text(), `{"path":`)
	contains(t, use(host, "files/read", `{"path":"/a"}`).Text(), "has changed since it was shown")
}

func TestToolShownInAListIsChecked(t *testing.T) {
	t.Parallel()
	host, _ := updatedHost(t, filesTool, "", `"expose": ["discover", "direct"]`)
	refused := host.Tool("files__read", `{"path":"/a"}`)
	contains(t, string(refused.Raw), `"code":5114`, "has changed since it was shown", "What has changed:", `"outcome":"not_sent"`)
	if got := host.Tool("files__read", `{"paths":["/a"]}`).Text(); got != `{"paths":["/a"]}` {
		t.Errorf("got %s", got)
	}
}

// On every surface a call is refused if the tool's definition has changed since it was shown.
func TestToolShownByAnySurfaceIsChecked(t *testing.T) {
	t.Parallel()
	for surface, say := range map[string]struct{ read, readArguments, call, callArguments string }{
		"tree":    {"meta_desc", `{"path":"/files/read"}`, "meta_call", `{"path":"/files/read","args":%s}`},
		"browser": {"mcp_discover", `{"jsonpath":"$.tools[?(@.name=='files/read')]"}`, "mcp_call", `{"method":"tools/call","params":{"name":"files/read","arguments":%s}}`},
		"proxy":   {"proxy", `{"action":"info","type":"tool","path":"files/read"}`, "proxy", `{"action":"call","type":"tool","path":"files/read","args":%s}`},
	} {
		t.Run(surface, func(t *testing.T) {
			t.Parallel()
			host, files := updatedHost(t, filesTool, `, "on_change": "block"`, `"expose": [`+quote(surface)+`]`)
			call := func(input string) mcptest.Message {
				return host.Tool(say.call, strings.Replace(say.callArguments, "%s", input, 1))
			}
			contains(t, string(host.Tool(say.read, say.readArguments).Raw), "Reads a file.")
			contains(t, string(call(`{"path":"/a"}`).Raw), "has changed since it was shown", "read it again with "+say.read)
			if n := files.Count("call read"); n != 0 {
				t.Errorf("%d calls", n)
			}
			contains(t, string(host.Tool(say.read, say.readArguments).Raw), "Reads files.")
			contains(t, string(call(`{"paths":["/a"]}`).Raw), `{\"paths\":[\"/a\"]}`)
		})
	}
}
