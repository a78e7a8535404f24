package main_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Hosts of the stateless era (MCP 2026-07-28): no handshake, every request says
// what its sender speaks and can do.

// era is the _meta of such a request, with further members at its end.
func era(more ...string) string {
	return `"_meta":{` + strings.Join(append([]string{
		`"io.modelcontextprotocol/protocolVersion":"` + stateless + `"`,
		`"io.modelcontextprotocol/clientCapabilities":{"sampling":{},"roots":{}}`,
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}`,
	}, more...), ",") + "}"
}

// modern are params of the stateless era with these members.
func modern(members ...string) string {
	return "{" + strings.Join(append(members, era()), ",") + "}"
}

// modernUse are the params of use_tool.
func modernUse(tool, input string, more ...string) json.RawMessage {
	return useParams(tool, input, append(more, era())...)
}

func TestDiscoverIntroducesAndStartsNothing(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	host := start(t, e, deferred(t, "later", "Later"))
	m := host.Call("server/discover", modern())
	for member, want := range map[string]string{
		"resultType": `"complete"`, "ttlMs": "0", "cacheScope": `"private"`, "capabilities": superset,
	} {
		if got := string(m.Member(member)); got != want {
			t.Errorf("%s: got %s, want %s", member, got, want)
		}
	}
	contains(t, string(m.Member("supportedVersions")), `"2026-07-28"`, `"2025-11-25"`)
	contains(t, string(m.Member("instructions")), "use_tool")
	contains(t, m.Raw, `"name":"dynmcp"`)
	host.Call("server/discover", modern())
	nothingStarted(t, e)
}

// TestBadRequestsOfTheStatelessEra sends the same to both planes.
func TestBadRequestsOfTheStatelessEra(t *testing.T) {
	t.Parallel()
	host := start(t, fake(t, "alpha"))
	host.Call("tools/list", modern())
	version := `"io.modelcontextprotocol/protocolVersion":`
	capabilities := `"io.modelcontextprotocol/clientCapabilities":{}`
	for _, c := range []struct {
		meta string
		code int
	}{
		{version + `"2026-07-28"`, -32602},
		{version + `"2026-07-28","io.modelcontextprotocol/clientCapabilities":7`, -32602},
		{version + `"2026-07-28",` + capabilities + `,"io.modelcontextprotocol/clientInfo":"me"`, -32602},
		{version + `"2099-01-01",` + capabilities, -32022},
	} {
		for method, member := range map[string]string{
			"tools/list":     ``,
			"tools/call":     `"name":"discover_tool",`,
			"resources/read": `"uri":"fake://alpha/text",`,
		} {
			m := host.Call(method, `{`+member+`"_meta":{`+c.meta+`}}`)
			if m.Code() != c.code {
				t.Errorf("%s with %s: got %s, want %d", method, c.meta, m.Raw, c.code)
			}
			if c.code == -32022 {
				contains(t, string(m.Data()), `"requested":"2099-01-01"`, `"2026-07-28"`)
			}
		}
	}
	if m := host.Call("resources/read", modern(`"uri":"nobody://"`)); m.Code() != -32602 {
		t.Errorf("an unknown resource: got %s", m.Raw)
	}
}

const subscription = "io.modelcontextprotocol/subscriptionId"

func TestListenTellsOfChangesUnderItsID(t *testing.T) {
	t.Parallel()
	host := start(t, fake(t, "alpha"))
	for _, list := range allLists {
		host.Call(list, modern())
	}
	tools := host.GoRaw(`"tööls"`, "subscriptions/listen", modern(`"notifications":{"toolsListChanged":true}`))
	host.GoRaw(`1007`, "subscriptions/listen", modern(`"notifications":{"promptsListChanged":true,"resourceSubscriptions":["fake://alpha/text"]}`))
	for _, id := range []string{`"tööls"`, `1007`} {
		host.WaitFor(func(m mcptest.Message) bool {
			return m.Method == "notifications/subscriptions/acknowledged" && string(m.Member("_meta", subscription)) == id
		})
	}
	host.Call("tools/call", modernUse("alpha/add_tool", `{"name":"new"}`))
	if m := host.WaitMethod(toolsChanged, 1); string(m.Member("_meta", subscription)) != `"tööls"` {
		t.Errorf("got %s", m.Raw)
	}
	host.Call("tools/call", modernUse("alpha/touch", `{"uri":"fake://alpha/text"}`))
	if m := host.WaitMethod("notifications/resources/updated", 1); string(m.Member("_meta", subscription)) != `1007` || string(m.Member("uri")) != `"fake://alpha/text"` {
		t.Errorf("got %s", m.Raw)
	}
	// A cancelled subscription gets nothing more: the change of tools would be announced
	// before that of prompts.
	host.Notify("notifications/cancelled", modern(`"requestId":"tööls"`))
	host.Call("tools/call", modernUse("alpha/add_tool", `{"name":"newer"}`))
	host.Call("tools/call", modernUse("alpha/add_prompt", `{"name":"new"}`))
	if m := host.WaitMethod(promptsChanged, 1); string(m.Member("_meta", subscription)) != `1007` {
		t.Errorf("got %s", m.Raw)
	}
	counts(t, host, toolsChanged, 1)
	if tools.Done() {
		t.Errorf("a cancelled subscription was answered: %q", host.Lines())
	}
}

func TestWithoutListenNothingIsTold(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	host := start(t, e)
	host.Call("tools/list", modern())
	fetched := e.Count("list tools")
	host.Call("tools/call", modernUse("alpha/add_tool", `{"name":"new"}`))
	e.WaitFor("list tools", fetched+1)
	host.GoRaw(`1001`, "subscriptions/listen", modern(`"notifications":{"promptsListChanged":true}`))
	host.WaitMethod("notifications/subscriptions/acknowledged", 1)
	host.Call("tools/call", modernUse("alpha/add_prompt", `{"name":"new"}`))
	host.WaitMethod(promptsChanged, 1)
	counts(t, host, toolsChanged, 0)
}

// TestQuestionForAStatelessHost has a server of the handshake era ask in the middle of
// a call.
func TestQuestionForAStatelessHost(t *testing.T) {
	t.Parallel()
	host := start(t, fake(t, "alpha"))
	const params, response = `{"messages":[],"n":9007199254740993}`, `{"role":"assistant","f":1.0}`
	input := ask("sampling/createMessage", params)
	m := host.Call("tools/call", modernUse("alpha/ask", input))
	contains(t, string(m.Result), `"resultType":"input_required"`, `{"question-1":{"method":"sampling/createMessage","params":`+params+`}}`)
	m = host.Call("tools/call", modernUse("alpha/ask", input,
		`"inputResponses":{"question-1":`+response+`}`, `"requestState":`+string(m.Member("requestState"))))
	if got := m.Text(); got != response {
		t.Errorf("got %s", m.Raw)
	}
	contains(t, host.Call("tools/call", modernUse("alpha/ask", ask("elicitation/create", `{}`))).Text(), "-32601", "supports elicitation")
	counts(t, host, "sampling/createMessage", 0)
}

// TestErasMeet has hosts of each era in front of servers of each.
func TestErasMeet(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"old", "new", "both"} {
		for _, host := range []string{handshake, "2024-11-05", stateless} {
			t.Run(fmt.Sprintf("%s host, %s server", host, server), func(t *testing.T) {
				t.Parallel()
				alpha := fake(t, "alpha", "-era", server)
				h := start(t, alpha)
				suffix := era()
				if host != stateless {
					if got := string(h.Initialize(host, nil).Member("protocolVersion")); got != quote(host) {
						t.Errorf("got version %s", got)
					}
					suffix = `"x":1`
				}
				list := h.Call("tools/list", "{"+suffix+"}")
				if got := names(list.Member("tools"), "name"); !slices.Equal(got, []string{"discover_tool", "use_tool"}) {
					t.Errorf("got %s", list.Raw)
				}
				m := h.Call("tools/call", useParams("alpha/echo", `{"n":9007199254740993}`, suffix))
				if m.Text() != `{"n":9007199254740993}` {
					t.Errorf("got %s", m.Raw)
				}
				if m := h.Call("resources/read", `{"uri":"fake://alpha/text",`+suffix+"}"); m.Error != nil {
					t.Errorf("got %s", m.Raw)
				}
				if server == "new" || server == "both" && host == stateless {
					alpha.WaitFor("listening", 1) // before, it has nowhere to say what changed
				}
				change(t, h, host == stateless, suffix)
			})
		}
	}
}

// change checks that the host is notified of a change.
func change(t *testing.T, h *mcptest.Host, listen bool, suffix string) {
	t.Helper()
	h.Call("prompts/list", "{"+suffix+"}")
	if listen {
		h.Go("subscriptions/listen", modern(`"notifications":{"promptsListChanged":true}`))
		h.WaitMethod("notifications/subscriptions/acknowledged", 1)
	}
	next := h.Count(promptsChanged) + 1
	h.Call("tools/call", useParams("alpha/add_prompt", `{"name":"new"}`, suffix))
	h.WaitMethod(promptsChanged, next)
	contains(t, h.Call("prompts/list", "{"+suffix+"}").Raw, `"new"`)
}
