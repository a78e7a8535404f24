package packages

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDescription(t *testing.T) {
	npm, uv := t.TempDir(), t.TempDir()
	t.Setenv("npm_config_cache", npm)
	t.Setenv("UV_CACHE_DIR", uv)
	for file, text := range map[string]string{
		filepath.Join(npm, "_npx", "0a", "node_modules", "@scope", "notes", "package.json"):      `{"name":"@scope/notes","description":"Notes of a team."}`,
		filepath.Join(npm, "_npx", "0b", "node_modules", "odd", "package.json"):                  `{"description":7}`,
		filepath.Join(npm, "package.json"):                                                       `{"description":"not a package"}`,
		filepath.Join(uv, "archive-v0", "xYz", "mcp_server_time-1.0.dist-info", "METADATA"):      "Metadata-Version: 2.1\nName: mcp-server-time\nSummary: Tells the time.\n\nSummary: not this\n",
		filepath.Join(uv, "archive-v0", "xYz", "mcp_server_time_more-1.0.dist-info", "METADATA"): "Summary: not this\n",
		filepath.Join(uv, "archive-v0", "abc", "without_summary-1.0.dist-info", "METADATA"):      "Name: x\n\nSummary: not this\n",
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		command string
		args    []string
		want    string
	}{
		{"npx", []string{"-y", "@scope/notes@1.2.3", "serve"}, "Notes of a team."},
		{"/usr/bin/npx", []string{"--package=@scope/notes", "notes"}, "Notes of a team."},
		{"npx", []string{"-p", "@scope/notes", "notes"}, "Notes of a team."},
		{"npx", []string{"-y", "odd"}, ""},
		{"npx", []string{"-y", "../../.."}, ""},
		{"npx", []string{"-y", "*"}, ""},
		{"npx", nil, ""},
		{"uvx", []string{"mcp-server-time", "--local-timezone", "UTC"}, "Tells the time."},
		{"uvx", []string{"--from", "mcp-server-time[all]==1.0", "time"}, "Tells the time."},
		{"uv", []string{"tool", "run", "--python", "3.12", "mcp.server.time@1.0"}, "Tells the time."},
		{"uvx", []string{"without-summary"}, ""},
		{"uvx", []string{"none"}, ""},
		{"node", []string{"@scope/notes"}, ""},
	} {
		if got := Description(t.Context(), c.command, c.args); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.command, c.args, got, c.want)
		}
	}
}
