package aggregator

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/txtar"
)

// asking lists requests that wait for a server that is starting, with a text of the answer
// after it has started (has), and if it has not started in time (lacks).
var asking = []struct {
	request, has, lacks string
}{
	{`"tools/list"`, `slow/think`, `slow`},
	{`"resources/list"`, `x://1`, `[]`},
	{`"resources/templates/list"`, `x://{n}`, `[]`},
	{`"prompts/list"`, `greet`, `[]`},
	{`"tools/call","params":{"name":"discover_tool","arguments":{}}`, `slow (1 tool)`, `still starting`},
	{`"tools/call","params":{"name":"discover_tool","arguments":{"query":"think hard"}}`, `slow/think`, `still starting: slow`},
	{`"tools/call","params":{"name":"discover_tool","arguments":{"tool_name":"think"}}`, `slow/think`, `still starting: slow`},
	{`"tools/call","params":{"name":"mcp_discover","arguments":{"jsonpath":"$.tools[*].name"}}`, `slow/think`, `still starting: slow`},
	{`"tools/call","params":{"name":"mcp_call","arguments":{"method":"tools/list"}}`, `slow/think`, `still starting: slow`},
	{`"tools/call","params":{"name":"mcp_call","arguments":{"method":"resources/list"}}`, `x://1`, `still starting: slow`},
	{`"tools/call","params":{"name":"proxy","arguments":{"action":"list","type":"tool"}}`, `slow/think`, `still starting: slow`},
	{`"tools/call","params":{"name":"proxy","arguments":{"action":"info","type":"resource","path":"x://1"}}`, `"one`, `still starting: slow`},
	{`"tools/call","params":{"name":"meta_tree","arguments":{"path":"/"}}`, `Ponders`, `still starting`},
}

const slowStart = `
-- setup --
host 2025-06-18 {}
upstream quick 2025-11-25 {"tools":{}}
upstream slow scripted 2025-11-25 {"tools":{},"resources":{},"prompts":{}}
expose discover browser proxy tree
texts
-- config --
"startup_wait":"2s"
-- upstream quick tools/list --
{"tools":[{"name":"look","description":"Looks at it.","inputSchema":{"type":"object"}}]}
-- transcript --
host sends | {"id":1,"method":%s}
time passes | 200ms
`

// Such a request is answered when the last server has started, with the server's entries.
func TestWhatAsksWaitsForTheSlow(t *testing.T) {
	t.Parallel()
	for _, asks := range asking {
		t.Run(asks.request, func(t *testing.T) {
			lists := "" // all at once, in any order
			for id, verb := range []string{"sends +", "sends +", "sends +", "sends"} {
				lists += fmt.Sprintf(`upstream slow %s | {"id":%d,"result":{"tools":[{"name":"think","description":"Thinks hard.","inputSchema":{"type":"object"}}],`+
					`"resources":[{"uri":"x://1","name":"one"}],"resourceTemplates":[{"uriTemplate":"x://{n}","name":"any"}],"prompts":[{"name":"greet"}]}}`+"\n", verb, id+2)
			}
			before, after := answered(t, asks.request, `# it starts
upstream slow sends | {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"slow","version":"1"},"instructions":"Ponders hard questions."}}
`+lists, "# it starts")
			if before != "" || !strings.Contains(after, asks.has) {
				t.Errorf("got %q before it has started and %q after, want nothing and %q", before, after, asks.has)
			}
		})
	}
}

// A server that does not start in time is named, and later requests do not wait.
func TestWhatAsksWaitsNoLongerThanTheHost(t *testing.T) {
	t.Parallel()
	for _, asks := range asking {
		t.Run(asks.request, func(t *testing.T) {
			before, after := answered(t, asks.request, "# the time is over\ntime passes | 2s\n", "# the time is over")
			if before != "" || !strings.Contains(after, asks.lacks) || strings.Contains(after, asks.has) {
				t.Errorf("got %q before the time is over and %q after, want nothing and %q", before, after, asks.lacks)
			}
			_, late := answered(t, asks.request, "# the time is over\ntime passes | 2s\nhost sends | "+fmt.Sprintf(`{"id":2,"method":%s}`, asks.request)+"\n# now\n", "# the time is over")
			if !strings.Contains(late, `{"id":2,`) {
				t.Errorf("what is asked late waits: got %q", late)
			}
		})
	}
}

// A server that could not be started is named in answers of our tools.
func TestWhatAsksNamesTheFailed(t *testing.T) {
	t.Parallel()
	for _, asks := range asking {
		if !strings.HasPrefix(asks.request, `"tools/call"`) {
			continue
		}
		t.Run(asks.request, func(t *testing.T) {
			_, after := answered(t, asks.request, `# it fails
upstream slow sends | {"id":1,"error":{"code":-32602,"message":"broken"}}
upstream slow sends | {"id":2,"error":{"code":-32602,"message":"broken"}}
time passes | 2s
`, "# it fails")
			if !strings.Contains(after, "could not be started") || strings.Contains(after, "still starting") {
				t.Errorf("got %q, want that slow could not be started", after)
			}
		})
	}
}

// answered returns what the host receives before and after a step of a transcript.
func answered(t *testing.T, request, steps, at string) (before, after string) {
	archive := txtar.Parse(fmt.Appendf(nil, strings.TrimPrefix(slowStart, "\n")+"%s", request, steps))
	var got []byte
	synctest.Test(t, func(t *testing.T) { got = play(t, archive, false) })
	first, second, _ := strings.Cut(string(got), at)
	return received(first), received(second)
}

func received(transcript string) (all string) {
	for line := range strings.Lines(transcript) {
		if strings.HasPrefix(line, "host receives") && !strings.Contains(line, "list_changed\"}") {
			all += line
		}
	}
	return all
}
