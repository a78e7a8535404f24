// Package hosts reads and edits the configs in which MCP hosts (Claude Code,
// Cursor, Codex and others) keep their servers.
//
// Reading gives servers as a config of dynmcp would have them, with notes on what
// could not be taken over. Editing sets or removes one server and leaves every
// other byte of the file alone; it works on text, and writing is up to the caller.
package hosts

import (
	"os"
	"path/filepath"
	"runtime"
)

// A Host is a program that has MCP servers in a config of its own.
type Host struct {
	// Name is what users call the host on the command line; Title is its own.
	Name, Title string
	// Project is the host's file in a project's directory, empty if it has none.
	Project string

	key   string                           // what the config keeps servers under
	typed bool                             // an entry says that a program is spoken to on stdio
	user  func(home, config string) string // the user's file
}

// isTOML reports whether the host's config is TOML: Codex alone has no JSON.
func (h Host) isTOML() bool { return h.key == "mcp_servers" }

var all = []Host{
	{Name: "claude-code", Title: "Claude Code", Project: ".mcp.json", key: "mcpServers", typed: true,
		user: func(home, _ string) string { return filepath.Join(home, ".claude.json") }},
	{Name: "claude-desktop", Title: "Claude Desktop", key: "mcpServers",
		user: func(_, config string) string { return filepath.Join(config, "Claude", "claude_desktop_config.json") }},
	{Name: "cursor", Title: "Cursor", Project: ".cursor/mcp.json", key: "mcpServers",
		user: func(home, _ string) string { return filepath.Join(home, ".cursor", "mcp.json") }},
	{Name: "vscode", Title: "VS Code", Project: ".vscode/mcp.json", key: "servers", typed: true,
		user: func(_, config string) string { return filepath.Join(config, "Code", "User", "mcp.json") }},
	{Name: "codex", Title: "Codex", Project: ".codex/config.toml", key: "mcp_servers",
		user: func(home, _ string) string {
			if dir := os.Getenv("CODEX_HOME"); dir != "" {
				return filepath.Join(dir, "config.toml")
			}
			return filepath.Join(home, ".codex", "config.toml")
		}},
	{Name: "gemini", Title: "Gemini CLI", Project: ".gemini/settings.json", key: "mcpServers",
		user: func(home, _ string) string { return filepath.Join(home, ".gemini", "settings.json") }},
}

// All returns the hosts that are known.
func All() []Host { return all }

// Names returns the names of the hosts that are known.
func Names() []string {
	var names []string
	for _, h := range all {
		names = append(names, h.Name)
	}
	return names
}

// Named returns the host of a name.
func Named(name string) (Host, bool) {
	for _, h := range all {
		if h.Name == name {
			return h, true
		}
	}
	return Host{}, false
}

// UserFile returns where the host keeps the servers of a user. Desktop programs
// have their configs where the system wants them, unlike those made for a shell.
func (h Host) UserFile() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	config := filepath.Join(home, ".config")
	switch runtime.GOOS {
	case "darwin":
		config = filepath.Join(home, "Library", "Application Support")
	case "windows":
		config = os.Getenv("APPDATA")
	default:
		if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
			config = dir
		}
	}
	return h.user(home, config), nil
}

// Files returns where the host may have servers, the project's file first.
func (h Host) Files() ([]string, error) {
	user, err := h.UserFile()
	if err != nil {
		return nil, err
	}
	if h.Project == "" {
		return []string{user}, nil
	}
	return []string{filepath.FromSlash(h.Project), user}, nil
}

// Owner returns the host that reads the file at path, of this user or of the project
// in the working directory.
func Owner(path string) (Host, bool) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Host{}, false
	}
	for _, h := range all {
		files, err := h.Files()
		if err != nil {
			continue
		}
		for _, file := range files {
			if own, err := filepath.Abs(file); err == nil && (own == path || sameFile(own, path)) {
				return h, true
			}
		}
	}
	return Host{}, false
}

func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}
