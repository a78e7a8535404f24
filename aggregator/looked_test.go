//go:build wirecount

package aggregator

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// After a message was checked, no long value of a call's arguments or result is read again,
// whatever the tool's schema.
func TestCallsReadNoLongValues(t *testing.T) {
	t.Parallel()
	for surface, call := range map[string]string{
		"discover": `{"_meta":{"progressToken":1%s},"name":"use_tool","arguments":{"tool_name":"up/%s","tool_input":%s}}`,
		"direct":   `{"_meta":{"progressToken":1%s},"name":"up__%s","arguments":%s}`,
	} {
		for _, from := range []transports.Era{transports.Handshake, transports.Stateless} {
			for _, to := range []transports.Era{transports.Handshake, transports.Stateless} {
				t.Run(fmt.Sprintf("%s/%d to %d", surface, from, to), func(t *testing.T) {
					tools := toolsOfMany(t)
					ask := servedTool(t, surface, tools, from, to)
					for name, properties := range tools {
						var read [2]int64
						for i, size := range []int{3 << 10, 9 << 10} {
							before := wire.Looked.Load()
							ask("tools/call", fmt.Sprintf(call, eraMeta[from], name, arguments(properties, size)))
							read[i] = wire.Looked.Load() - before
						}
						if read[1]-read[0] > 1<<10 { // a value has 6 KB more; other goroutines may read some bytes
							t.Errorf("%s: %d bytes of a short call were read again, %d of a long one", properties, read[0], read[1])
						}
					}
				})
			}
		}
	}
}

// eraMeta has the members of _meta that hosts of an era put into each request.
var eraMeta = map[transports.Era]string{
	transports.Stateless: `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`,
}

// toolsOfMany returns the properties of tools by name: typical ones, and those of real
// servers if their listings are beside the repository.
func toolsOfMany(t *testing.T) map[string]json.RawMessage {
	tools := map[string]json.RawMessage{
		"nothing": json.RawMessage(`{}`),
		"text":    json.RawMessage(`{"data":{"type":"string"}}`),
		"number":  json.RawMessage(`{"data":{"type":"string"},"bytes":{"type":"integer"}}`),
		"numbers": json.RawMessage(`{"n":{"type":"number"},"either":{"type":["integer","null"]},"body":{"type":"object"},"z":{"type":"integer"}}`),
	}
	files, err := filepath.Glob("../../shared/corpus/servers/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var listed struct {
			Tools []struct {
				InputSchema struct{ Properties json.RawMessage }
			}
		}
		json.Unmarshal(data, &listed) // fails for a server that answered with an error
		for _, tool := range listed.Tools {
			if p := tool.InputSchema.Properties; len(p) > 0 && p[0] == '{' {
				tools[fmt.Sprintf("t%d", len(tools))] = p
			}
		}
	}
	return tools
}

// arguments returns arguments for the first properties, with texts of size bytes.
func arguments(properties json.RawMessage, size int) string {
	var types map[string]struct{ Type any }
	json.Unmarshal(properties, &types) // a property may be true
	long := strings.Repeat(`twenty-five characters \"`, size/25)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(types)) {
		value := `"` + long + `"`
		switch types[name].Type {
		case "number", "integer":
			value = "7"
		case "boolean":
			value = "true"
		case "object":
			value = `{"deep":"` + long + `"}`
		case "array":
			value = `["` + long + `"]`
		}
		list = append(list, fmt.Sprintf("%q:%s", name, value))
		if len(list) == 5 { // an outline has room for five
			break
		}
	}
	return "{" + strings.Join(append(list, `"more":"`+long+`"`), ",") + "}"
}

// servedTool runs an aggregator of one upstream with these tools, and returns a function that
// sends it a request.
func servedTool(t *testing.T, expose string, tools map[string]json.RawMessage, from, to transports.Era) (ask func(method, params string)) {
	var list []string
	for name, properties := range tools {
		list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object","properties":%s}}`, name, properties))
	}
	cfg := configOf(t, fmt.Sprintf(`{"expose":[%q],"startup_wait":"60s","mcp":{"up":{"command":"none"}}}`, expose))
	agg, err := New(cfg, Options{Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	agg.fleet.Open = func(server schema.Server, opts upstream.ConnOptions) (*upstream.Conn, error) {
		calls, toUpstream := io.Pipe()
		fromUpstream, answers := io.Pipe()
		go echoCalls(calls, answers, to, `{"tools":[`+strings.Join(list, ",")+`]}`)
		return upstream.OpenStream(server, ends{fromUpstream, toUpstream}, opts), nil
	}
	weRead, fromHost := io.Pipe()
	hostReads, toHost := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- agg.serveLines(context.Background(), host.NewStdio(weRead, toHost, nil), Identity{}) }()
	t.Cleanup(func() {
		fromHost.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		agg.Close()
	})
	answers, id := bufio.NewReaderSize(hostReads, 1<<20), 0
	ask = func(method, params string) {
		id++
		fmt.Fprintf(fromHost, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
		for {
			line, err := answers.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			var m struct {
				ID     int
				Result json.RawMessage
				Error  json.RawMessage
			}
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatal(err)
			}
			if m.ID != id {
				continue
			}
			if m.Error != nil || strings.Contains(string(m.Result), `"isError":true`) {
				t.Fatalf("%s: %.300s", method, line)
			}
			return
		}
	}
	if from == transports.Stateless {
		ask("tools/list", `{"_meta":{"x":1`+eraMeta[from]+`}}`)
		return ask
	}
	ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"host","version":"1"}}`)
	fmt.Fprintln(fromHost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	ask("tools/list", `{}`)
	return ask
}

// ends are the two pipes of an upstream.
type ends struct {
	*io.PipeReader
	*io.PipeWriter
}

func (e ends) Close() error {
	e.PipeReader.Close()
	return e.PipeWriter.Close()
}

// echoCalls is an upstream that answers a call with its arguments.
func echoCalls(calls io.Reader, answers io.WriteCloser, era transports.Era, tools string) {
	defer answers.Close()
	for lines := bufio.NewReaderSize(calls, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments json.RawMessage }
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		result := `{}`
		switch m.Method {
		case "server/discover":
			if era == transports.Stateless {
				result = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}`
			}
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"up","version":"1"}}`
		case "tools/list":
			result = tools
		case "tools/call":
			text, _ := json.Marshal(string(m.Params.Arguments))
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"structuredContent":%s}`, text, m.Params.Arguments)
		}
		fmt.Fprintf(answers, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	}
}
