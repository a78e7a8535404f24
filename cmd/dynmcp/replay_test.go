package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// talk makes the same calls of any server, as a host of a version, and returns what it
// received.
func talk(t *testing.T, version string, args ...string) (received []string) {
	t.Helper()
	host := mcptest.Start(t, mcptest.HostOptions{
		Args:      append([]string{mcptest.Dynmcp(t)}, args...),
		OnRequest: mcptest.Handlers{"elicitation/create": func(json.RawMessage) (any, error) { return `{"action":"decline"}`, nil }},
	})
	meta := `"_meta":{"progressToken":"of the host"}`
	if version == handshake {
		host.Initialize(handshake, `{"elicitation":{}}`)
	} else {
		meta = mcptest.ModernMeta(nil, `"progressToken":"of the host"`, `"io.modelcontextprotocol/logLevel":"debug"`)
	}
	host.Call("tools/list", "{"+meta+"}")
	for _, call := range [][2]string{
		{"raw", `{"result":{"content":[],"structuredContent":{"n":1.0,"big":9007199254740993,"b":2,"a":1},"_meta":{"é":"\u00e9 <&>"}}}`},
		{"raw", `{"result":{"content":[],"isError":true}}`},
		{"fail", `{"code":-32042}`},
		{"progress", `{"steps":3}`},
		{"log", `{"level":"error","times":2}`},
		{"ask", `{"method":"elicitation/create","params":{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}}`},
	} {
		if call[0] != "ask" || version == handshake { // a question is no request in the stateless era
			host.Call("tools/call", mcptest.ToolParams(call[0], call[1], meta))
		}
	}
	for _, m := range host.Messages() {
		received = append(received, m.Raw)
	}
	end(t, host)
	return received
}

// A host receives the same from a server and from its recording: results, errors, progress,
// log messages and questions, in order and to the byte.
func TestReplayIsAsTheServer(t *testing.T) {
	t.Parallel()
	for _, version := range []string{handshake, stateless} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "fake.jsonl")
			server := talk(t, version, "record", "-o", file, "--expose", "direct", "--", mcptest.Fake(t), "-era", "both")
			again := talk(t, version, "--expose", "direct", "--", mcptest.Dynmcp(t), "replay", file)
			if diff := cmp.Diff(server, again); diff != "" {
				t.Errorf("the recording answers otherwise (-server +recording):\n%s", diff)
			}
			if wanted := map[string]int{handshake: 14, stateless: 11}[version]; len(server) != wanted {
				t.Errorf("%d messages, want %d:\n%s", len(server), wanted, strings.Join(server, "\n"))
			}
		})
	}
}

// subscribed subscribes as a host of the stateless era, at a server or its recording, and
// returns what it received.
func subscribed(t *testing.T, args ...string) (received []string) {
	t.Helper()
	host := mcptest.StartDynmcp(t, args...)
	meta := mcptest.ModernMeta(nil)
	host.GoRaw(`"a"`, "subscriptions/listen", `{"notifications":{"resourceSubscriptions":["fake://fakemcp/text"]},`+meta+`}`)
	host.WaitMethod("notifications/subscriptions/acknowledged", 1)
	for n := range 3 {
		host.Call("tools/call", mcptest.ToolParams("touch", `{"uri":"fake://fakemcp/text"}`, meta))
		host.WaitMethod("notifications/resources/updated", n+1)
	}
	for _, m := range host.Messages() {
		received = append(received, m.Raw)
	}
	end(t, host)
	slices.Sort(received) // the subscription and the calls have no common order
	return received
}

// A host receives the same on a subscription at a server and at its recording.
func TestReplayOfSubscriptions(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "fake.jsonl")
	server := subscribed(t, "record", "-o", file, "--expose", "direct", "--", mcptest.Fake(t), "-era", "new")
	again := subscribed(t, "--expose", "direct", "--", mcptest.Dynmcp(t), "replay", file)
	if diff := cmp.Diff(server, again); diff != "" {
		t.Errorf("the recording answers otherwise (-server +recording):\n%s", diff)
	}
}

// A recording by hand: a subscription was replaced, and the server ended the second one
// during a call. A host with one subscription gets all notifications on that, and none after
// it cancels it.
func TestReplayOfSubscriptionsOfOthers(t *testing.T) {
	t.Parallel()
	const about = `"_meta":{"io.modelcontextprotocol/subscriptionId":%d}`
	var text strings.Builder
	text.WriteString(`{"dynmcp_recording":1,"dynmcp":"1","began":"2026-01-01T00:00:00Z"}` + "\n")
	for _, line := range [][2]string{
		{"out", `"id":3,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}`},
		{"in", `"method":"notifications/subscriptions/acknowledged","params":{` + fmt.Sprintf(about, 3) + `}`},
		{"out", `"id":7,"method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true}}`},
		{"in", `"method":"notifications/subscriptions/acknowledged","params":{` + fmt.Sprintf(about, 7) + `}`},
		{"out", `"method":"notifications/cancelled","params":{"requestId":3}`},
		{"out", `"id":8,"method":"one"`},
		{"in", `"method":"notifications/tools/list_changed","params":{` + fmt.Sprintf(about, 7) + `}`},
		{"in", `"id":7,"result":{` + fmt.Sprintf(about, 7) + `}`},
		{"in", `"id":8,"result":{}`},
	} {
		fmt.Fprintf(&text, `{"ms":0,"dir":%q,"server":"s","message":{"jsonrpc":"2.0",%s}}`+"\n", line[0], line[1])
	}
	file := writeFile(t, t.TempDir(), "listen.jsonl", text.String())
	lines := func(of ...string) string {
		for i, line := range of {
			of[i] = `{"jsonrpc":"2.0",` + strings.ReplaceAll(line, "ABOUT", `"_meta":{"io.modelcontextprotocol/subscriptionId"`) + `}`
		}
		return strings.Join(of, "\n")
	}
	for name, test := range map[string]struct{ sent, want string }{
		"one": {
			lines(`"id":"a","method":"subscriptions/listen","params":{"notifications":{"x":1}}`, `"id":1,"method":"one"`),
			lines(`"method":"notifications/subscriptions/acknowledged","params":{ABOUT:"a"}}`,
				`"method":"notifications/tools/list_changed","params":{ABOUT:"a"}}`, `"id":"a","result":{ABOUT:"a"}}`, `"id":1,"result":{}`),
		},
		"cancelled": {
			lines(`"id":"a","method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true}}`,
				`"method":"notifications/cancelled","params":{"requestId":"a"}`, `"id":1,"method":"one"`),
			lines(`"id":1,"result":{}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			host := mcptest.StartDynmcp(t, "replay", file)
			for line := range strings.Lines(test.sent) {
				host.Send(strings.TrimSpace(line))
			}
			end(t, host)
			got := strings.Join(host.Lines(), "\n")
			if name == "cancelled" { // it may have been acknowledged before
				got = got[strings.LastIndex(got, "\n")+1:]
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A recording has the era of its connection. It refuses a host of the other era and names its
// own, and answers that host through dynmcp.
func TestReplayToTheOtherEra(t *testing.T) {
	t.Parallel()
	for recorded, other := range map[string]string{handshake: stateless, stateless: handshake} {
		t.Run(recorded, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "fake.jsonl")
			era := map[string]string{handshake: "old", stateless: "new"}[recorded]
			server := talk(t, other, "record", "-o", file, "--expose", "direct", "--", mcptest.Fake(t), "-era", era)
			again := talk(t, other, "--expose", "direct", "--", mcptest.Dynmcp(t), "replay", file)
			if diff := cmp.Diff(server, again); diff != "" || len(server) < 11 {
				t.Errorf("the recording answers otherwise (-server +recording):\n%s", diff)
			}
			host := mcptest.StartDynmcp(t, "replay", file)
			method, params := "tools/list", "{"+mcptest.ModernMeta(nil)+"}"
			if other == handshake {
				method, params = "initialize", hello
			}
			contains(t, host.Call(method, params).Raw, `"code":-32022`, "the server was recorded with version "+recorded, `"data":{"supported":["`+recorded+`"]}`)
		})
	}
}

// A request that was not recorded is refused with the nearest one. Equal requests are
// answered in order, and cancelled ones are not answered.
func TestReplayOfOtherRequests(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "fake.jsonl")
	host := mcptest.StartDynmcp(t, "record", "-o", file, "--expose", "direct", "--", mcptest.Fake(t))
	host.Initialize(handshake, nil)
	host.Tool("add_tool", `{"name":"one"}`)
	host.Call("prompts/get", `{"name":"greet","arguments":{"name":"a"}}`)
	first := host.Tool("echo", `{"s":"a","n":1.0}`)
	pending := host.Go("tools/call", mcptest.ToolParams("sleep", `{"ms":0}`))
	host.Tool("received", `{"n":1}`)
	second := host.Tool("received", `{"n":1}`)
	pending.Cancel("enough")
	end(t, host)

	again := mcptest.StartDynmcp(t, "replay", file)
	again.Initialize(handshake, nil)
	if got := again.Tool("echo", ` { "n": 1.0, "s": "\u0061" } `); string(got.Result) != string(first.Result) {
		t.Errorf("other spaces and order: got %s", got.Raw)
	}
	pending = again.Go("tools/call", mcptest.ToolParams("sleep", `{"ms":0}`))
	again.Tool("received", `{"n":1}`)
	for range 2 { // the last one again
		if got := again.Tool("received", `{"n":1}`); string(got.Result) != string(second.Result) {
			t.Errorf("the second of two: got %s", got.Raw)
		}
	}
	pending.Cancel("enough")
	if again.Call("ping", nil).Error != nil || pending.Done() {
		t.Error("a call that was cancelled is answered, or a ping is not")
	}
	for _, test := range []struct{ method, params, want string }{
		{"tools/call", `{"name":"echo","arguments":{"s":"b","n":1.0}}`, `"code":-32602,"message":"this tools/call was not recorded; the nearest that was has params {\"arguments\":{\"n\":1.0,\"s\":\"a\"},\"name\":\"echo\"}"`},
		{"tools/call", `{"name":"echo","arguments":{"s":"a","n":1}}`, `"data":{"nearest":{"name":"echo","arguments":{"s":"a","n":1.0}}}`},
		{"completion/complete", `{}`, `"code":-32601,"message":"the recording has no request completion/complete; it has: initialize, `},
	} {
		contains(t, again.Call(test.method, test.params).Raw, test.want)
	}
}

// A recording is readable by its user alone, has no secret, and is never overwritten. A call
// whose params had a secret is recognized by the rest.
func TestRecordingsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "sw0rdfish-4711"
	file := filepath.Join(t.TempDir(), "run.jsonl")
	config := mcptest.Config(t, document([]entry{
		fake(t, "one").with("env", map[string]string{"TOKEN": "${FISH}"}), deferred(t, "two", "Not started."),
	}))
	record := func(params json.RawMessage) string {
		host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "record", "-o", file, "-c", config}, Env: []string{"FISH=" + secret}})
		greet(host)
		answer := host.Call("tools/call", params)
		end(t, host)
		return answer.Text()
	}
	answer := record(useParams("one/echo", fmt.Sprintf(`{"key":%q}`, secret)))
	contains(t, answer, secret)
	record(useParams("one/echo", `{}`))
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), secret) || !strings.Contains(string(text), "[redacted]") {
		t.Errorf("the recording has the secret, or nothing in its place: %v\n%s", err, text)
	}
	for _, name := range []string{file, strings.TrimSuffix(file, ".jsonl") + "-2.jsonl"} {
		if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	again := mcptest.StartDynmcp(t, "replay", file)
	contains(t, again.Tool("echo", fmt.Sprintf(`{"key":%q}`, secret)).Text(), "[redacted]")
	contains(t, runVerb(t, mcptest.Environ(t), 1, "replay", file, "--server", "other"), `no server "other", but one`)
	contains(t, runVerb(t, mcptest.Environ(t), 1, "replay", config), "this is no recording")
}

// A recording by hand: two answers in the order of their times, not of their requests.
func TestReplaySpeed(t *testing.T) {
	t.Parallel()
	file := writeFile(t, t.TempDir(), "slow.jsonl", `{"dynmcp_recording":1,"dynmcp":"1","began":"2026-01-01T00:00:00Z"}
{"ms":0,"dir":"out","server":"s","message":{"jsonrpc":"2.0","id":1,"method":"a"}}
{"ms":0,"dir":"out","server":"s","message":{"jsonrpc":"2.0","id":2,"method":"b"}}
{"ms":1000,"dir":"in","server":"s","message":{"jsonrpc":"2.0","id":2,"result":{}}}
{"ms":60000,"dir":"in","server":"s","message":{"jsonrpc":"2.0","id":1,"result":{}}}
`)
	for _, test := range []struct {
		speed, order string
		least        time.Duration
	}{{"100", "b a", 600 * time.Millisecond}, {"0", "a b", 0}} {
		host := mcptest.StartDynmcp(t, "replay", file, "--speed", test.speed)
		began := time.Now()
		host.Send(`[{"jsonrpc":"2.0","id":"a","method":"a"},{"jsonrpc":"2.0","id":"b","method":"b"}]`)
		host.CloseStdin() // recorded answers come after the end of the input too
		host.Wait()
		var order []string
		for _, m := range host.Messages() {
			order = append(order, strings.Trim(string(m.ID), `"`))
		}
		if strings.Join(order, " ") != test.order || time.Since(began) < test.least {
			t.Errorf("speed %s: %q after %v", test.speed, order, time.Since(began))
		}
	}
}

// The messages of a recording are shown: those of a method and a server, and what failed.
func TestInspectRecording(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "fake.jsonl")
	talk(t, handshake, "record", "-o", file, "--expose", "direct", "--", mcptest.Fake(t))
	shown := runVerb(t, mcptest.Environ(t), 0, "inspect", file, "--method", "tools/*", "--server", "fakemcp")
	if lines := strings.Split(strings.TrimSpace(shown), "\n"); len(lines) != 14 || slices.ContainsFunc(lines, func(l string) bool { return !strings.Contains(l, "fakemcp tools/") }) {
		t.Errorf("inspect: %d lines\n%s", len(lines), shown)
	}
	failed := runVerb(t, mcptest.Environ(t), 0, "inspect", file, "--errors")
	if lines := strings.Split(strings.TrimSpace(failed), "\n"); len(lines) != 8 { // two of the host, and of the server, with their requests
		t.Errorf("inspect --errors: %d lines\n%s", len(lines), failed)
	}
}
