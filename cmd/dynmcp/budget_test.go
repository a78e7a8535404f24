package main_test

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Servers that fail to start: how often they are tried, what the model reads, and when they
// are given up.

func TestServerThatAlwaysFailsIsEvicted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ fault, says string }{
		"connecting":   {"exit-now", "exited with status 7"},
		"handshake":    {"fail-init", "refused as asked"},
		"listing":      {"fail-list:tools", "tools/list: refused as asked"},
		"garbage":      {"list-null:tools", "not an array"},
		"cursor loop":  {"cursor-loop", "the same cursor came twice"},
		"bad version":  {"bad-version", "2099-01-01"},
		"exit on list": {"exit-on-list", "exited with status 4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := deferred(t, "bad", "Broken", "-fault", c.fault)
			evicted(t, e, c.says)
			if e.Count("start") != 3 {
				t.Errorf("started %d times, want 3", e.Count("start"))
			}
		})
	}
	t.Run("command not there", func(t *testing.T) {
		t.Parallel()
		evicted(t, entry{name: "bad", fields: map[string]any{"command": "no-such-command-anywhere", "description": "Broken"}}, "no-such-command-anywhere")
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		evicted(t, entry{name: "bad", fields: map[string]any{"url": nobodyListens(t), "description": "Broken"}}, "refused")
	})
}

// evicted loads bad until it is given up.
func evicted(t *testing.T, bad entry, says string) {
	t.Helper()
	host := serve(t, bad, fake(t, "now"), deferred(t, "other", "Still there"))
	told := mark(t, host)
	for n := range 3 {
		contains(t, block(catalogue(t, host), "mcp_servers"), "- bad: Broken")
		m := load(host, "bad")
		if !m.IsError() || m.Error != nil {
			t.Errorf("got %s", m.Raw)
		}
		contains(t, m.Text(), says)
		if last := n == 2; last {
			contains(t, m.Text(), "after 3 attempts", "will no longer be offered")
			lacks(t, m.Text(), "the next call tries again")
		} else {
			lacks(t, m.Text(), "attempts", "no longer")
		}
	}
	settle(t, host, "now")
	told(toolsChanged, 1)
	if got := block(catalogue(t, host), "mcp_servers"); got != "- other: Still there\n" {
		t.Errorf("got <mcp_servers> %q", got)
	}
	m := load(host, "bad")
	contains(t, m.Text(), "Unknown server: bad", "other", "bad was given up after 3 failures, because ", says, "offered again after dynmcp's config is reloaded")
	lacks(t, m.Text(), "retry") // which a model would take for an invitation
	contains(t, use(host, "bad/echo", nil).Text(), "Unknown tool: bad/echo", "bad was given up after 3 failures")
	if !m.IsError() {
		t.Errorf("got %s", m.Raw)
	}
}

func TestGivenUpServerIsTriedAgainWhenAskedTo(t *testing.T) {
	t.Parallel()
	e := deferred(t, "bad", "Broken", "-fault", "fail-first:3")
	host := serve(t, e)
	for range 3 {
		load(host, "bad")
	}
	contains(t, load(host, "bad").Text(), "given up after 3 failures")
	again := func() mcptest.Message {
		return host.Tool("load_mcp", `{"mcp_name":"bad","retry":true}`)
	}
	contains(t, again().Text(), "bad/echo")
	contains(t, catalogue(t, host), "- bad/echo")
	checkEcho(t, host, "bad/echo", `{"n":1}`)
}

func TestHangingStartEndsAtItsTimeout(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"hang-init", "hang-list:tools"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			e := deferred(t, "slow", "Slow", "-fault", fault).with("load_timeout", "2s")
			host := serve(t, e)
			m := load(host, "slow")
			contains(t, m.Text(), "slow: ", "load_timeout", "not_sent")
			if !m.IsError() {
				t.Errorf("got %s", m.Raw)
			}
			e.WaitFor("exit", 1)
			contains(t, block(catalogue(t, host), "mcp_servers"), "- slow: Slow")
		})
	}
}
