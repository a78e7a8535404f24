//go:build e2e

// Package verify tests that "dynmcp verify" reads servers by its own code: faults of the link to
// servers, which both of its sides would have if they shared that, are found.
package verify

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/programs"
	"github.com/dynmcp/dynmcp/bench/internal/sabotage"
)

// faults are faults of transports/upstream, and the kinds of answers in which verify must see each.
var faults = []struct {
	sabotage.Fault
	kinds []string
}{
	{sabotage.Fault{Name: "lists end after a page", Edits: []sabotage.Edit{
		{File: "transports/upstream/list.go", Old: `cursor := wire.Get(result, "nextCursor")`, New: `cursor := wire.Get(result, "noCursor")`},
	}}, []string{"lists"}},
	{sabotage.Fault{Name: "errors are replaced", Edits: []sabotage.Edit{
		{File: "transports/upstream/receive.go", Old: "	call.Done(m.Result, err)\n", New: "	if err != nil {\n		err = c.newFailure(transports.CodeProtocol, transports.Unknown, errors.New(\"x\"))\n	}\n	call.Done(m.Result, err)\n"},
	}}, []string{"tools", "errors"}},
	{sabotage.Fault{Name: "each third progress is dropped", Edits: []sabotage.Edit{
		{File: "transports/upstream/receive.go", Old: "func (c *Conn) handleNotification", New: "var progressed int\n\nfunc (c *Conn) handleNotification"},
		{File: "transports/upstream/receive.go", Old: `	call.Peer.Notify("notifications/progress"`, New: "	if progressed++; progressed%3 == 0 {\n		return\n	}\n" + `	call.Peer.Notify("notifications/progress"`},
	}}, []string{"progress"}},
	{sabotage.Fault{Name: "cancellations are not sent", Edits: []sabotage.Edit{
		{File: "transports/upstream/start.go", Old: "func (c *Conn) tellCancelled(id int64, call *Call) {\n", New: "func (c *Conn) tellCancelled(id int64, call *Call) {\n	if true {\n		return\n	}\n"},
	}}, []string{"cancellation"}},
	{sabotage.Fault{Name: "a byte is added to results", Edits: []sabotage.Edit{
		{File: "transports/upstream/receive.go", Old: "	call.Done(m.Result, err)\n", New: "	if call.Method == \"tools/call\" && m.Result != nil {\n		m.Outline, call.Outline = nil, nil\n		m.Result = bytes.Replace(bytes.Clone(m.Result), []byte(`\"type\":\"text\"`), []byte(`\"type\": \"text\"`), 1)\n	}\n	call.Done(m.Result, err)\n"},
	}}, []string{"tools"}},
}

// serve starts a fake server over HTTP and returns its URL.
func serve(t *testing.T, program string, args ...string) string {
	t.Helper()
	h, err := hosts.Serve(exec.Command(program, append(args, "-http", "127.0.0.1:0")...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Terminate)
	return h.URL
}

func TestFaultsOfTheLinkAreFound(t *testing.T) {
	t.Chdir("../..")
	dir, err := programs.Build("./cmd/dynmcp", "./internal/mcptest/fakemcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	tool := func(name, examples string) string {
		return `{"name":"` + name + `","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{` + examples + `}}}`
	}
	args := []string{"-bare", "-page", "3", "-tools", "5", "-tool", tool("echo", `"s":{"examples":["a"]}`), "-tool", tool("fail", ""),
		"-tool", tool("progress", `"steps":{"examples":[7]}`), "-tool", tool("sleep", `"ms":{"examples":[600]}`)}
	args = append(args, "-tool", tool(strings.Repeat("long_", 14), `"s":{"examples":["a"]}`), "-tool", `{"name":"untyped","inputSchema":{}}`)
	fake := filepath.Join(dir, "fakemcp")
	config, err := json.Marshal(map[string]any{"mcp": map[string]any{
		"lines": map[string]any{"command": fake, "args": append([]string{"-era", "both"}, args...)},
		"web":   map[string]any{"url": serve(t, fake, append([]string{"-era", "both"}, args...)...)},
		"sse":   map[string]any{"url": serve(t, fake, append([]string{"-sse"}, args...)...), "transport": "sse"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}

	compare := func(t *testing.T, program string) (found map[string]string) {
		cmd := exec.Command(program, "verify", "--json", "--surface", "direct,discover", "--timeout", "20s", "-c", file)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		var reports []struct {
			Name     string
			Error    string
			Compared []struct {
				What      string
				Different int
			}
		}
		if err := json.Unmarshal(out, &reports); err != nil || len(reports) != 3 {
			t.Fatalf("%v: %s", err, out)
		}
		found = map[string]string{}
		for _, r := range reports {
			found[r.Name] = r.Error
			for _, row := range r.Compared {
				if row.Different > 0 {
					found[r.Name] += " " + row.What
				}
			}
		}
		return found
	}
	for server, what := range compare(t, filepath.Join(dir, "dynmcp")) {
		if what != "" {
			t.Errorf("without a fault, %s: %s", server, what)
		}
	}
	for _, f := range faults {
		t.Run(f.Name, func(t *testing.T) {
			program, err := f.Build(filepath.Join(dir, strings.ReplaceAll(f.Name, " ", "-")))
			if err != nil {
				t.Fatal(err)
			}
			for server, what := range compare(t, program) {
				for _, kind := range f.kinds {
					if !strings.Contains(what, kind) {
						t.Errorf("%s: found in %q, and not in %s", server, what, kind)
					}
				}
			}
		})
	}
}
