package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// A host is a program that has MCP servers in a config of its own.
type host struct {
	name, title string
	// key is what the host's config keeps servers under.
	key string
	// typed hosts want to be told that a program is spoken to on stdio.
	typed bool
	// project and user are the host's files: below the working directory, and
	// below the places of the user. One or the other may be empty.
	project string
	user    func(userPlaces) string
}

func (h host) toml() bool { return h.key == "mcp_servers" }

// userPlaces are where programs keep what a user has set.
type userPlaces struct{ home, config string }

// hosts are those that import and install know.
func hosts() []host {
	return []host{
		{"claude-code", "Claude Code", "mcpServers", true, ".mcp.json", func(p userPlaces) string {
			return filepath.Join(p.home, ".claude.json")
		}},
		{"claude-desktop", "Claude Desktop", "mcpServers", false, "", func(p userPlaces) string {
			return filepath.Join(p.config, "Claude", "claude_desktop_config.json")
		}},
		{"cursor", "Cursor", "mcpServers", false, ".cursor/mcp.json", func(p userPlaces) string {
			return filepath.Join(p.home, ".cursor", "mcp.json")
		}},
		{"vscode", "VS Code", "servers", true, ".vscode/mcp.json", func(p userPlaces) string {
			return filepath.Join(p.config, "Code", "User", "mcp.json")
		}},
		{"codex", "Codex", "mcp_servers", false, ".codex/config.toml", func(p userPlaces) string {
			if dir := os.Getenv("CODEX_HOME"); dir != "" {
				return filepath.Join(dir, "config.toml")
			}
			return filepath.Join(p.home, ".codex", "config.toml")
		}},
		{"gemini", "Gemini CLI", "mcpServers", false, ".gemini/settings.json", func(p userPlaces) string {
			return filepath.Join(p.home, ".gemini", "settings.json")
		}},
	}
}

func hostNames() []string {
	var names []string
	for _, h := range hosts() {
		names = append(names, h.name)
	}
	return names
}

func hostNamed(name string) (host, error) {
	for _, h := range hosts() {
		if h.name == name {
			return h, nil
		}
	}
	return host{}, hinted(fmt.Errorf("unknown host %q", name), "use %s", strings.Join(hostNames(), ", "))
}

// places finds the user's directories. Desktop programs keep their configs
// where the system wants them, unlike those made for a shell.
func places() (userPlaces, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return userPlaces{}, err
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
	return userPlaces{home, config}, nil
}

// files are where the host may have servers, the project's file first.
func (h host) files() ([]string, error) {
	p, err := places()
	if err != nil {
		return nil, err
	}
	var files []string
	if h.project != "" {
		files = append(files, filepath.FromSlash(h.project))
	}
	return append(files, h.user(p)), nil
}
