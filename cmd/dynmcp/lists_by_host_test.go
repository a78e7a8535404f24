//go:build unix

package main_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// regarding is a server that lists a tool, a prompt and a resource of each kind only to clients
// that declare roots, sampling or elicitation.
func regarding(t *testing.T, args ...string) entry {
	for _, needs := range []string{"roots", "sampling", "elicitation", "url"} {
		name := "needs_" + needs
		args = append(args, "-tool", fmt.Sprintf(`{"name":%q,"description":"Asks for %s.","inputSchema":{"type":"object"}}`, name, needs),
			"-prompt", name, "-resource", "fake://x/"+name)
	}
	return fake(t, "choosy", append(args, "-resource", "fake://x/plain", "-prompt", "plain")...)
}

// hostsOfEachKind are the capabilities of hosts, and what of regarding they can use.
var hostsOfEachKind = map[string]string{
	`{}`:                            "",
	`{"roots":{}}`:                  "roots",
	`{"sampling":{}}`:               "sampling",
	`{"elicitation":{}}`:            "elicitation",
	`{"elicitation":{"url":{}}}`:    "elicitation url",
	`{"roots":{},"elicitation":{}}`: "roots elicitation",
	`{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}`: "roots sampling elicitation url",
}

// needed returns which of the entries for certain hosts a text names.
func needed(text string) string {
	var all []string
	for _, needs := range []string{"roots", "sampling", "elicitation", "url"} {
		if strings.Contains(text, "needs_"+needs) {
			all = append(all, needs)
		}
	}
	return strings.Join(all, " ")
}

// A host is listed what the server lists to a client with its capabilities, in each list and each
// text, though it shares the server with hosts that can do more. The next run knows that without
// connections for comparison.
func TestHostsAreListedWhatTheyCanUse(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"handshake": {"-regard", "late"}, "stateless": {"-regard", "now", "-era", "new"}, "both": {"-regard", "late", "-era", "both"},
	} {
		for _, surface := range []string{"direct", "discover"} {
			t.Run(name+", "+surface, func(t *testing.T) {
				t.Parallel()
				choosy := regarding(t, args...)
				config := mcptest.Config(t, document([]entry{choosy}, fmt.Sprintf(`"expose": [%q], "catalog": {"dir": %q}`, surface, t.TempDir())))
				socket := socketPath(t)
				first := serveOn(t, socket, config)
				for _, h := range declaring(t, socket) {
					for _, list := range []string{"tools", "prompts", "resources"} {
						mcptest.Eventually(t, h.what+": "+list, func() bool { return needed(h.ask(list+"/list", "").Raw) == h.usable })
					}
					h.check(surface)
				}
				first.Signal(syscall.SIGTERM)
				first.Wait()
				starts := choosy.Count("start")
				serveOn(t, socket, config)
				for _, h := range declaring(t, socket) {
					h.check(surface)
				}
				if starts = choosy.Count("start") - starts; starts > 2 { // for each era
					t.Errorf("it was started %d times in a run that knows its lists", starts)
				}
			})
		}
	}
}

// A declaringHost can answer only some questions of servers.
type declaringHost struct {
	t            *testing.T
	ask          func(method, params string) mcptest.Message // params are the members
	what, usable string
}

// declaring connects hosts of all kinds and of both eras to a run.
func declaring(t *testing.T, socket string) (hosts []declaringHost) {
	t.Helper()
	for _, declared := range slices.Sorted(maps.Keys(hostsOfEachKind)) {
		hosts = append(hosts, joinDeclaring(t, socket, handshake, declared), joinDeclaring(t, socket, stateless, declared))
	}
	return hosts
}

// joinDeclaring connects a host of an era with these capabilities.
func joinDeclaring(t *testing.T, socket, era, declared string) declaringHost {
	t.Helper()
	h := declaringHost{t: t, what: fmt.Sprintf("host of %s with %s", era, declared), usable: hostsOfEachKind[declared]}
	if era == handshake {
		conn, _ := joinAs(t, socket, declared, nil)
		h.ask = func(method, params string) mcptest.Message { return conn.Call(method, "{"+params+"}") }
		return h
	}
	to := mcptest.Talk(t, connection(t, socket), nil)
	h.ask = func(method, params string) mcptest.Message {
		if params != "" {
			params += ","
		}
		return to.Call(method, "{"+params+mcptest.ModernMeta(declared)+"}")
	}
	return h
}

// check checks every list and answer that shows entries of the server.
func (h declaringHost) check(surface string) {
	h.t.Helper()
	requests := map[string]string{"tools/list": "", "prompts/list": "", "resources/list": ""}
	called := `"name":"choosy__needs_sampling","arguments":{}`
	if surface == "discover" {
		requests["tools/call"] = `"name":"discover_tool","arguments":{"server":"choosy"}`
		called = `"name":"use_tool","arguments":{"tool_name":"choosy/needs_sampling","tool_input":{}}`
	}
	for method, params := range requests {
		if got := needed(h.ask(method, params).Raw); got != h.usable {
			h.t.Errorf("%s: %s shows what needs %q", h.what, method, got)
		}
	}
	m := h.ask("tools/call", called)
	if refused := m.Error != nil || m.IsError(); refused == slices.Contains(strings.Fields(h.usable), "sampling") {
		h.t.Errorf("%s: a call of what needs sampling: %s", h.what, m.Raw)
	}
}
