//go:build e2e

package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// npmServers are servers of npm that start offline: what they need, with values that are good
// enough to start, and a call that is answered. Installing them all takes 1.9 GB.
var npmServers = []struct {
	pkg, version string
	args         []string // positional
	env          []string // variables, all of them required
	values       map[string]string
	tool, input  string
	want         string // in the answer, "" for any answer of the server
}{
	{"@modelcontextprotocol/server-everything", "2026.8.31", []string{"stdio"}, nil, nil, "echo", `{"message":"hello"}`, "hello"},
	{"@modelcontextprotocol/server-filesystem", "2026.8.31", []string{"."}, nil, nil, "list_allowed_directories", `{}`, "Allowed"},
	{"@modelcontextprotocol/server-github", "2025.4.8", nil, []string{"GITHUB_PERSONAL_ACCESS_TOKEN"}, nil, "search_repositories", `{"query":"x"}`, ""},
	{"@modelcontextprotocol/server-google-maps", "0.6.2", nil, []string{"GOOGLE_MAPS_API_KEY"}, nil, "maps_geocode", `{"address":"x"}`, ""},
	{"@modelcontextprotocol/server-postgres", "0.6.2", []string{"postgresql://127.0.0.1:1/none"}, nil, nil, "query", `{"sql":"select 1"}`, ""},
	{"@modelcontextprotocol/server-slack", "2025.4.25", nil, []string{"SLACK_BOT_TOKEN", "SLACK_TEAM_ID"}, nil, "slack_list_channels", `{}`, ""},
	{"airtable-mcp-server", "1.14.0", nil, []string{"AIRTABLE_API_KEY"}, nil, "list_bases", `{}`, ""},
	{"@brave/brave-search-mcp-server", "2.1.4", nil, []string{"BRAVE_API_KEY"}, nil, "brave_web_search", `{"query":"x"}`, ""},
	{"@upstash/context7-mcp", "4.1.1", nil, nil, nil, "resolve-library-id", `{"libraryName":"x","query":"x"}`, ""},
	{"mongodb-mcp-server", "3.0.4", nil, []string{"MDB_MCP_TELEMETRY"}, map[string]string{"MDB_MCP_TELEMETRY": "disabled"}, "list-connections", `{}`, ""},
	{"@elastic/mcp-server-elasticsearch", "0.3.1", nil, []string{"ES_API_KEY", "ES_URL"}, map[string]string{"ES_URL": "http://127.0.0.1:1"}, "get_shards", `{}`, ""},
	{"exa-mcp-server", "3.4.1", nil, []string{"EXA_API_KEY"}, nil, "web_search_exa", `{"query":"x"}`, ""},
	{"@hubspot/mcp-server", "0.4.0", nil, []string{"PRIVATE_APP_ACCESS_TOKEN"}, nil, "hubspot-get-user-details", `{}`, ""},
	{"@launchdarkly/mcp-server", "0.6.2", []string{"start", "--api-key", "api-00000000-0000-0000-0000-000000000000"}, nil, nil, "list-feature-flags", `{"request":{"projectKey":"x"}}`, ""},
	{"@mobilenext/mobile-mcp", "1.0.4", nil, nil, nil, "mobile_list_available_devices", `{}`, ""},
	{"@notionhq/notion-mcp-server", "2.5.2", nil, []string{"NOTION_TOKEN"}, nil, "API-get-self", `{}`, ""},
	{"@sentry/mcp-server", "0.39.0", nil, []string{"SENTRY_ACCESS_TOKEN"}, nil, "find_organizations", `{}`, ""},
	{"mcp-server-kubernetes", "4.1.7", nil, nil, nil, "cleanup", `{}`, ""},
	{"tavily-mcp", "0.2.22", nil, []string{"TAVILY_API_KEY"}, nil, "tavily_search", `{"query":"x"}`, ""},
	{"@zereight/mcp-gitlab", "2.1.64", nil, []string{"GITLAB_PERSONAL_ACCESS_TOKEN", "GITLAB_API_URL"}, map[string]string{"GITLAB_API_URL": "http://127.0.0.1:1"}, "search_repositories", `{"search":"x"}`, ""},
}

// Servers of npm are added from a registry, started and called.
func TestServersOfARegistry(t *testing.T) {
	t.Parallel()
	npx := mcptest.Npx(t, "the servers of npmServers")
	r := mcptest.ServeRegistry(t)
	for i, s := range npmServers {
		args, env := []any{}, []any{}
		for _, arg := range s.args {
			args = append(args, map[string]any{"type": "positional", "value": arg})
		}
		for _, name := range s.env {
			env = append(env, map[string]any{"name": name, "isRequired": true})
		}
		r.Publish(string(mcptest.Raw(map[string]any{
			"name": fmt.Sprintf("io.example/server-%d", i), "version": s.version, "description": "The server " + s.pkg + ".",
			"packages": []any{map[string]any{
				"registryType": "npm", "identifier": s.pkg, "version": s.version, "runtimeHint": "npx", "transport": map[string]any{"type": "stdio"},
				"packageArguments": args, "environmentVariables": env,
			}},
		})), "active", "")
	}
	for i, s := range npmServers {
		t.Run(strings.ReplaceAll(s.pkg, "/", "_"), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFile(t, dir, "mcp.json", `{"mcp": {}, "defaults": {"load_timeout": "4m"}}`)
			run := func(args ...string) string {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, mcptest.Dynmcp(t), args...)
				cmd.Dir = dir
				cmd.Env = append(mcptest.Environ(t), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "DYNMCP_KEYRING=off", "PATH="+filepath.Dir(npx[0])+string(os.PathListSeparator)+os.Getenv("PATH"))
				out, err := cmd.CombinedOutput()
				if err != nil && args[0] != "call" {
					t.Fatalf("dynmcp %q: %v\n%s", args, err, out)
				}
				return string(out)
			}
			add := []string{"add", fmt.Sprintf("io.example/server-%d", i), "--as", "real", "--registry", r.URL, "--yes"}
			for _, name := range s.env {
				value := s.values[name]
				if value == "" {
					value = "none-at-all"
				}
				add = append(add, "--set", name+"="+value)
			}
			run(add...)
			if !strings.Contains(run("test", "real"), "PASS") {
				t.Error("it does not start")
			}
			answer := run("call", "real/"+s.tool, "--raw", "--arguments", s.input)
			refused := strings.HasPrefix(answer, "dynmcp: real/"+s.tool+": ") && strings.Contains(answer, "(code -32603)") // by the server itself
			if !strings.Contains(answer, `"content"`) && !refused || !strings.Contains(answer, s.want) {
				t.Errorf("got %s", answer)
			}
		})
	}
}
