//go:build unix

package main_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// What servers say unasked: progress, log messages, changes of their lists.

func TestBurstOfChangesIsOneAnnouncement(t *testing.T) {
	t.Parallel()
	const burst = 10_000
	alpha := fake(t, "alpha")
	host := serve(t, alpha)
	told := mark(t, host)
	fetched := alpha.Count("list tools")
	use(host, "alpha/add_tool", `{"name":"aardvark"}`)
	use(host, "alpha/fault", fmt.Sprintf(`{"mode":"flood-lc:%d"}`, burst))
	settle(t, host, "alpha")
	told(toolsChanged, 1)
	contains(t, catalogue(t, host), "alpha/aardvark")
	if got := alpha.Count("list tools") - fetched; got > burst/100 { // three; more where the machine is so slow that it is no burst
		t.Errorf("%d changes were fetched %d times", burst, got)
	}
}

func TestFloodOfOneServerDelaysNoOther(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "noisy"), fake(t, "quiet"))
	flood := host.Go("tools/call", useParams("noisy/fault", `{"mode":"flood:20000"}`))
	for range 20 {
		if got := use(host, "quiet/echo", `{}`).Text(); got != "{}" {
			t.Fatalf("got %s", got)
		}
	}
	if m := flood.Wait(); m.IsError() {
		t.Errorf("got %s", m.Raw)
	}
}

// A flooded is a host that counts the notifications it receives.
type flooded struct {
	call   func(tool, input string) mcptest.Message
	ask    func(method, params string) mcptest.Message
	heard  func(method string) int
	dynmcp *mcptest.Process
}

func floodedConn(host *mcptest.Conn, dynmcp *mcptest.Process) flooded {
	return flooded{
		dynmcp: dynmcp,
		call: func(tool, input string) mcptest.Message {
			return host.Call("tools/call", useParams(tool, input, `"_meta":{"progressToken":1}`))
		},
		ask:   func(method, params string) mcptest.Message { return host.Call(method, params) },
		heard: host.Count,
	}
}

// floodedClient counts what comes on its stream and with the answers to its calls.
func floodedClient(t *testing.T, at *webHost) flooded {
	c := mcptest.NewClient(t, at.url+"/mcp")
	c.Initialize(handshake, nil)
	var mu sync.Mutex
	count := map[string]int{}
	events, _ := c.Listen()
	go func() {
		for m := range events {
			mu.Lock()
			count[m.Method]++
			mu.Unlock()
		}
	}()
	return flooded{
		dynmcp: at.dynmcp,
		call: func(tool, input string) mcptest.Message {
			r := c.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":%s}`, rand.Text(), useParams(tool, input, `"_meta":{"progressToken":1}`)))
			mu.Lock()
			defer mu.Unlock()
			for _, m := range r.Messages {
				count[m.Method]++
			}
			return r.Last()
		},
		ask: func(method, params string) mcptest.Message { return c.Call(method, params) },
		heard: func(method string) int {
			mu.Lock()
			defer mu.Unlock()
			return count[method]
		},
	}
}

// documentedNotifications are the notifications in the table of docs/protocol.md.
func documentedNotifications(t *testing.T) (methods []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| from a server | goes to |")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			methods = append(methods, strings.TrimPrefix(name[1], "…"))
		}
	}
	if len(methods) < 8 {
		t.Fatalf("the table has %q only", methods)
	}
	return methods
}

// A flood of notifications of any kind, over any connection, delays no other server's calls,
// and hosts receive what docs/protocol.md says of that kind.
func TestFloodsOfEachKind(t *testing.T) {
	t.Parallel()
	const (
		many    = 5000
		limited = -1 // 1,000, and 500 a second
	)
	kinds := []struct {
		method, params string
		least, most    int // that are heard
	}{
		{"notifications/resources/updated", `{"uri":"fake://noisy/blob"}`, 0, 0}, // nobody subscribed to it
		{"notifications/resources/updated", `{}`, 0, 0},
		{"notifications/resources/updated", `{"uri":"fake://noisy/text"}`, 1, many / 10},
		{"notifications/tasks/status", `{"taskId":"t","status":"working"}`, 1, many / 10},
		{"notifications/tasks", `{"taskId":"t","status":"working"}`, 0, many / 10}, // where a host follows it
		{"notifications/elicitation/complete", `{"elicitationId":"e"}`, 1, many / 10},
		{toolsChanged, `{}`, 0, 0}, // nothing has changed
		{promptsChanged, `{}`, 0, 0},
		{resourcesChanged, `{}`, 0, 0},
		{"notifications/cancelled", `{"requestId":7}`, 0, 0},
		{"notifications/progress", `{"progressToken":"nobody's","progress":1}`, 0, 0},
		{"notifications/message", `{"level":"error","data":"flood"}`, 1, limited},
		{"notifications/x-vendor", `{"data":"flood"}`, 1, limited},
		{"x-vendor/list_changed", `{}`, 1, limited},
		{"notifications/roots/list_changed", `{}`, 0, 0},
		{"notifications/initialized", `{}`, 0, 0},
		{"notifications/dynmcp/ready", `{"version":"0.0.1","pid":1}`, 0, 0},
		{"notifications/dynmcp/ended", `{}`, 0, 0},
	}
	var methods []string
	for _, kind := range kinds {
		methods = append(methods, strings.TrimPrefix(kind.method, "notifications/"))
	}
	for _, documented := range documentedNotifications(t) {
		documented = strings.TrimSuffix(documented, "…")
		if !slices.ContainsFunc(methods, func(method string) bool { return strings.HasPrefix(method, documented) }) {
			t.Errorf("no flood is of %s, which docs/protocol.md has", documented)
		}
	}
	for way, open := range map[string]func(t *testing.T, config string) flooded{
		"stdio": func(t *testing.T, config string) flooded {
			host := mcptest.StartDynmcp(t, "-c", config)
			greet(host)
			return floodedConn(host.Conn, host.Process)
		},
		"socket": func(t *testing.T, config string) flooded {
			socket := socketPath(t)
			dynmcp := serveOn(t, socket, config)
			host, _ := joinAs(t, socket, "{}", nil)
			return floodedConn(host, dynmcp)
		},
		"HTTP": func(t *testing.T, config string) flooded { return floodedClient(t, serveHTTP(t, config)) },
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			host := open(t, mcptest.Config(t, document([]entry{fake(t, "noisy"), fake(t, "quiet")})))
			host.ask("resources/list", `{}`)
			if m := host.ask("resources/subscribe", `{"uri":"fake://noisy/text"}`); m.Error != nil {
				t.Fatalf("got %s", m.Raw)
			}
			for _, kind := range kinds {
				if way == "HTTP" && kind.method == "notifications/tasks/status" {
					kind.least, kind.most = 0, 0 // it is no task of this user's
				}
				began := time.Now()
				before, over := host.heard(kind.method), make(chan mcptest.Message, 1)
				go func() {
					over <- host.call("noisy/notify", fmt.Sprintf(`{"method":%q,"params":%s,"times":%d}`, kind.method, kind.params, many))
				}()
				for range 10 {
					if got := host.call("quiet/echo", `{}`).Text(); got != "{}" {
						t.Fatalf("%s: the other server answered %s", kind.method, got)
					}
				}
				if m := <-over; m.IsError() {
					t.Fatalf("%s: got %s", kind.method, m.Raw)
				}
				if kind.least > 0 {
					mcptest.Eventually(t, kind.method+" is heard", func() bool { return host.heard(kind.method) >= before+kind.least })
				}
				got := host.heard(kind.method) - before
				if kind.most == limited {
					kind.most = 1000 + int(500*time.Since(began).Seconds())
				}
				if got > kind.most {
					t.Errorf("%s %s was heard %d times, want %d at most", kind.method, kind.params, got, kind.most)
				}
			}
			host.call("noisy/progress", fmt.Sprintf(`{"steps":%d}`, many))
			mcptest.Eventually(t, "progress is heard", func() bool { return host.heard("notifications/progress") > 0 })
			host.dynmcp.WaitStderr("notifications of the server are dropped")
		})
	}
}
