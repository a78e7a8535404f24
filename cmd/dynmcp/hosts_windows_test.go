package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Servers are imported from the config files of hosts on Windows, with paths of drives and of
// shares. dynmcp is put into a config that an editor wrote with CRLF and a byte order mark,
// and taken out of it to the byte.
func TestHostsOfWindows(t *testing.T) {
	t.Parallel()
	home := oddDirectory(t)
	roaming := filepath.Join(home, "AppData", "Roaming")
	claude := filepath.Join(roaming, "Claude", "claude_desktop_config.json")
	const desktop = "\xef\xbb\xbf{\r\n  \"mcpServers\": {\r\n    \"files\": {\r\n" +
		`      "command": "C:\\Program Files\\nodejs\\npx.cmd", "args": ["-y", "files@1.0.0", "C:\\Users\\me\\My Documents"]` +
		"\r\n    }\r\n  }\r\n}\r\n"
	for path, text := range map[string]string{
		claude: desktop,
		filepath.Join(roaming, "Code", "User", "mcp.json"):  `{"servers": {"share": {"type": "stdio", "command": "\\\\server\\tools\\run it.exe"}}}`,
		filepath.Join(roaming, "Zed", "settings.json"):      `{"context_servers": {"zed": {"command": "D:/tools/zed.exe"}}}`,
		filepath.Join(home, ".cursor", "mcp.json"):          `{"mcpServers": {"batch": {"command": "C:\\tools\\grün.bat", "args": ["%PATH%"]}}}`,
		filepath.Join(home, ".codex", "config.toml"):        "[mcp_servers.toml]\r\ncommand = 'C:\\tools\\x.exe'\r\n",
		filepath.Join(home, ".codeium", "windsurf", "x.md"): "",
	} {
		writeFile(t, filepath.Dir(path), filepath.Base(path), text)
	}
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), mcptest.Dynmcp(t), args...)
		cmd.Dir = home
		cmd.Env = append(mcptest.Environ(t), "USERPROFILE="+home, "APPDATA="+roaming, "LOCALAPPDATA="+filepath.Join(home, "AppData", "Local"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("dynmcp %q: %v\n%s", args, err, out)
		}
	}
	run("import", "--write", "-c", "mcp.json")
	text, err := os.ReadFile(filepath.Join(home, "mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	var imported struct {
		MCP map[string]struct {
			Command string
			Args    []string
		}
	}
	if err := json.Unmarshal(text, &imported); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for name, want := range map[string][]string{
		"files": {`C:\Program Files\nodejs\npx.cmd`, "-y", "files@1.0.0", `C:\Users\me\My Documents`},
		"share": {`\\server\tools\run it.exe`}, "zed": {"D:/tools/zed.exe"},
		"batch": {`C:\tools\grün.bat`, "%PATH%"}, "toml": {`C:\tools\x.exe`},
	} {
		if got := imported.MCP[name]; !slices.Equal(append([]string{got.Command}, got.Args...), want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	config := func() string {
		text, err := os.ReadFile(claude)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	run("install", "claude-desktop", "--yes", "-c", "mcp.json")
	installed := config()
	contains(t, installed, "\xef\xbb\xbf{\r\n", `"dynmcp": {`, `dynmcp.exe"`, `a user's grün 日本 (1)\\mcp.json"`)
	if plain := strings.ReplaceAll(installed, "\r\n", ""); strings.Contains(plain, "\n") {
		t.Errorf("lines end in two ways:\n%q", installed)
	}
	run("install", "claude-desktop", "--uninstall", "--yes")
	if got := config(); got != desktop {
		t.Errorf("got  %q\nwant %q", got, desktop)
	}
}
