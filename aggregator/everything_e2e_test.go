//go:build e2e

package aggregator

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// The reference server's answers through dynmcp are byte for byte those that it gives
// directly: of every tool with repeatable answers, of every prompt and resource,
// completions and errors.

const everythingServer = "@modelcontextprotocol/server-everything@2026.8.31"

// sameEveryTime are calls of every tool that answers the same every time.
var sameEveryTime = map[string][]string{
	"echo":                  {`{"message":"hello"}`, `{"message":"\u00e9\ud83d\ude00 <&> \u2028\\\/"}`, `{"message":7}`, `{}`},
	"get-annotated-message": {`{"messageType":"error"}`, `{"messageType":"success","includeImage":true}`, `{"messageType":"debug"}`, `{"messageType":"x"}`},
	"get-resource-links":    {`{}`, `{"count":10}`, `{"count":1.0}`},
	"get-structured-content": {
		`{"location":"New York"}`, `{"location":"Chicago"}`, `{"location":"Los Angeles"}`,
	},
	"get-sum":                     {`{"a":1,"b":2}`, `{"a":1e2,"b":0.1}`, `{"a":9007199254740993,"b":0}`, `{"a":"x","b":2}`},
	"get-tiny-image":              {`{}`},
	"gzip-file-as-resource":       {`{"name":"a.gz","data":"data:text/plain;base64,aGVsbG8=","outputType":"resource"}`, `{"name":"b.gz","data":"data:text/plain,hello"}`},
	"get-resource-reference":      {`{"resourceType":"Text","resourceId":0}`, `{"resourceType":"x"}`},
	"trigger-elicitation-request": {`{}`},
	"trigger-sampling-request":    {`{"prompt":"\u00e9","maxTokens":7}`},
	"toggle-subscriber-updates":   {`{"x":1.0}`},
	"toggle-simulated-logging":    {`{"x":1.0}`},
	"trigger-long-running-operation": {
		`{"duration":0.2,"steps":2}`, `{"duration":"x"}`,
	},
	"simulate-research-query": {`{}`, `{"topic":"x"}`},
	"no-such-tool":            {`{}`},
}

// differs lists tools that may answer differently, with the reason.
var differs = map[string]string{
	"get-env":                "it returns the environment, which has a mark of each process here",
	"get-resource-reference": "its text has the time",
}

// answers are the hosts' answers to questions of tools.
var answers = map[string]func(json.RawMessage) (any, error){
	"elicitation/create": func(json.RawMessage) (any, error) {
		return `{"action":"accept","content":{"name":"\u00e9","integer":7}}`, nil
	},
	"sampling/createMessage": func(params json.RawMessage) (any, error) {
		return fmt.Sprintf(`{"role":"assistant","model":"m","content":{"type":"text","text":%q}}`, params), nil
	},
}

// addedSchema is the text that use_tool adds if a server reports invalid input.
var addedSchema = regexp.MustCompile(`,\{"type":"text","text":"Input schema of (?:[^"\\]|\\.)*"\}`)

func TestSameAsDirect(t *testing.T) {
	t.Parallel()
	command := mcptest.Npm(t, everythingServer, "stdio")
	direct := mcptest.Start(t, mcptest.HostOptions{Args: command, OnRequest: answers})
	defer direct.Kill()
	through := func(args ...string) *mcptest.Host {
		args = append(append([]string{mcptest.Dynmcp(t)}, args...), command...)
		return mcptest.Start(t, mcptest.HostOptions{Args: args, OnRequest: answers})
	}
	shown, used := through("--expose", "direct", "--"), through("--")
	for _, h := range []*mcptest.Host{direct, shown, used} {
		h.Initialize("2025-11-25", `{"sampling":{},"elicitation":{},"tasks":{}}`)
	}
	compare := func(what string, a, b mcptest.Message) {
		t.Helper()
		if string(a.Result) != string(b.Result) || string(a.Error) != string(b.Error) {
			t.Errorf("%s:\ndirect  %.2000s %s\nthrough %.2000s %s", what, a.Result, a.Error, b.Result, b.Error)
		}
	}
	tools := direct.Call("tools/list", nil)
	compare("tools/list", tools, shown.Call("tools/list", nil))
	for _, name := range memberOfEach(t, tools.Member("tools"), "name") {
		if sameEveryTime[name] == nil && differs[name] == "" {
			t.Errorf("tool %s is not compared", name)
		}
	}
	for name, inputs := range sameEveryTime {
		for _, input := range inputs {
			want := direct.Tool(name, input)
			compare(name+" "+input, want, shown.Tool(name, input))
			// use_tool answers these two itself: it suggests other tools, and makes no task.
			if name != "no-such-tool" && name != "simulate-research-query" {
				got := used.Tool("use_tool", fmt.Sprintf(`{"tool_name":%q,"tool_input":%s}`, name, input))
				got.Result = addedSchema.ReplaceAll(got.Result, nil)
				compare("use_tool "+name+" "+input, want, got)
			}
		}
	}
	for _, h := range []*mcptest.Host{shown, used} {
		sameElsewhere(t, direct, h, compare)
	}
}

// A tool of a real server that runs only as a task can be called through dynmcp in config
// mode by a host that declares tasks.
func TestTaskOfARealServer(t *testing.T) {
	t.Parallel()
	command := mcptest.Npm(t, everythingServer, "stdio")
	entry, err := json.Marshal(map[string]any{"command": command[0], "args": command[1:]})
	if err != nil {
		t.Fatal(err)
	}
	config := mcptest.Config(t, `{"mcp":{"all":`+string(entry)+`},"expose":["direct"],"startup_wait":"1m"}`)
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config}})
	if m := host.Initialize("2025-11-25", `{"tasks":{}}`); wire.Get(m.Result, "capabilities", "tasks", "requests", "tools", "call") == nil {
		t.Errorf("got %s", m.Raw)
	}
	if names := memberOfEach(t, host.Call("tools/list", nil).Member("tools"), "name"); !slices.Contains(names, "all__simulate-research-query") {
		t.Fatalf("got %q", names)
	}
	created := host.Call("tools/call", `{"name":"all__simulate-research-query","arguments":{"topic":"x"},"task":{"ttl":600000}}`)
	id, _ := wire.Text(wire.Get(created.Result, "task", "taskId"))
	if !strings.HasPrefix(id, "all/") {
		t.Fatalf("got %s", created.Raw)
	}
	about := fmt.Sprintf(`{"taskId":%q}`, id)
	if m := host.Call("tasks/get", about); !wire.EqualString(m.Member("taskId"), id) {
		t.Errorf("got %s", m.Raw)
	}
	result := host.Call("tasks/result", about)
	if text := result.Text(); !strings.Contains(text, "x") || !wire.EqualString(wire.Get(result.Result, "_meta", "io.modelcontextprotocol/related-task", "taskId"), id) {
		t.Errorf("got %s", result.Raw)
	}
	if ids := memberOfEach(t, host.Call("tasks/list", nil).Member("tasks"), "taskId"); !slices.Contains(ids, id) {
		t.Errorf("got %q", ids)
	}
}

// sameElsewhere compares the answers to requests that are not about tools.
func sameElsewhere(t *testing.T, direct, through *mcptest.Host, compare func(string, mcptest.Message, mcptest.Message)) {
	t.Helper()
	requests := [][2]string{
		{"prompts/list", `{}`}, {"resources/list", `{}`}, {"resources/templates/list", `{}`},
		{"prompts/get", `{"name":"simple-prompt"}`},
		{"prompts/get", `{"name":"args-prompt","arguments":{"city":"\u00e9","state":"x"}}`},
		{"prompts/get", `{"name":"args-prompt"}`},
		{"prompts/get", `{"name":"no-such-prompt"}`},
		{"resources/read", `{"uri":"demo://resource/static/document/no-such.md"}`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"E"}}`},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"demo://resource/dynamic/text/{resourceId}"},"argument":{"name":"resourceId","value":"1"}}`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"no-such-prompt"},"argument":{"name":"x","value":""}}`},
		{"x-unknown/do", `{"x":1.0}`},
	}
	listed := direct.Call("resources/list", nil)
	for _, uri := range memberOfEach(t, listed.Member("resources"), "uri") {
		if strings.HasPrefix(uri, "demo://resource/static/") {
			requests = append(requests, [2]string{"resources/read", fmt.Sprintf(`{"uri":%q}`, uri)})
		}
	}
	if len(requests) < 15 {
		t.Errorf("%d requests are too few", len(requests))
	}
	for _, r := range requests {
		compare(r[0]+" "+r[1], direct.Call(r[0], r[1]), through.Call(r[0], r[1]))
	}
}

// Answers that change from call to call are compared with a recording of the
// upstream's output, which has each result that the host read.
func TestSameAsRecorded(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the recorder is a shell's pipe")
	}
	record := filepath.Join(t.TempDir(), "record")
	command := strings.Join(mcptest.Npm(t, everythingServer, "stdio"), " ") + ` | tee "$0"`
	host := mcptest.StartDynmcp(t, "--", "sh", "-c", command, record)
	host.Initialize("2025-11-25", `{}`)
	var read []mcptest.Message
	for _, call := range []string{
		`{"tool_name":"get-env"}`,
		`{"tool_name":"get-resource-reference","tool_input":{"resourceType":"Text","resourceId":7}}`,
		`{"tool_name":"get-resource-reference","tool_input":{"resourceType":"Blob","resourceId":7}}`,
	} {
		read = append(read, host.Tool("use_tool", call))
	}
	for _, uri := range []string{"demo://resource/dynamic/text/7", "demo://resource/dynamic/blob/7"} {
		read = append(read, host.Call("resources/read", fmt.Sprintf(`{"uri":%q}`, uri)))
	}
	read = append(read, host.Call("prompts/get", `{"name":"resource-prompt","arguments":{"resourceType":"Text","resourceId":"7"}}`))
	// tee writes to its output first: after the next answer, these are in the file.
	host.Tool("use_tool", `{"tool_name":"get-env"}`)
	sent, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range read {
		if m.Result == nil || !strings.Contains(string(sent), `"result":`+string(m.Result)) {
			t.Errorf("the upstream did not send %.2000s", m.Raw)
		}
	}
}

// memberOfEach returns a string member of every element of an array.
func memberOfEach(t *testing.T, array []byte, name string) []string {
	t.Helper()
	var all []string
	for _, element := range elements(t, array) {
		text, ok := element[name].(string)
		if !ok {
			t.Fatalf("no %s in %v", name, element)
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		t.Fatalf("nothing in %s", array)
	}
	slices.Sort(all)
	return all
}

func elements(t *testing.T, array []byte) []map[string]any {
	t.Helper()
	var all []map[string]any
	if err := json.Unmarshal(array, &all); err != nil {
		t.Fatal(err)
	}
	return all
}
