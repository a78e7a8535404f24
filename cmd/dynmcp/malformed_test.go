package main_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A host that decodes lists into types reads every server's valid entries, although a server
// lists malformed ones.
func TestTypedHostListsBesideMalformedEntries(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]string{"handshake": handshake, "stateless": stateless} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := mcptest.Config(t, document([]entry{fake(t, "bad", "-fault", "malformed"), fake(t, "good")}, `"expose": ["direct"]`))
			command := exec.Command(mcptest.Dynmcp(t), "--log-level", "error", "-c", config)
			command.Env = mcptest.Environ(t)
			client := mcp.NewClient(&mcp.Implementation{Name: "typed", Version: "1"}, nil)
			host, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: command}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer host.Close()
			var tools, prompts, resources, templates []string
			for tool, err := range host.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				tools = append(tools, tool.Name)
			}
			for prompt, err := range host.Prompts(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				prompts = append(prompts, prompt.Name)
			}
			for resource, err := range host.Resources(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				resources = append(resources, resource.URI)
			}
			for template, err := range host.ResourceTemplates(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				templates = append(templates, template.URITemplate)
			}
			for _, c := range []struct {
				listed []string
				wanted []string
				bad    string // begins the name of every malformed entry
			}{
				{tools, []string{"good__echo", "bad__echo", "bad__f1", "bad__f2"}, "bad__m"},
				{prompts, []string{"good.greet", "bad.greet", "f1"}, "m"},
				{resources, []string{"fake://good/text", "fake://bad/text", "f:1"}, "m:"},
				{templates, []string{"fake://good/item/{id}", "fake://bad/item/{id}", "f:{x}"}, "m:"},
			} {
				for _, name := range c.wanted {
					if !slices.Contains(c.listed, name) {
						t.Errorf("%s is not listed in %q", name, c.listed)
					}
				}
				for _, name := range c.listed {
					if rest, ok := strings.CutPrefix(name, c.bad); ok && rest != "" && rest[0] >= '1' && rest[0] <= '9' {
						t.Errorf("%s is listed", name)
					}
				}
			}
		})
	}
}

func TestMalformedToolIsExplained(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "bad", "-fault", "malformed"))
	contains(t, discover(host, `{"tool_name":"bad/m7"}`).Text(), `it is left out: "description" is a number, want a string`)
	contains(t, host.WaitStderr("bad: malformed and left out: tool"), `\"m1\": \"inputSchema\" is null, want an object`)
}

// Without its tools a server is of no use.
func TestFailedToolsFailTheLoad(t *testing.T) {
	t.Parallel()
	host := serve(t, deferred(t, "odd", "Odd", "-fault", "fail-list:tools"))
	if m := load(host, "odd"); !m.IsError() || !strings.Contains(m.Text(), "tools/list") {
		t.Errorf("got %s", m.Raw)
	}
}
