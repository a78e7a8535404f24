package main_test

import (
	"path/filepath"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Lists of tools that do not change during a session.

// greetAs is greet for a host of this name.
func greetAs(host *mcptest.Host, name string) {
	host.Call("initialize", helloOf(name))
	host.Notify("notifications/initialized", nil)
	for _, list := range allLists {
		host.Call(list, nil)
	}
}

func TestListThatStays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, host, stable string
		stays              bool
	}{
		{"Claude Code", "claude-code", "auto", true},
		{"Codex", "codex-mcp-client", "auto", true},
		{"another host", "some-host", "auto", false},
		{"on", "some-host", "on", true},
		{"off", "claude-code", "off", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			entries := []entry{fake(t, "alpha"), deferred(t, "beta", "B"), deferred(t, "gamma", "C"), deferred(t, "delta", "D").with("load", "lazy")}
			config := mcptest.Config(t, document(entries, `"catalog": {"dir": "", "stable": `+quote(test.stable)+`}`))
			host := mcptest.StartDynmcp(t, "-c", config)
			greetAs(host, test.host)
			before := string(host.Call("tools/list", nil).Raw)
			contains(t, before, "alpha/echo", "- beta: B")
			for _, server := range []string{"beta", "gamma", "delta"} {
				contains(t, load(host, server).Text(), server+"/echo")
			}
			if !test.stays {
				host.WaitMethod(toolsChanged, 1)
				contains(t, block(catalogue(t, host), "tools"), "beta (B): ")
				return
			}
			settle(t, host, "alpha")
			after := host.Call("tools/list", nil)
			if got := after.Member("tools"); string(got) != string(mcptest.Parse(before).Member("tools")) {
				t.Errorf("the list was\n%s\nand is\n%s", before, got)
			}
			if n := host.Count(toolsChanged); n != 0 {
				t.Errorf("%d announcements", n)
			}
			contains(t, discover(host, `{"query":"echo"}`).Text(), "beta/echo") // answers know what was loaded
			checkEcho(t, host, "gamma/echo", `{"n":1}`)
		})
	}
}

// A new config makes a new list, which is announced.
func TestListThatStaysFollowsTheConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	beta, gamma := deferred(t, "beta", "B"), deferred(t, "gamma", "C")
	stored := filepath.Join(dir, "catalog")
	path := writeFile(t, dir, "mcp.json", document([]entry{beta}, `"catalog": {"dir": `+quote(stored)+`}`))
	host := mcptest.StartDynmcp(t, "-c", path)
	greetAs(host, "claude-code")
	contains(t, load(host, "beta").Text(), "beta/echo")
	mcptest.Soon(t, "what beta lists is stored", func() bool {
		files, _ := filepath.Glob(filepath.Join(stored, "*.listing"))
		return len(files) > 0
	})
	writeFile(t, dir, "mcp.json", document([]entry{beta, gamma}, `"catalog": {"dir": `+quote(stored)+`}`))
	host.WaitMethod(toolsChanged, 1)
	contains(t, catalogue(t, host), "<mcp_servers>\n- beta: B\n- gamma: C *\n</mcp_servers>")
}

// The direct list of stored servers is the same before and after they start.
func TestDirectListThatStays(t *testing.T) {
	t.Parallel()
	alpha, beta := deferred(t, "alpha", "A"), deferred(t, "beta", "B")
	m := remembering(t, []entry{alpha, beta}, `"expose": ["direct"]`)
	m.verb("warm")
	starts := alpha.Count("start") + beta.Count("start")
	host := m.run()
	greetAs(host, "claude-code")
	before := string(host.Call("tools/list", nil).Member("tools"))
	contains(t, before, `"alpha__echo"`, `"beta__echo"`)
	if n := alpha.Count("start") + beta.Count("start") - starts; n != 0 {
		t.Errorf("%d servers were started to list them", n)
	}
	for _, tool := range []string{"alpha__echo", "beta__echo"} {
		if got := host.Tool(tool, `{"n":1}`).Text(); got != `{"n":1}` {
			t.Errorf("got %s", got)
		}
	}
	if after := string(host.Call("tools/list", nil).Member("tools")); after != before {
		t.Errorf("the list was\n%s\nand is\n%s", before, after)
	}
	if n := host.Count(toolsChanged); n != 0 {
		t.Errorf("%d announcements", n)
	}
}
