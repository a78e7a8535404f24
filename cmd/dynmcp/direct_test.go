package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
)

// corpus is the directory of real catalogues beside the repository.
const corpus = "../../../shared/corpus/servers"

// realListings returns the listings of real servers by name, with made-up ones up to the same
// number where they are not there.
func realListings(t *testing.T) map[string]*catalog.Listing {
	t.Helper()
	all := map[string]*catalog.Listing{}
	files, _ := filepath.Glob(filepath.Join(corpus, "*.json"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var l struct {
			Tools                    json.RawMessage
			Capabilities, ServerInfo json.RawMessage
			Instructions             string
		}
		if err := json.Unmarshal(data, &l); err != nil {
			t.Fatal(err)
		}
		listing := &catalog.Listing{Protocol: handshake, Capabilities: l.Capabilities, Info: l.ServerInfo, Instructions: l.Instructions}
		if err := json.Unmarshal(l.Tools, &listing.Tools); err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = listing
	}
	for i := range 38 - len(all) {
		l := &catalog.Listing{Protocol: handshake, Capabilities: json.RawMessage(`{"tools":{}}`)}
		for j := range 34 {
			l.Tools = append(l.Tools, json.RawMessage(fmt.Sprintf(`{"name":"tool_%d","description":"Does %d.","inputSchema":{"type":"object"}}`, j, j)))
		}
		all[fmt.Sprintf("made-up-%d", i)] = l
	}
	return all
}

// Claude Code 2.1.330 makes its requests, in its order, behind dynmcp install claude-code
// --direct, with 38 servers that were not started in this run.
func TestClaudeCodeSeesAllToolsAndNothingRuns(t *testing.T) {
	t.Parallel()
	listings := realListings(t)
	ledger := mcptest.NewLedger(t)
	var entries []entry
	total := 0
	names := []string{}
	for name, l := range listings {
		names = append(names, name)
		c := catalog.New() // which leaves out what no host takes
		c.Declare([]catalog.Server{{Name: name}})
		c.Put(name, c.Index(name, l))
		total += len(c.View().Tools())
	}
	slices.Sort(names)
	called := names[0] // the one that is used lists the same when it is started
	for _, name := range names {
		args := []string{"-name", name, "-ledger", ledger.Path}
		if name == called {
			args = append(args, "-bare")
			for _, tool := range listings[name].Tools {
				args = append(args, "-tool", string(tool))
			}
		}
		entries = append(entries, entry{ledger, name, map[string]any{"command": mcptest.Fake(t), "args": args, "description": "A server: " + name}})
	}
	m := remembering(t, entries)
	cfg, err := schema.ReadFiles(context.Background(), []string{m.config}, schema.LoadOptions{}).Load()
	if err != nil {
		t.Fatal(err)
	}
	kept := store.Of(cfg, "")
	for _, s := range cfg.Servers {
		if err := kept.Keep(s, listings[s.Name]); err != nil {
			t.Fatal(err)
		}
	}

	host := m.run("--expose", "direct")
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"claude-code","title":"Claude Code","version":"2.1.330"},"io.modelcontextprotocol/clientCapabilities":{"roots":{},"elicitation":{}}}`
	host.Call("server/discover", "{"+meta+"}")
	tools := host.Call("tools/list", "{"+meta+"}").Member("tools")
	listen := host.Go("subscriptions/listen", "{"+meta+`,"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`)
	host.WaitMethod("notifications/subscriptions/acknowledged", 1)
	host.Call("prompts/list", "{"+meta+"}")
	host.Call("resources/list", "{"+meta+"}")

	var listed []struct{ Name string }
	if err := json.Unmarshal(tools, &listed); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	fits := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	for _, tool := range listed {
		if seen[tool.Name] || !fits.MatchString(tool.Name) {
			t.Errorf("tool %q", tool.Name)
		}
		seen[tool.Name] = true
	}
	if len(listed) != total {
		t.Errorf("%d tools are listed, of %d", len(listed), total)
	}
	t.Logf("%d servers, %d tools, %d bytes", len(names), len(listed), len(tools))
	if n := ledger.Count("start"); n != 0 {
		t.Errorf("%d servers were started to list them", n)
	}

	first := strings.Split(listed[0].Name, "__")[0]
	if first != called {
		t.Fatalf("the first tool is of %s", first)
	}
	got := host.Call("tools/call", fmt.Sprintf(`{%s,"name":%q,"arguments":{"n":1}}`, meta, listed[0].Name))
	if got.Text() != `{"n":1}` {
		t.Errorf("got %s", got.Raw)
	}
	if n := ledger.Count("start"); n != 1 {
		t.Errorf("%d servers were started for a call", n)
	}
	if again := host.Call("tools/list", "{"+meta+"}").Member("tools"); string(again) != string(tools) {
		t.Error("the list is another after a call")
	}
	if n := host.Count(toolsChanged); n != 0 || listen.Done() {
		t.Errorf("%d announcements", n)
	}
}

// A host of the surface direct gets the instructions of stored servers, although they do not
// run.
func TestDirectHasTheInstructionsOfServersThatDoNotRun(t *testing.T) {
	t.Parallel()
	long := deferred(t, "long", "Says much", "-instructions", strings.Repeat("Much to say. ", 300))
	brief := deferred(t, "brief", "Says little", "-instructions", "Call echo first.")
	m := remembering(t, []entry{long, brief, fake(t, "mute")})
	m.learn("long", "brief")
	starts := long.Count("start") + brief.Count("start")

	host := m.run("--expose", "direct")
	var text string
	if err := json.Unmarshal(host.Initialize(handshake, nil).Member("instructions"), &text); err != nil {
		t.Fatal(err)
	}
	contains(t, text, "## long\nMuch to say.", "[cut]", "## brief\nCall echo first.")
	if n := display.Units(text); n > 2048 || n < 2000 {
		t.Errorf("got %d characters, of which hosts keep 2,048", n)
	}
	if n := long.Count("start") + brief.Count("start") - starts; n != 0 {
		t.Errorf("they were started %d times to be shown", n)
	}
}
