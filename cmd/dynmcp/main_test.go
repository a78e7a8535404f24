package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The tests of this package see what a user sees: they run the built program
// with real servers behind it and talk to it over its pipes.

func TestMain(m *testing.M) { mcptest.Main(m) }

// The protocol versions that hosts speak here: the newest with a handshake, and
// the first without.
const (
	handshake = "2025-11-25"
	stateless = "2026-07-28"
)

// hello is the params of initialize.
const hello = `{"protocolVersion":"` + handshake + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`

// helloOf is hello of a host of this name.
func helloOf(name string) string { return strings.Replace(hello, `"t"`, quote(name), 1) }

// An entry is one server of a config, with the ledger of the fake behind it.
type entry struct {
	mcptest.Ledger
	name   string
	fields map[string]any
}

// fake is a stdio entry, started at once, for a fakemcp with these arguments.
func fake(t *testing.T, name string, args ...string) entry {
	ledger := mcptest.NewLedger(t)
	args = append([]string{"-name", name, "-ledger", ledger.Path}, args...)
	return entry{ledger, name, map[string]any{"command": mcptest.Fake(t), "args": args}}
}

// deferred is a stdio entry that is started when it is first needed.
func deferred(t *testing.T, name, description string, args ...string) entry {
	return fake(t, name, args...).with("description", description)
}

// with is the entry with another field.
func (e entry) with(field string, value any) entry {
	e.fields = maps.Clone(e.fields)
	e.fields[field] = value
	return e
}

// document is a config of these entries, in this order. Further members, as "name":value,
// come first. Lists wait up to a minute for servers that start, so that a slow machine
// changes nothing that a test sees.
func document(entries []entry, more ...string) string {
	var servers []string
	for _, e := range entries {
		servers = append(servers, fmt.Sprintf("%q: %s", e.name, mcptest.Raw(e.fields)))
	}
	if !strings.Contains(strings.Join(more, ""), `"startup_wait"`) {
		more = append(more, `"startup_wait": "60s"`)
	}
	return "{" + strings.Join(append(more, `"mcp": {`+strings.Join(servers, ",\n")+"}"), ",\n") + "}"
}

// start runs dynmcp on a config of these entries and does not greet it.
func start(t *testing.T, entries ...entry) *mcptest.Host {
	t.Helper()
	return mcptest.StartDynmcp(t, "-c", mcptest.Config(t, document(entries)))
}

// serve is start, a handshake, and a request for every list. All eager servers are known
// then, and notifications that follow are about later changes.
func serve(t *testing.T, entries ...entry) *mcptest.Host {
	t.Helper()
	host := start(t, entries...)
	greet(host)
	return host
}

var allLists = []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"}

func greet(host *mcptest.Host) {
	host.Initialize(handshake, nil)
	for _, list := range allLists {
		host.Call(list, nil)
	}
}

// wrap runs dynmcp in front of one fake and greets it.
func wrap(t *testing.T, args ...string) *mcptest.Host {
	t.Helper()
	host := mcptest.StartDynmcp(t, append([]string{"--", mcptest.Fake(t)}, args...)...)
	greet(host)
	return host
}

// use calls an upstream's tool. A nil input is left out.
func use(host *mcptest.Host, tool string, input any) mcptest.Message {
	return host.Call("tools/call", useParams(tool, input))
}

// checkEcho checks that a tool echo answers with its input.
func checkEcho(t *testing.T, host *mcptest.Host, tool, input string) {
	t.Helper()
	if m := use(host, tool, input); m.Text() != input {
		t.Errorf("%s %.300s: got %.1000s", tool, input, m.Raw)
	}
}

// useParams are the params of a tools/call of use_tool, with further members.
func useParams(tool string, input any, more ...string) json.RawMessage {
	arguments := fmt.Sprintf(`{"tool_name":%s`, quote(tool))
	if input != nil {
		arguments += fmt.Sprintf(`,"tool_input":%s`, mcptest.Raw(input))
	}
	return mcptest.ToolParams("use_tool", arguments+"}", more...)
}

// load calls load_mcp.
func load(host *mcptest.Host, server string) mcptest.Message {
	return host.Tool("load_mcp", loadArguments(server))
}

func loadArguments(server string) string { return fmt.Sprintf(`{"mcp_name":%s}`, quote(server)) }

func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // not reached: every string can be encoded
	}
	return string(raw)
}

// names are the members called key of the objects in a JSON array.
func names(array json.RawMessage, key string) []string {
	var objects []map[string]json.RawMessage
	_ = json.Unmarshal(array, &objects) // anything else has no names
	list := []string{}
	for _, o := range objects {
		var name string
		_ = json.Unmarshal(o[key], &name)
		list = append(list, name)
	}
	return list
}

// tools are the tools that the host sees.
func tools(host *mcptest.Host) []string {
	return names(host.Call("tools/list", nil).Member("tools"), "name")
}

// catalogue is the description of discover_tool as the host reads it now.
func catalogue(t *testing.T, host *mcptest.Host) string {
	t.Helper()
	return definition(t, host, "discover_tool").Description
}

type toolDefinition struct {
	Name        string
	Description string
	InputSchema json.RawMessage
	Meta        json.RawMessage `json:"_meta"`
}

// definition is a tool of tools/list.
func definition(t *testing.T, host *mcptest.Host, name string) toolDefinition {
	t.Helper()
	var all []toolDefinition
	list := host.Call("tools/list", nil)
	if err := json.Unmarshal(list.Member("tools"), &all); err != nil {
		t.Fatalf("tools/list: %v in %s", err, list.Raw)
	}
	for _, d := range all {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("no tool %s in %s", name, list.Raw)
	return toolDefinition{}
}

// block returns the text between <name> and </name>, "" if there is no such block.
func block(text, name string) string {
	_, text, _ = strings.Cut(text, "<"+name+">\n")
	inside, _, ok := strings.Cut(text, "</"+name+">")
	if !ok {
		return ""
	}
	return inside
}

// contains fails the test for every part that is not in text.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// lacks fails the test for every part that is in text.
func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q is in\n%s", part, text)
		}
	}
}

// settle returns when dynmcp has announced every change so far. Changes are announced in
// order: it adds a prompt to a loaded server, and waits for that announcement. If other
// prompts may have changed, wait for that first: the announcements look the same.
func settle(t *testing.T, host *mcptest.Host, server string) {
	t.Helper()
	before := host.Count(promptsChanged)
	tool := "add_prompt"
	if server != "" {
		tool = server + "/" + tool
	}
	if m := use(host, tool, fmt.Sprintf(`{"name":"settle-%d"}`, before)); m.IsError() {
		t.Fatalf("settle: %s", m.Raw)
	}
	host.WaitMethod(promptsChanged, before+1)
}

// leaves waits for the end of a process, which must have the exit status 0.
func leaves(t *testing.T, p interface {
	Wait() int
	Stderr() string
}) {
	t.Helper()
	if code := p.Wait(); code != 0 {
		t.Errorf("got exit status %d, want 0\n%s", code, p.Stderr())
	}
}

// end ends dynmcp as a host does.
func end(t *testing.T, host *mcptest.Host) {
	t.Helper()
	host.CloseStdin()
	leaves(t, host)
}

// runVerb runs a verb that must end with this status, and returns what it prints.
func runVerb(t *testing.T, env []string, status int, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), mcptest.Dynmcp(t), args...)
	cmd.Env = env
	out, _ := cmd.CombinedOutput() // the exit status is looked at
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("%q: got exit status %d, want %d\n%s", args, got, status, out)
	}
	return string(out)
}

// writeFile writes a file below dir, and the directories that it is in. It returns its path.
func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	return writeMode(t, dir, name, text, 0o600)
}

// writeProgram is writeFile for a file that can be executed.
func writeProgram(t *testing.T, dir, name, text string) string {
	t.Helper()
	return writeMode(t, dir, name, text, 0o755)
}

func writeMode(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
	return path
}
