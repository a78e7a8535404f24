//go:build e2e

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Real servers from npm. Their packages must be installed or reachable.

const (
	everythingServer = "@modelcontextprotocol/server-everything"
	filesystemServer = "@modelcontextprotocol/server-filesystem"
)

func TestNpxServerWrapped(t *testing.T) {
	t.Parallel()
	host := mcptest.StartDynmcp(t, append([]string{"--"}, mcptest.Npx(t, everythingServer, "stdio")...)...)
	greeting := host.Initialize(handshake, nil)
	contains(t, string(greeting.Member("serverInfo")), "everything")
	contains(t, block(catalogue(t, host), "tools"), "- echo: ")
	contains(t, use(host, "echo", `{"message":"hello there"}`).Text(), "hello there")
	contains(t, use(host, "get-sum", `{"a":2,"b":40}`).Text(), "42")
	if m := use(host, "ecko", nil); !m.IsError() {
		t.Errorf("got %s", m.Raw)
	}
	contains(t, use(host, "ecko", nil).Text(), "Did you mean: echo")
	if got := names(host.Call("resources/list", nil).Member("resources"), "uri"); len(got) == 0 {
		t.Error("no resources")
	}
	m := host.Call("tools/call", useParams("trigger-long-running-operation", `{"duration":0.2,"steps":2}`, `"_meta":{"progressToken":"tök"}`))
	if m.IsError() {
		t.Fatal(m.Raw)
	}
	if p := host.WaitMethod("notifications/progress", 1); string(p.Member("progressToken")) != `"tök"` {
		t.Errorf("got %s", p.Raw)
	}
	end(t, host)
}

func TestExampleConfigWorks(t *testing.T) {
	t.Parallel()
	mcptest.Npx(t, "the servers of config.example.json")
	path, err := filepath.Abs(filepath.Join("..", "..", "config.example.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	memory := filepath.Join(t.TempDir(), "memory.json")
	host := mcptest.Start(t, mcptest.HostOptions{
		Args: []string{mcptest.Dynmcp(t), "-c", path},
		Env:  []string{"TOKEN=t0ken", "MEMORY_FILE_PATH=" + memory},
	})
	host.Initialize(handshake, nil)
	if got := tools(host); !slices.Contains(got, "load_mcp") {
		t.Errorf("got tools %q", got)
	}
	text := catalogue(t, host)
	for _, name := range []string{"files", "memory", "docs"} {
		contains(t, block(text, "mcp_servers"), "- "+name+": ")
	}
	contains(t, use(host, "everything/echo", `{"message":"hello"}`).Text(), "hello")
	for _, name := range []string{"files", "memory"} {
		m := load(host, name)
		if m.IsError() {
			t.Errorf("%s: %s", name, m.Text())
		}
		contains(t, m.Text(), name+" (", name+"/")
	}
	contains(t, use(host, "files/list_allowed_directories", nil).Text(), "tmp")
	created := use(host, "memory/create_entities", `{"entities":[{"name":"milk","entityType":"drink","observations":["is out"]}]}`)
	if created.IsError() {
		t.Error(created.Raw)
	}
	contains(t, use(host, "memory/read_graph", `{}`).Text(), "milk", "is out")
	if _, err := os.Stat(memory); err != nil {
		t.Errorf("the memory is not in the file that the environment names: %v", err)
	}
	contains(t, use(host, "everything/echo", `{"message":"still here"}`).Text(), "still here")

	text = catalogue(t, host)
	lacks(t, block(text, "mcp_servers"), "- files: ", "- memory: ")
	contains(t, block(text, "tools"), "- everything/echo: ", "files (", "memory (")
	end(t, host)
	if left := mcptest.Processes(host.Marker()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestNpxRootsNarrow has the file system server, whose folder is wider than the host's
// root, read a file within the root and one beside it, directly and through dynmcp.
// Nothing is read that would not be read directly, from the first call on.
func TestNpxRootsNarrow(t *testing.T) {
	t.Parallel()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(folder, "project")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	inside, outside := filepath.Join(project, "mine.txt"), filepath.Join(folder, "other.txt")
	writeFile(t, project, "mine.txt", "within the root")
	writeFile(t, folder, "other.txt", "beside the root")
	roots := `{"roots":[{"uri":` + quote("file://"+project) + `,"name":"project"}]}`
	read := func(path string) string { return `{"path":` + quote(path) + `}` }
	on := mcptest.Handlers{"roots/list": func(json.RawMessage) (any, error) { return roots, nil }}

	command := mcptest.Npm(t, filesystemServer, folder)
	direct := mcptest.Start(t, mcptest.HostOptions{Args: command, OnRequest: on})
	direct.Initialize(handshake, `{"roots":{"listChanged":true}}`)
	direct.WaitStderr("Updated allowed directories")
	wantInside, wantOutside := direct.Tool("read_text_file", read(inside)), direct.Tool("read_text_file", read(outside))
	contains(t, wantInside.Text(), "within the root")
	contains(t, wantOutside.Text(), "Access denied")

	for _, description := range []string{"", "Reads files"} {
		for _, era := range []string{handshake, stateless} {
			name := map[string]string{"": "eager", "Reads files": "lazy"}[description] + ", host of " + era
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				files := entry{name: "files", fields: map[string]any{"command": command[0], "args": command[1:], "load_timeout": "3m"}}
				if description != "" {
					files = files.with("description", description)
				}
				host := mcptest.Start(t, mcptest.HostOptions{
					Args:      []string{mcptest.Dynmcp(t), "-c", mcptest.Config(t, document([]entry{files}))},
					OnRequest: on,
				})
				call := func(path string) mcptest.Message { return use(host, "files/read_text_file", read(path)) }
				asked := 0
				if era == handshake {
					host.Initialize(handshake, `{"roots":{"listChanged":true}}`)
				} else {
					call = func(path string) mcptest.Message {
						const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + stateless + `","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}`
						m := host.Call("tools/call", useParams("files/read_text_file", read(path), meta))
						for string(m.Member("resultType")) == `"input_required"` {
							asked++
							var questions map[string]struct{ Method string }
							if err := json.Unmarshal(m.Member("inputRequests"), &questions); err != nil {
								t.Fatal(err)
							}
							var answers []string
							for key, q := range questions {
								if q.Method != "roots/list" {
									t.Errorf("it asks for %s", q.Method)
								}
								answers = append(answers, quote(key)+":"+roots)
							}
							m = host.Call("tools/call", useParams("files/read_text_file", read(path), meta,
								`"inputResponses":{`+strings.Join(answers, ",")+`}`, `"requestState":`+string(m.Member("requestState"))))
						}
						return m
					}
				}
				// The first call is the one that must be refused.
				if got := call(outside); got.Text() != wantOutside.Text() {
					t.Errorf("got %s, want %s", got.Raw, wantOutside.Text())
				}
				if got := call(inside); got.Text() != wantInside.Text() {
					t.Errorf("got %s, want %s", got.Raw, wantInside.Text())
				}
				if era == stateless && asked != 1 {
					t.Errorf("the host was asked %d times, want once", asked)
				}
			})
		}
	}
}
