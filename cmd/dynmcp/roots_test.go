//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A rooted host has roots, and is of one of the eras.
type rooted struct {
	*mcptest.Conn
	t     *testing.T
	era   string
	root  atomic.Pointer[string]
	leave func()
}

func joinWithRoot(t *testing.T, socket, era, root string) *rooted {
	t.Helper()
	h := &rooted{t: t, era: era}
	h.root.Store(&root)
	if era == handshake {
		h.Conn, h.leave = joinAs(t, socket, `{"roots":{"listChanged":true}}`, mcptest.Handlers{"roots/list": func(json.RawMessage) (any, error) { return h.roots(), nil }})
		return h
	}
	conn := connection(t, socket)
	h.Conn, h.leave = mcptest.Talk(t, conn, nil), func() { conn.Close() }
	return h
}

func (h *rooted) roots() string {
	return fmt.Sprintf(`{"roots":[{"uri":"file://%s"}]}`, *h.root.Load())
}

// use calls a tool and answers the questions that a host of the stateless era gets for it.
func (h *rooted) use(tool, input string) mcptest.Message {
	h.t.Helper()
	if h.era == handshake {
		return call(h.Conn, tool, input)
	}
	meta := mcptest.ModernMeta(`{"roots":{}}`)
	m := h.Call("tools/call", useParams(tool, input, meta))
	for string(m.Member("resultType")) == `"input_required"` {
		var answers []string // a question of another call may come along
		for key := range wire.Members(m.Member("inputRequests")) {
			answers = append(answers, string(key)+":"+h.roots())
		}
		m = h.Call("tools/call", useParams(tool, input, meta, `"inputResponses":{`+strings.Join(answers, ",")+`}`, `"requestState":`+string(m.Member("requestState"))))
	}
	return m
}

// sees checks that the host's process was told its roots before any call, and no other roots.
// It returns the process id.
func (h *rooted) sees(others ...string) (pid string) {
	h.t.Helper()
	m := h.use("files/received", `{"n":100}`)
	narrowedTo(h.t, m, *h.root.Load(), others...)
	return h.use("files/pid", `{}`).Text()
}

func narrowedTo(t *testing.T, received mcptest.Message, root string, others ...string) {
	t.Helper()
	var lines []string
	if err := json.Unmarshal([]byte(received.Text()), &lines); err != nil {
		t.Fatalf("%v: %s", err, received.Raw)
	}
	told := false
	for _, line := range lines {
		m := mcptest.Parse(line)
		told = told || strings.Contains(string(m.Result), `"file://`+root+`"`)
		if m.Method == "tools/call" && !told {
			t.Errorf("a call came before the root %s: %q", root, lines)
		}
		lacks(t, string(m.Result), others...)
	}
}

// A server that asks for roots has one process for each set of roots in a shared run. Each
// host's process has its roots and no others, from the first call on.
func TestRootsNarrowAServerThatIsShared(t *testing.T) {
	t.Parallel()
	for _, load := range []string{"eager", "lazy"} {
		for name, era := range map[string]string{"handshake": handshake, "stateless": stateless} {
			t.Run(load+", "+name, func(t *testing.T) {
				t.Parallel()
				files := deferred(t, "files", "Files.", "-ask-roots").with("load", load)
				socket := socketPath(t)
				serveOn(t, socket, mcptest.Config(t, document([]entry{files})))
				a, b, c := joinWithRoot(t, socket, era, "/ra"), joinWithRoot(t, socket, era, "/rb"), joinWithRoot(t, socket, era, "/ra")
				ra, rb := a.sees("/rb"), b.sees("/ra")
				if ra == rb {
					t.Error("hosts of two sets of roots share a process")
				}
				if got := c.sees("/rb"); got != ra {
					t.Errorf("hosts of the same roots have the processes %s and %s", ra, got)
				}
				without, _ := joinAs(t, socket, `{}`, nil)
				if got := call(without, "files/pid", nil).Text(); got == ra || got == rb {
					t.Errorf("a host without roots has the process %s of one that has some", got)
				}
				if era == handshake {
					other := "/rc"
					a.root.Store(&other)
					a.Notify("notifications/roots/list_changed", nil)
					if got := a.sees("/ra", "/rb"); got == ra || got == rb {
						t.Errorf("after a change of its roots a host has the process %s", got)
					}
				}
				before := files.Count("exit")
				b.leave()
				files.WaitFor("exit", before+1)
				if got := c.sees("/rb"); got != ra {
					t.Errorf("when another had left a host has the process %s, and had %s", got, ra)
				}
			})
		}
	}
}

// The same over HTTP, with sessions and without, and for two users with the same roots.
func TestRootsNarrowAServerOfTheGateway(t *testing.T) {
	t.Parallel()
	files := deferred(t, "files", "Files.", "-ask-roots").with("max_sessions", 3)
	run := serveUsers(t, []entry{files})
	roots := func(root string) string { return `{"roots":[{"uri":"file://` + root + `"}]}` }
	pids := map[string]string{}
	for i, host := range []struct{ user, root string }{{"ann", "/ra"}, {"ann", "/rb"}, {"bob", "/ra"}} {
		c := run.client(host.user, "/mcp")
		c.Initialize(handshake, `{"roots":{}}`)
		question, m := asking(t, c, 50, "files/received", `{"n":100}`, roots(host.root), nil)
		if question.Method != "roots/list" {
			t.Errorf("host %d was asked %q", i, question.Method)
		}
		narrowedTo(t, m, host.root)
		pids[host.user+host.root] = pid(c, "files")
	}
	if pids["ann/ra"] == pids["ann/rb"] || pids["ann/ra"] == pids["bob/ra"] {
		t.Errorf("roots or users share a process: %v", pids)
	}
	c := run.client("ann", "/mcp")
	params := func(more string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"name":"use_tool","arguments":{"tool_name":"files/pid"}%s}}`, mcptest.ModernMeta(`{"roots":{}}`), more)
	}
	for header, value := range map[string]string{"Mcp-Protocol-Version": stateless, "Mcp-Method": "tools/call", "Mcp-Name": "use_tool"} {
		c.Header.Set(header, value)
	}
	m := c.Post(params("")).Last()
	contains(t, m.Raw, `"input_required"`, `"roots/list"`)
	m = c.Post(params(fmt.Sprintf(`,"inputResponses":{"question-1":%s},"requestState":%s`, roots("/rb"), m.Member("requestState")))).Last()
	if got := m.Text(); got != pids["ann/rb"] {
		t.Errorf("a request without session has the process %s of %v: %s", got, pids, m.Raw)
	}
	last := run.client("bob", "/mcp")
	last.Initialize(handshake, `{"roots":{}}`)
	_, m = asking(t, last, 51, "files/pid", `{}`, roots("/rc"), nil)
	contains(t, m.Text(), "each set of roots has a server of its own, and there are 3", "not_sent", "max_sessions")
}

// A host of the SDK answers as well: go-sdk v1.8.0 fails on questions without params.
func TestTypedHostIsAskedForItsRoots(t *testing.T) {
	t.Parallel()
	command := exec.Command(mcptest.Dynmcp(t), "--log-level", "error", "-c", mcptest.Config(t, document([]entry{fake(t, "alpha")})))
	command.Env = mcptest.Environ(t)
	client := mcp.NewClient(&mcp.Implementation{Name: "typed", Version: "1"}, nil)
	//lint:ignore SA1019 hosts have roots until all have migrated
	client.AddRoots(&mcp.Root{URI: "file:///of/the/host"})
	host, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: command}, &mcp.ClientSessionOptions{ProtocolVersion: stateless})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	result, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: "use_tool", Arguments: json.RawMessage(`{"tool_name":"alpha/ask","tool_input":{"method":"roots/list"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(text), "file:///of/the/host")
}

// While several hosts of a user have calls in flight, a question goes to the host that can
// answer it.
func TestQuestionFindsItsHostWhileOthersCall(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	socket := socketPath(t)
	serveOn(t, socket, mcptest.Config(t, document([]entry{e})))
	able, _ := joinAs(t, socket, `{"elicitation":{}}`, mcptest.Handlers{"elicitation/create": func(json.RawMessage) (any, error) {
		return `{"action":"accept","content":{}}`, nil
	}})
	busy, _ := joinAs(t, socket, `{}`, nil)
	busy.Go("tools/call", useParams("alpha/sleep", `{"ms":600000}`))
	e.WaitFor("call sleep", 1)
	for range 3 {
		contains(t, call(able, "alpha/ask", ask("elicitation/create", `{"message":"?"}`)).Text(), "accept")
	}
	counts(t, &mcptest.Host{Conn: busy}, "elicitation/create", 0)
}

// At the gateway a server that speaks both eras has a connection for each era of its hosts,
// unless it must run once. It may be eager or lazy.
func TestServerOfBothErasIsReachedInEach(t *testing.T) {
	t.Parallel()
	for _, load := range []string{"eager", "lazy"} {
		for _, place := range []string{"", "one"} {
			t.Run(load+", place "+place, func(t *testing.T) {
				t.Parallel()
				e := deferred(t, "alpha", "It speaks both.", "-era", "both").with("load", load)
				if place != "" {
					e = e.with("place", place)
				}
				socket := socketPath(t)
				serveOn(t, socket, mcptest.Config(t, document([]entry{e, fake(t, "old")})))
				first, _ := joinAs(t, socket, `{"sampling":{}}`, nil)
				conn := connection(t, socket)
				modern := mcptest.Talk(t, conn, nil)
				t.Cleanup(func() { conn.Close() })
				meta := mcptest.ModernMeta(`{"elicitation":{}}`)
				pids, said := map[string]bool{}, map[string]string{}
				for range 2 {
					for era, use := range map[string]func(tool string) mcptest.Message{
						"handshake": func(tool string) mcptest.Message { return call(first, tool, `{"n":100}`) },
						"stateless": func(tool string) mcptest.Message {
							return modern.Call("tools/call", useParams(tool, `{"n":100}`, meta))
						},
					} {
						pids[use("alpha/pid").Text()] = true
						said[era] = use("alpha/received").Text()
						use("old/pid")
					}
				}
				contains(t, said["stateless"], `\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}`)
				lacks(t, said["stateless"], `\"method\":\"initialize\"`)
				if place == "one" {
					if len(pids) != 1 {
						t.Errorf("one server is the processes %v", pids)
					}
					return
				}
				contains(t, said["handshake"], `\"method\":\"initialize\"`)
				lacks(t, said["handshake"], "clientCapabilities")
				if len(pids) != 2 {
					t.Errorf("two eras have the processes %v", pids)
				}
			})
		}
	}
}
