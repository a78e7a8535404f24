package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The tree surface, with a config file of pyMCPBroker.

// getFile is a tool of pyMCPBroker's own examples.
const getFile = `{"name":"get_file_contents","description":"Get the contents of a file. Long story.","inputSchema":{"type":"object",` +
	`"properties":{"owner":{"type":"string"},"repo":{"type":"string"},"ref":{"type":"string"},"filePath":{"type":"string"}},"required":["owner","repo","filePath"],"additionalProperties":false}}`

// broker returns a config file of pyMCPBroker, with no key of ours. Its source is a fake with
// these tools, whose command refers to the variable FORGE.
func broker(t *testing.T, ledger mcptest.Ledger, extra string) string {
	command := fmt.Sprintf("NAME=${FORGE}; exec '%s' -name \"$NAME\" -ledger '%s' -bare -tool '%s'", mcptest.Fake(t), ledger.Path, getFile)
	for _, name := range []string{"get_secret_key", "get_issue", "delete_file"} {
		command += fmt.Sprintf(` -tool '{"name":%q,"inputSchema":{"type":"object"}}'`, name)
	}
	return fmt.Sprintf(`{
  "tree": [
    {
      "path": "/repo",
      "type": "node",
      "summary": "Repositories",
      "children": [
        {
          "path": "/repo/read",
          "type": "node",
          "summary": "Read the repository",
          "source": {
            "backend": "stdio",
            "command": %s,
            "tool_filter": ["get_*", "!get_secret_*"],
            "tool_overrides": {
              "get_file_contents": {
                "summary": "Read one file",
                "timeout": 30,
                "max_output_chars": 40000,
                "render_mode": "json",
                "example_args": {"owner": "myorg", "repo": "demo-repo", "ref": "main", "filePath": "README.md"}
              }
            },
            "path_aliases": {"get_file_contents": "get_file"}
          }
        }%s
      ]
    }
  ]
}`, quote(command), extra)
}

// forgeEnv is a file with the variable that broker's command refers to.
func forgeEnv(t *testing.T) string {
	return writeFile(t, t.TempDir(), "forge.env", "FORGE=the-forge\n")
}

func TestBrokerFileRunsUnchanged(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	host := mcptest.StartDynmcp(t, "-e", forgeEnv(t), "-c", mcptest.Config(t, broker(t, ledger, "")))
	greeting := host.Initialize(handshake, nil)
	contains(t, string(greeting.Member("instructions")), "leaves of a tree", "- /repo: Repositories")
	if got := strings.Join(tools(host), " "); got != "meta_tree meta_desc meta_call" {
		t.Errorf("got tools %s", got)
	}
	tree := func(path string) string { return host.Tool("meta_tree", fmt.Sprintf(`{"path":%q}`, path)).Text() }
	if got, want := tree("/"), "[\n"+`{"path":"/repo","type":"node","summary":"Repositories"}]`; got != want {
		t.Errorf("got %s", got)
	}
	if got, want := tree("/repo/read"), "[\n"+`{"path":"/repo/read/get_file","type":"tool","summary":"Read one file"},`+"\n"+`{"path":"/repo/read/get_issue","type":"tool"}]`; got != want {
		t.Errorf("got %s", got)
	}
	contains(t, host.Tool("meta_desc", `{"path": "/repo/read/get_file"}`).Text(), `"path":"/repo/read/get_file"`, `"summary":"Read one file"`,
		`"description":"Get the contents of a file. Long story."`, `"required":["owner","repo","filePath"]`, `"example_args":{"owner":"myorg","repo":"demo-repo","ref":"main","filePath":"README.md"}`)
	m := host.Tool("meta_call", `{"path": "/repo/read/get_file", "args": {"owner": "myorg", "repo": "demo-repo", "ref": "main", "filePath": "README.md"}}`)
	if m.IsError() {
		t.Errorf("got %s", m.Raw)
	}
	before := ledger.Count("call")
	m = host.Tool("meta_call", `{"path": "/repo/read/get_file", "args": {"owner": 1, "branch": "main"}}`)
	contains(t, m.Text(), "/owner: this is the number 1", `"": "repo" is missing`, `"": "filePath" is missing`, "/branch: there is no such member, only filePath, owner, ref, repo", "not_sent")
	for _, path := range []string{"/repo/read/get_secret_key", "/repo/read/delete_file", "/repo/read/get_file_contents"} {
		contains(t, host.Tool("meta_call", fmt.Sprintf(`{"path":%q}`, path)).Text(), "Unknown path: "+path, "not_sent")
	}
	if n := ledger.Count("call"); n != before || before != 1 {
		t.Errorf("%d calls, then %d: %q", before, n, ledger.Events())
	}
}

// A variable that is not set switches off the source that needs it, and no other.
func TestMissingVariableSwitchesOffItsSource(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	host := mcptest.StartDynmcp(t, "-e", forgeEnv(t), "-c", mcptest.Config(t, broker(t, ledger, `, {"path": "/repo/write", "type": "node", "source": {"command": "TOKEN=${DYNMCP_TEST_UNSET} forge"}}`)))
	host.Initialize(handshake, nil)
	contains(t, host.Tool("meta_tree", `{"path": "/repo"}`).Text(), `{"path":"/repo/write","type":"node","summary":"(off: DYNMCP_TEST_UNSET is not set)"}`)
	contains(t, host.Tool("meta_tree", `{"path": "/repo/read"}`).Text(), "/repo/read/get_file")
	contains(t, host.Tool("meta_call", `{"path": "/repo/write/anything"}`).Text(), "Unknown path: /repo/write/anything", "(off: DYNMCP_TEST_UNSET is not set)")
}

// dumpOf runs dynmcp --dump-tree, and returns what it prints and its exit status.
func dumpOf(t *testing.T, config string, more ...string) (stdout, stderr string, code int) {
	t.Helper()
	host := mcptest.StartDynmcp(t, append([]string{"-e", forgeEnv(t), "-c", mcptest.Config(t, config), "--dump-tree"}, more...)...)
	code = host.Wait()
	return strings.Join(host.Lines(), "\n"), host.Stderr(), code
}

func TestDumpTreePrintsTheResolvedTree(t *testing.T) {
	t.Parallel()
	out, stderr, code := dumpOf(t, broker(t, mcptest.NewLedger(t), ""))
	want := `node /
node /repo: Repositories
node /repo/read: Read the repository
tool /repo/read/get_file: Read one file
tool /repo/read/get_issue`
	if out != want || code != 0 {
		t.Errorf("exit status %d, got\n%s\nstderr %s", code, out, stderr)
	}
}

// What else the config exposes does not matter to the tree, also if a module has it.
func TestDumpTreeBesideTheSurfaceOfAModule(t *testing.T) {
	t.Parallel()
	out, stderr, code := dumpOf(t, document([]entry{fake(t, "alpha", "-tools", "1")}, `"expose": ["proxy", "tree"]`))
	if !strings.HasPrefix(out, "node /\nnode /alpha") || code != 0 {
		t.Errorf("exit status %d, got\n%s\nstderr %s", code, out, stderr)
	}
}

// A source that is off for a variable is printed as that, and is an error.
func TestDumpTreeWithAVariableThatIsNotSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ config, out, stderr string }{
		{`{"tree":[{"path":"/r","type":"node","source":{"backend":"stdio","command":"T=${DYNMCP_TEST_UNSET} x"}}]}`,
			"node /r: (off: DYNMCP_TEST_UNSET is not set)", "the tree is not whole:\n/r is off: DYNMCP_TEST_UNSET is not set; "},
		{`{"mcp":{"a":{"command":"x","env":{"T":"${DYNMCP_TEST_UNSET}"}}}}`,
			"node /a: (off: DYNMCP_TEST_UNSET is not set)", "the tree is not whole:\n/a is off: DYNMCP_TEST_UNSET is not set; "},
	} {
		out, stderr, code := dumpOf(t, c.config)
		contains(t, out, c.out)
		contains(t, stderr, c.stderr)
		if code != 1 {
			t.Errorf("%s: got exit status %d", c.config, code)
		}
	}
}

// The command line of pyMCPBroker is refused with a hint that has ours, without the secret in
// it. Its options are accepted.
func TestCommandLineOfTheBroker(t *testing.T) {
	t.Parallel()
	const wide = "hint: write\n  dynmcp serve --http 0.0.0.0:8100 --listen-public --token SECRET -c /config.json\n"
	for _, c := range []struct{ line, want string }{
		{"0.0.0.0:8100 /config.json", wide},
		{"0.0.0.0:8100 /config.json mysecret --reload --log-level warning", wide},
		{"serve 0.0.0.0:8100 /config.json mysecret", wide},
		{"127.0.0.1:8100 my.json", "hint: write\n  dynmcp serve --http 127.0.0.1:8100 -c my.json\n"},
		{"localhost:8100 my.json mysecret --ignore-broken-tool", "hint: write\n  dynmcp serve --http localhost:8100 --token SECRET --ignore-broken-tool -c my.json\n"},
		{"0.0.0.0:8100 my.json --dump-tree", "hint: write\n  dynmcp --dump-tree -c my.json\n"},
		{"serve 0.0.0.0:8100", `unexpected argument "0.0.0.0:8100"`},
		{"0.0.0.0:8100", `unknown command "0.0.0.0:8100"`},
	} {
		stderr := fails(t, mcptest.HostOptions{Args: strings.Fields(c.line)})
		contains(t, stderr, c.want)
		lacks(t, stderr, "mysecret")
	}
	for _, level := range []string{"warning", "CRITICAL"} {
		out, _, code := dumpOf(t, broker(t, mcptest.NewLedger(t), ""), "--reload", "--log-level", level)
		contains(t, out, "tool /repo/read/get_file")
		if code != 0 {
			t.Errorf("%s: got exit status %d", level, code)
		}
	}
}

// The requests of pyMCPBroker's own examples, over HTTP, with its config file.
func TestExamplesOfTheBroker(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	web := serveHTTP(t, mcptest.Config(t, broker(t, ledger, "")), "-e", forgeEnv(t), "--token", "mysecret", "--reload")
	for _, c := range []struct{ path, body, want string }{
		{"/meta_tree", `{
  "path": "/"
}`, `{"path":"/repo","type":"node","summary":"Repositories"}`},
		{"/meta_desc", `{
  "path": "/repo/read/get_file"
}`, `"args_schema":`},
		{"/meta_call", `{
  "path": "/repo/read/get_file",
  "args": {
    "owner": "myorg",
    "repo": "demo-repo",
    "ref": "main",
    "filePath": "README.md"
  }
}`, `"content"`},
	} {
		status, _, text := web.send("POST", c.path, c.body, "Authorization", "Bearer mysecret")
		if status != 200 || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %d %s, want %s", c.path, status, text, c.want)
		}
	}
	if calls := ledger.Events(); !slices.ContainsFunc(calls, func(e string) bool { return strings.Contains(e, "get_file_contents") }) {
		t.Errorf("the server was not called by the tool's own name: %q", calls)
	}
}

// A broken tool is an error that names it, unless it is to be skipped.
func TestBrokenToolOfASource(t *testing.T) {
	t.Parallel()
	broken := strings.Replace(broker(t, mcptest.NewLedger(t), ""), ` -tool '{\"name\":\"get_issue\",\"inputSchema\":{\"type\":\"object\"}}'`, ` -tool '{\"name\":\"get_issue\",\"inputSchema\":5}'`, 1)
	what := `tool "get_issue" is broken: "inputSchema" is a number, want an object`
	out, stderr, code := dumpOf(t, broken)
	contains(t, stderr, what, "--ignore-broken-tool skips such tools")
	lacks(t, out, "tool /repo/read")
	if code != 1 {
		t.Errorf("got exit status %d", code)
	}
	out, stderr, code = dumpOf(t, broken, "--ignore-broken-tool")
	contains(t, stderr, "malformed and left out: tool \\\"get_issue\\\"")
	if want := "tool /repo/read/get_file: Read one file"; code != 0 || !strings.HasSuffix(out, want) {
		t.Errorf("exit status %d, got\n%s\nstderr %s", code, out, stderr)
	}

	host := mcptest.StartDynmcp(t, "-e", forgeEnv(t), "-c", mcptest.Config(t, broken))
	host.Initialize(handshake, nil)
	m := host.Tool("meta_tree", `{"path": "/repo/read"}`)
	contains(t, m.Text(), what, "--ignore-broken-tool")
	if !m.IsError() {
		t.Errorf("got %s", m.Raw)
	}
	host = mcptest.StartDynmcp(t, "-e", forgeEnv(t), "-c", mcptest.Config(t, broken), "--ignore-broken-tool")
	host.Initialize(handshake, nil)
	contains(t, host.Tool("meta_tree", `{"path": "/repo/read"}`).Text(), "/repo/read/get_file")
}

// Two tools with one path are an error that names both. An alias for an unknown tool is a
// warning.
func TestProblemsOfATree(t *testing.T) {
	t.Parallel()
	aliases := func(aliases string) string {
		return strings.Replace(broker(t, mcptest.NewLedger(t), ""), `{"get_file_contents": "get_file"}`, aliases, 1)
	}
	_, stderr, code := dumpOf(t, aliases(`{"get_file_contents": "get_issue"}`))
	contains(t, stderr, `tool "get_file_contents" has the alias "get_issue", which is another tool's name`)
	if code != 1 {
		t.Errorf("got exit status %d, stderr %s", code, stderr)
	}
	_, stderr, code = dumpOf(t, aliases(`{"get_lost": "found"}`))
	contains(t, stderr, `alias \"found\" is for tool \"get_lost\", which does not exist`)
	if code != 0 {
		t.Errorf("got exit status %d, stderr %s", code, stderr)
	}
	config := fmt.Sprintf(`{"mcp": {"forge": {"command": %s, "args": ["-bare", "-tools", "2"]}}, "expose": ["tree"],
		"tree": [{"path": "/x", "type": "node", "source": {"mcp": "forge", "path_aliases": {"tool_001": "tool_002"}}}]}`, quote(mcptest.Fake(t)))
	_, stderr, code = dumpOf(t, config)
	contains(t, stderr, `tree: /x/tool_002 is the path of tool "tool_001" of forge and tool "tool_002" of forge`)
	if code != 1 {
		t.Errorf("got exit status %d, stderr %s", code, stderr)
	}
}
