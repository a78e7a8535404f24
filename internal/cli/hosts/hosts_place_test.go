package hosts

import (
	"path/filepath"
	"testing"
)

// A file at the place of a host is that host's, in whatever directory.
func TestWhoseFileByPlace(t *testing.T) {
	for path, want := range map[string]string{
		"x/.cursor/mcp.json":                  "cursor",
		"x/.mcp.json":                         "claude-code",
		"x/.claude.json":                      "claude-code",
		"x/.gemini/settings.json":             "gemini",
		"x/.kiro/settings/mcp.json":           "kiro",
		"x/.junie/mcp/mcp.json":               "junie",
		"x/.lmstudio/mcp.json":                "lmstudio",
		"x/.github/mcp.json":                  "copilot",
		"x/.codeium/windsurf/mcp_config.json": "windsurf",
		"x/other.json":                        "other",
		"x/notcursor/mcp.json":                "other",
	} {
		if got := WhoseFile(filepath.FromSlash(path), []byte(`{"mcpServers": {"a": {"command": "x"}}}`)).Name; got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	if got := WhoseFile(filepath.FromSlash("x/.vscode/mcp.json"), []byte(`{"servers": {"a": {"command": "x"}}}`)).Name; got != "vscode" {
		t.Errorf("got %s, want vscode", got)
	}
}
