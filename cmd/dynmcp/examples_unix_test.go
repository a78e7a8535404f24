//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The examples of the systems that the surfaces discover, browser and proxy come from, with
// the config files that they show. Fakes with the names of their programs are found first on
// PATH. The gateway's examples are in serve_examples_test.go, the tree's in tree_test.go.

// standIn puts a program of this name on PATH that runs fakemcp with these arguments. The
// program's own arguments only appear in the ledger, in a line "argv …".
func standIn(t *testing.T, name string, args ...string) (ledger mcptest.Ledger, env string) {
	t.Helper()
	dir, ledger := t.TempDir(), mcptest.NewLedger(t)
	script := fmt.Sprintf("#!/bin/sh\necho \"argv $*\" >>'%s'\nexec '%s' -ledger '%s'", ledger.Path, mcptest.Fake(t), ledger.Path)
	for _, arg := range args {
		script += " '" + arg + "'"
	}
	writeProgram(t, dir, name, script+"\n")
	return ledger, "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")
}

const deferringFile = `{
  "$schema": "https://unpkg.com/dynmcp/schema/mcp-config.json",
  "mcp": {
    "filesystem": {
      "transport": "stdio",
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]
    },
    "chrome-devtools": {
      "description": "Chrome browser automation and DevTools control. Navigate pages, take screenshots, inspect the DOM, run JavaScript, record performance traces, analyze network requests, read console messages. Use for any task that needs to interact with or debug a live web page.",
      "transport": "stdio",
      "command": "npx",
      "args": ["-y", "chrome-devtools-mcp@latest"]
    },
    "aws-knowledge": {
      "description": "AWS documentation, code samples, and best-practice guidance. Search and read AWS docs, API references, blog posts, CDK/CloudFormation templates, and regional availability info. Use when the task involves AWS services or infrastructure-as-code.",
      "transport": "streamable-http",
      "url": "https://knowledge-mcp.global.api.aws"
    }
  }
}`

// A server without a description starts at once, one with a description when it is loaded.
func TestExampleOfDynamicDiscovery(t *testing.T) {
	t.Parallel()
	programs, path := standIn(t, "npx")
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", mcptest.Config(t, deferringFile)}, Env: []string{path}})
	host.Initialize(handshake, nil)
	if got := use(host, "filesystem/echo", `{"n":1}`).Text(); got != `{"n":1}` { // it has started
		t.Errorf("got %s", got)
	}
	if got := tools(host); !slices.Equal(got, []string{"discover_tool", "use_tool", "load_mcp"}) {
		t.Errorf("got tools %q", got)
	}
	text := catalogue(t, host)
	contains(t, block(text, "mcp_servers"), "- chrome-devtools: Chrome browser automation and DevTools control.", "Use for any task that needs to interact with or debug a live web page.\n",
		"- aws-knowledge: AWS documentation, code samples, and best-practice guidance.", "Use when the task involves AWS services or infrastructure-as-code.\n")
	contains(t, block(text, "tools"), "- filesystem/echo: ")
	lacks(t, block(text, "tools"), "chrome-devtools/")
	contains(t, host.Tool("discover_tool", `{"tool_name": "filesystem/echo"}`).Text(), "Input Schema:\n{")
	if got := started(programs); !slices.Equal(got, []string{"argv -y @modelcontextprotocol/server-filesystem /tmp"}) {
		t.Errorf("before load_mcp these were started: %q", got)
	}

	first := load(host, "chrome-devtools").Text()
	host.WaitMethod(toolsChanged, 1)
	contains(t, first, "chrome-devtools (", "chrome-devtools/echo", " resources:", " prompt")
	if again := load(host, "chrome-devtools").Text(); again != first {
		t.Errorf("loaded once more it is\n%s\nnot\n%s", again, first)
	}
	text = catalogue(t, host)
	contains(t, block(text, "tools"), "- chrome-devtools/echo: ")
	lacks(t, block(text, "mcp_servers"), "chrome-devtools")
	if got := started(programs); len(got) != 2 || got[1] != "argv -y chrome-devtools-mcp@latest" {
		t.Errorf("after load_mcp these were started: %q", got)
	}
}

// started returns the command lines of the programs that were started.
func started(programs mcptest.Ledger) []string {
	return slices.DeleteFunc(programs.Events(), func(line string) bool { return !strings.HasPrefix(line, "argv ") })
}

const browserFile = `# File location: ~/.mcp-browser/config.yaml or .mcp-browser/config.yaml
# Working directory: Configuration is loaded relative to where you run MCP Browser

servers:
  my_server:
    command: ["python", "-m", "my_mcp_server"]
    args: ["--port", "8080"]
    env:
      API_KEY: "${API_KEY}"
    description: "My custom MCP server"
    # Note: Server process inherits working directory from MCP Browser
`

// The first request of the first session finds the tools of the only server.
func TestExampleOfTheBrowser(t *testing.T) {
	t.Parallel()
	read := `{"name":"Read","description":"Read a file.","inputSchema":{"type":"object"}}`
	search := `{"name":"file_search","description":"Search files.","inputSchema":{"type":"object"}}`
	programs, path := standIn(t, "python", "-tool", read, "-tool", search, "-tools", "3")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, ".mcp-browser/config.yaml", browserFile)
	host := mcptest.Start(t, mcptest.HostOptions{
		Args: []string{mcptest.Dynmcp(t), "-c", ".mcp-browser/config.yaml", "--expose", "browser"}, Env: []string{path, "API_KEY=k3y"}, Dir: dir,
	})
	host.Initialize(handshake, nil)
	if got := tools(host); !slices.Equal(got, []string{"mcp_discover", "mcp_call"}) {
		t.Errorf("got tools %q", got)
	}
	discover := func(query string) string {
		return host.Tool("mcp_discover", mcptest.Raw(map[string]string{"jsonpath": query})).Text()
	}
	if got, want := discover("$.tools[?(@.name contains 'file')]"), `[`+strings.Replace(search, "file_search", "my-server/file_search", 1)+`]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	contains(t, discover("$.tools[*].name"), `"my-server/Read"`, `"my-server/file_search"`, `"my-server/tool_001"`)
	contains(t, definition(t, host, "mcp_discover").Description, "Discover available tools using JSONPath. ", " tools available.")
	contains(t, definition(t, host, "mcp_call").Description, "Execute any MCP tool by constructing a JSON-RPC call")
	answer := host.Call("tools/call", json.RawMessage(`{
        "name": "mcp_call",
        "arguments": {
          "method": "tools/call",
          "params": {
            "name": "Read",
            "arguments": {
              "file_path": "/absolute/path/to/file.txt"
            }
          }
        }
      }`))
	var echoed struct {
		Path string `json:"file_path"`
	}
	if err := json.Unmarshal([]byte(answer.Text()), &echoed); err != nil || echoed.Path != "/absolute/path/to/file.txt" || answer.IsError() {
		t.Errorf("got %s", answer.Raw)
	}
	call := func(tool, arguments string) string {
		return host.Tool("mcp_call", fmt.Sprintf(`{"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)).Text()
	}
	contains(t, call("env", `{"name":"API_KEY"}`), "k3y")
	contains(t, call("my_server/cwd", `{}`), dir)
	if got := started(programs); !slices.Equal(got, []string{"argv -m my_mcp_server --port 8080"}) {
		t.Errorf("these were started: %q", got)
	}
}

// The extension shows no config file. Its server is wrapped, so that the tool keeps its name,
// or comes from a file of Magg's servers.
func TestExamplesOfTheProxy(t *testing.T) {
	t.Parallel()
	const file = `{"servers": {"calculator": {"name": "calculator", "source": "https://magg.test/calculator", "prefix": "calculator", "command": "python", "args": ["-m", "calculator"], "enabled": true}}}`
	add := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"description":"Add two numbers","inputSchema":{"type":"object"},"_meta":{"_fastmcp":{"tags":["math"]}}}`, name)
	}
	for _, c := range []struct {
		name, own, listed string
		args              []string
	}{
		{"wrapped", "calculator_add", "calculator_add", []string{"--", "python", "-m", "calculator"}},
		{"of a file", "add", "calculator/add", []string{"-c", mcptest.Config(t, file)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			programs, path := standIn(t, "python", "-bare", "-tool", add(c.own))
			host := mcptest.Start(t, mcptest.HostOptions{Args: append([]string{mcptest.Dynmcp(t), "--expose", "proxy"}, c.args...), Env: []string{path}})
			host.Initialize(handshake, nil)
			call := `{
  "action": "call",
  "type": "tool",
  "path": "calculator_add",
  "args": {"a": 5, "b": 3}
}`
			// The fake answers what it is called with, where a calculator would say 8.
			contains(t, string(host.Tool("proxy", call).Member("content")),
				`"proxyAction":"call","proxyType":"tool","proxyPath":"calculator_add"}`, `"text":"{\"a\":`)
			want := fmt.Sprintf(`[{"type":"resource","resource":{"uri":"proxy:list/tool","mimeType":"application/json","text":%s},`+
				`"annotations":{"proxyAction":"list","proxyType":"tool","pythonType":"Tool","dataType":"Tool","many":true}}]`, quote("["+add(c.listed)+"]"))
			for _, list := range []string{"{\n  \"action\": \"list\",\n  \"type\": \"tool\"\n}", `{
  "action": "list",
  "type": "tool",
  "filter": {
    "prefix": "` + strings.TrimSuffix(c.listed, "add") + `",
    "tags": ["math", "arithmetic"]
  }
}`} {
				if got := string(host.Tool("proxy", list).Member("content")); got != want {
					t.Errorf("%s: got\n%s\nwant\n%s", list, got, want)
				}
			}
			if got := started(programs); !slices.Equal(got, []string{"argv -m calculator"}) {
				t.Errorf("these were started: %q", got)
			}
		})
	}
}
